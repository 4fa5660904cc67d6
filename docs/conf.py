"""Sphinx configuration; `make docs` builds the pages and runs every doctest.

Nothing is fetched while building or reading: formulas become MathML, which browsers draw
themselves, and no page refers to another host for scripts or fonts.
"""

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "gramian"
author = "the gramian developers"
copyright = author
version = release = installed("gramian")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "commands",
    "docstrings",
    "live_reports",
    "mathml",
]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "README.md", "gallery/**/*.py", "gallery/**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "literal"
highlight_language = "python"

# --- pages ---------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# --- reference -----------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# --- doctests ------------------------------------------------------------------------

doctest_test_doctest_blocks = "default"

# --- gallery -------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/gallery/{name}"
        for name in ("metric", "certificate", "manifold", "kernel", "completion", "solvers")
    ],
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "gallery_style.reset"),
    "image_srcset": ["2x"],
    "default_thumb_file": None,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}

# --- look ----------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "gramian"
html_static_path = ["_static"]
html_css_files = ["gramian.css"]
html_js_files = ["copy.js"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": f"gramian {release}"},
    "show_nav_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],  # an icon: the field would wrap at 1280 px
    "navbar_align": "left",
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        "choosing": [],
        "choosing-a-model": [],
        "choosing-a-solver": [],
        "results/index": [],
    },
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_sidebars = {
    name: []
    for name in (
        "index", "get_started", "certificate", "command_line", "files_and_checkpoints", "reports",
        "extending", "compares", "explore", "changelog",
    )
}  # fmt: skip


def with_results(app, docname, source):
    """Put the page of results among the others, where the benchmarks have written it."""
    if docname == "index" and (HERE / "results" / "index.md").exists():
        source[0] = source[0].replace("\nchoosing\n", "\nchoosing\nresults/index\n")
    if docname.startswith("results/"):  # a mean and its deviation stay on one line
        source[0] = source[0].replace(" ± ", "\u00a0±\u00a0")


def setup(app):
    app.connect("source-read", with_results)

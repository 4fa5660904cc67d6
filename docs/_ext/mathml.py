"""Formulas as MathML, by docutils' own converter: no script, no fonts, no network.

Every current browser draws MathML. `sphinx.ext.mathjax` would need a copy of MathJax, or a host to
fetch it from.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number

OPERATOR = re.compile(r"(\\operatorname\{\w+\})\s*(?=[A-Za-z\\])")


def _converted(tex: str, block: bool) -> str:
    """MathML, with the thin space between an operator and its argument that TeX would put there."""
    return str(tex2mathml(OPERATOR.sub(r"\1\\,", tex), as_block=block))


def inline(self: Any, node: nodes.math) -> None:
    self.body.append(_converted(node.astext(), block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    if node.get("number"):
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})</span>')
    self.body.append(_converted(node.astext(), block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""The benchmarks: all modules of the package whose names do not begin with an underscore."""

import importlib
import pkgutil
from types import ModuleType


def names(package: str) -> list[str]:
    """Names of the benchmarks in ``package``."""
    found = pkgutil.iter_modules(importlib.import_module(package).__path__)
    return sorted(m.name for m in found if not m.ispkg and not m.name.startswith("_"))


def load(name: str, package: str) -> ModuleType:
    """A benchmark's module; LookupError if it is unknown or incomplete."""
    known = names(package)
    if name not in known:
        raise LookupError(f"no benchmark named {name!r}; there are: {', '.join(known) or 'none'}")
    module = importlib.import_module(f"{package}.{name}")
    missing = [part for part in ("TITLE", "PAPER", "run") if not hasattr(module, part)]
    if missing:
        raise LookupError(f"benchmark {name!r} does not define {', '.join(missing)}")
    return module

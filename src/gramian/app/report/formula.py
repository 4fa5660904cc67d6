"""The formula of a problem as MathML."""

from __future__ import annotations

import re
from html import escape

TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?|[½¼])"
    r"|(?P<raised>⁻?[⁰¹²³⁴-⁹]+|ᵀ|\^(?:\{[^}]*\}|.))"
    r"|(?P<letters>[^\W\d_ᵀ⁰¹²³⁴-⁹]+\u0303?)"
    r"|(?P<lowered>_(?:\{[^}]*\}|[^\W\d_]+|.))"
    r"|(?P<space>\s+)"
    r"|(?P<sign>.)"
)
FUNCTIONS = ("tr", "ln", "exp", "max", "min", "diag", "rank")
PLAIN = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻ᵀ", "0123456789−T")
TILDE = "\u0303"


def mathml(line: str) -> str:
    """A formula with superscripts and subscripts; the text itself is its alternative."""
    return (
        f'<math display="block" alttext="{escape(line)}"><mrow>{"".join(_row(line))}</mrow></math>'
    )


def displayed(line: str) -> str:
    """A problem as formulas that are stacked on a narrow page; "" without a formula."""
    parts = [part for part in re.split(r"\s{2,}(?=subject)", line) if part]
    return f'<div class="formula">{" ".join(map(mathml, parts))}</div>' if parts else ""


def _row(line: str) -> list[str]:
    parts: list[str] = []
    for found in TOKEN.finditer(line):
        kind, text = str(found.lastgroup), found[0]
        if kind == "number":
            parts.append(f"<mn>{text}</mn>")
        elif kind == "letters":
            parts += _letters(text)
        elif kind in ("raised", "lowered") and parts:
            tag = "msup" if kind == "raised" else "msub"
            parts.append(f"<{tag}>{parts.pop()}<mrow>{''.join(_row(_bare(text)))}</mrow></{tag}>")
        elif kind == "space":
            apart = line[: found.start()][-1:].isalpha() and line[found.end() :][:1].isupper()
            width = "1em" if len(text) > 1 else ".3em"
            parts += [f'<mspace width="{width}"/>'] if len(text) > 1 or apart else []
        else:
            parts.append(f"<mo>{escape(text)}</mo>")
    return parts


def _letters(text: str) -> list[str]:
    """Functions and words upright, everything else letter by letter."""
    if text in FUNCTIONS:
        return [f'<mi>{text}</mi><mspace width=".17em"/>']
    if text == "to" or (len(text) > 2 and text.islower() and text.isascii()):
        return [f"<mtext>&nbsp;{text}&nbsp;</mtext>"]
    marked = text.endswith(TILDE)
    letters = [f"<mi>{escape(letter)}</mi>" for letter in text.removesuffix(TILDE)]
    if marked:
        letters.append(f'<mover accent="true">{letters.pop()}<mo>~</mo></mover>')
    return letters


def _bare(text: str) -> str:
    """The content of a superscript or subscript."""
    inner = text.lstrip("^_") if len(text) > 1 else text
    return inner.strip("{}").translate(PLAIN)

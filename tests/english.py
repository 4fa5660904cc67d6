"""`python -m tests.english` finds banned phrases in text that people read; part of `make lint`."""

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
RULES = Path(__file__).parent / "banned_phrases.txt"
EXAMPLES = re.compile(r"^\| instead of .*\n(\|.*\n)*", re.MULTILINE)
"""A table of phrases and their replacements."""

READ = ("src", "docs", "examples/gallery", "README.md", "CONTRIBUTING.md")


@cache
def rules() -> tuple[list[tuple[re.Pattern[str], str]], set[str]]:
    """The banned phrases with their replacements, and the paths that are not checked."""
    lines = [line for line in RULES.read_text("utf-8").splitlines() if line and line[0] != "#"]
    skipped = {line.removeprefix("skip ") for line in lines if line.startswith("skip ")}
    parts = [line.split(" = ") for line in lines if not line.startswith("skip ")]
    return [(re.compile(phrase, re.IGNORECASE), new) for phrase, new in parts], skipped


def text_of(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of text: all lines of Markdown, comments and strings of Python."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        kept = EXAMPLES.sub(lambda table: "\n" * table[0].count("\n"), source)
        yield from enumerate(kept.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = tokenize.tok_name[token.type]
        if kind in ("COMMENT", "STRING", "FSTRING_MIDDLE"):
            yield from enumerate(token.string.splitlines(), token.start[0])


@cache
def any_phrase() -> re.Pattern[str]:
    """All banned phrases as one pattern: a file without a match need not be split into tokens."""
    return re.compile("|".join(pattern.pattern for pattern, _ in rules()[0]), re.IGNORECASE)


def found(path: Path) -> Iterator[str]:
    """A message for each banned phrase in a file."""
    if any_phrase().search(path.read_text("utf-8")) is None:
        return
    for number, line in text_of(path):
        for pattern, new in rules()[0]:
            for match in pattern.finditer(line):
                yield f"{path}:{number}: {match[0]!r}: write {new}"


def cleaned() -> Iterator[Path]:
    """The files to check."""
    skipped = rules()[1]
    for name in READ:
        top = ROOT / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            here = path.relative_to(ROOT)
            folders = {here.as_posix(), *(part.as_posix() for part in here.parents)}
            if path.suffix in (".py", ".md") and not folders & skipped:
                yield path


def main() -> int:
    """Print the phrases found; the exit status is 1 if there are any."""
    messages = [message for path in cleaned() for message in found(path)]
    print(*messages, sep="\n", end="\n" if messages else "")
    return int(bool(messages))


if __name__ == "__main__":
    sys.exit(main())

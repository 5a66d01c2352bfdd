"""Questions with known answers, taken by rules out of two manuals: Debian's python3.11-doc and postgresql-doc-15."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PYTHON: Final = Path("/usr/share/doc/python3.11/html")
POSTGRESQL: Final = Path("/usr/share/doc/postgresql-doc-15/html")
_PARAMETER: Final = re.compile(r'<dt id="GUC-[A-Z0-9-]+">(.*?)(?=<dt id="GUC-|</dl></div>)', re.S)
_NAME: Final = re.compile(r'<code class="varname">([a-z_]+)</code>')
_DEFAULT: Final = re.compile(r"[Tt]he default(?: value)? is ((?:[^.;]|\.(?=\d)){1,60})")
_LITERAL: Final = re.compile(r'<code class="literal">([^<]{1,30})</code>')
_ADDED: Final = re.compile(
    r'<dt class="sig sig-object py" id="([\w.]+)">(?:(?!<dt class="sig).){1,20000}?New in version (3\.\d+)', re.S
)
_TAG: Final = re.compile(r"<[^>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A question, the answer's own token, and the file of the manual that says it."""

    question: str
    answer: str
    page: str


def facts(count: int, seed: int) -> list[Fact]:
    """`count` facts, half of each manual, the same for one seed. ValueError when a manual is not installed."""
    if not (PYTHON.is_dir() and POSTGRESQL.is_dir()):
        raise ValueError("the manuals are missing: apt-get install python3.11-doc postgresql-doc-15")
    chosen = random.Random(seed)  # noqa: S311
    taken = []
    for all_of in (sorted(_parameters(), key=str), sorted(_added(), key=str)):
        one_each = list({fact.question: fact for fact in all_of}.values())
        taken += chosen.sample(one_each, min(count // 2, len(one_each)))
    chosen.shuffle(taken)
    return taken


def _parameters() -> Iterator[Fact]:
    for path in sorted(POSTGRESQL.glob("runtime-config-*.html")):
        for block in _PARAMETER.findall(path.read_text("utf-8", "replace")):
            name = _NAME.search(block)
            text = " ".join(
                html.unescape(_TAG.sub(lambda tag: tag[0] if "literal" in tag[0] or tag[0] == "</code>" else "", block)).split()
            )
            default = _DEFAULT.search(text)
            if name is None or default is None:
                continue
            literal = _LITERAL.search(default[1])
            number = re.search(r"\d[\d.,]*", _TAG.sub("", default[1]))
            answer = literal[1] if literal else number[0].rstrip(".,") if number else ""
            if answer:
                yield Fact(question=f"What is the default of the {name[1]} parameter?", answer=answer, page=path.name)


def _added() -> Iterator[Fact]:
    for path in sorted((PYTHON / "library").glob("*.html")):
        for name, version in _ADDED.findall(path.read_text("utf-8", "replace")):
            if name.count(".") >= 1:
                yield Fact(question=f"In which version was {name} added, new in version?", answer=version, page=path.name)

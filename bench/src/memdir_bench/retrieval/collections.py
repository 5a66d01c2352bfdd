"""Collections with judgements: texts, questions, and how well each text answers each question.

The classic ones come in SMART's format (a line `.X` begins a field). Nothing of them is part of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.errors import UsageError

_FIELD: Final = re.compile(r"\.([A-Z])(?:\s+(\S+))?\s*$")
_CRANFIELD_GRADES: Final = 5
"""Cleverdon's codes go from 1 (a complete answer) to 4 (of minimum interest); 5 and -1 are of none. The gain is 5 - code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One file of a collection."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query and the gain (1 and more) of each path that answers it; paths that are not named have none."""

    name: str
    text: str
    gains: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Questions are all judged: those without any relevant text are left out."""

    name: str
    texts: tuple[Text, ...]
    questions: tuple[Question, ...]


def cranfield(folder: Path) -> Collection:
    """`cran.all.1400`, `cran.qry` and `cranqrel`. The judgements number the queries by their position in the file, not by the
    numbers that stand in it (1, 2, 4, 8 …)."""
    gains: dict[int, dict[str, int]] = {}
    for line in _lines(folder / "cranqrel"):
        query, document, code = (int(part) for part in line.split()[:3])
        if 1 <= code < _CRANFIELD_GRADES:
            judged = gains.setdefault(query, {})
            judged[_path(document)] = max(judged.get(_path(document), 0), _CRANFIELD_GRADES - code)
    queries = enumerate(records(folder / "cran.qry"), start=1)
    return _collection("cranfield", folder / "cran.all.1400", [(at, fields) for at, (_, fields) in queries], gains)


def cisi(folder: Path) -> Collection:
    """`CISI.ALL`, `CISI.QRY` and `CISI.REL`. Binary; a query is the text of its `.W`."""
    gains: dict[int, dict[str, int]] = {}
    for line in _lines(folder / "CISI.REL"):
        query, document = (int(part) for part in line.split()[:2])
        gains.setdefault(query, {})[_path(document)] = 1
    return _collection("cisi", folder / "CISI.ALL", list(records(folder / "CISI.QRY")), gains)


def records(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Number and fields of each record; fields of the same letter are joined."""
    number, letter, fields = 0, "", dict[str, list[str]]()
    for line in _lines(path):
        match = _FIELD.match(line)
        if match is not None and match[1] == "I" and match[2] is not None:
            if number:
                yield number, {key: "\n".join(value) for key, value in fields.items()}
            number, letter, fields = int(match[2]), "", {}
        elif match is not None and match[2] is None:
            letter = match[1]
            fields.setdefault(letter, [])
        elif letter:
            fields[letter].append(line)
    if number:
        yield number, {key: "\n".join(value) for key, value in fields.items()}


def _collection(
    name: str, texts: Path, queries: list[tuple[int, dict[str, str]]], gains: Mapping[int, Mapping[str, int]]
) -> Collection:
    return Collection(
        name=name,
        texts=tuple(Text(path=_path(number), text=_as_file(fields)) for number, fields in records(texts)),
        questions=tuple(
            Question(name=str(number), text=" ".join(fields.get("W", "").split()), gains=gains[number])
            for number, fields in queries
            if gains.get(number)
        ),
    )


def _as_file(fields: Mapping[str, str]) -> str:
    """A file as a person would keep it: the title as a heading, then the abstract, without the title that some begin with."""
    title = " ".join(fields.get("T", "").split())
    body = fields.get("W", "").strip("\n")
    words, position = title.split(), 0
    for word in words:
        found = re.compile(r"\s*" + re.escape(word)).match(body, position)
        if found is None:
            position = 0
            break
        position = found.end()
    body = body[position:].lstrip("\n")
    return f"# {title}\n\n{body}\n" if title else f"{body}\n"


def _path(number: int) -> str:
    return f"/{number:04d}.md"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="latin-1").rstrip("\n").split("\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", hint="name the folder the collection lies in") from None

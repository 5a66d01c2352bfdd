"""Taking what is to be forgotten out of a text, and finding it again by hashes of its words. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.store.text.sentences import sentences

WINDOW_MAX: Final = 8
"""Words in a row that are hashed together at most: of longer texts the first ones."""
_WORD: Final = re.compile(r"\w+")
_MARK: Final = re.compile(r"^\s*+(?:[-*+•>#]++|\d{1,3}[.)])?\s*+(?:\[[ xX]\])?\s*$")
_HASH_BYTES: Final = 16

Matches = Callable[[str], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was taken out of a line, counted from 1."""

    line: int
    text: str


def phrase(text: str) -> Matches:
    """Whether a text holds these words as they stand, whole; case and white space do not count."""
    parts = [re.escape(part) for part in text.split()]
    pattern = re.compile(r"(?<!\w)" + r"\s+".join(parts) + r"(?!\w)", re.IGNORECASE)
    return lambda said: pattern.search(said) is not None


def without(text: str, matches: Matches, *, spans: Iterable[tuple[int, int]] = ()) -> tuple[str, list[Removed]]:
    """A text without the sentences that match, or that touch `spans` (characters, half open). A line of which nothing but a
    list mark is left goes, and one where words go over its end."""
    gone = list(spans)
    kept: list[str] = []
    removed: list[Removed] = []
    position = 0
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        body = line.rstrip("\r\n")
        cut = [
            (first, last)
            for first, last in sentences(body)
            if matches(body[first:last])
            or any(start < position + last and position + first < end for start, end in gone)
        ]  # fmt: skip
        if not cut and matches(body):
            cut = [(0, len(body))]
        position += len(line)
        if not cut:
            kept.append(line)
            continue
        removed.append(Removed(line=number, text=" ".join(body[first:last] for first, last in cut)))
        left = _left(body, cut)
        if not _MARK.match(left):
            kept.append(left + line[len(body) :])
    joined = "".join(kept)
    return (joined, removed) if not matches(joined) else _over_lines(joined, matches, removed)


def _left(body: str, cut: list[tuple[int, int]]) -> str:
    left, at = "", 0
    for first, last in cut:
        left += body[at:first]
        at = last + len(body[last:]) - len(body[last:].lstrip())
    return (left + body[at:]).rstrip()


def _over_lines(text: str, matches: Matches, removed: list[Removed]) -> tuple[str, list[Removed]]:
    """Words that stand on two lines: both go."""
    lines = text.splitlines(keepends=True)
    at = 0
    while at + 1 < len(lines):
        if matches(lines[at] + lines[at + 1]):
            removed.append(Removed(line=at + 1, text=(lines[at] + lines[at + 1]).strip()))
            del lines[at : at + 2]
            at = max(0, at - 1)
        else:
            at += 1
    return "".join(lines), removed


def windows(texts: Iterable[str], key: bytes) -> dict[int, list[str]]:
    """Hashes of the first words of each text, by how many they are, at most WINDOW_MAX."""
    found: dict[int, set[str]] = {}
    for text in texts:
        words = _words(text)[:WINDOW_MAX]
        if words:
            found.setdefault(len(words), set()).add(_hash(words, key))
    return {size: sorted(hashes) for size, hashes in sorted(found.items())}


def holds(text: str, wanted: Mapping[int, frozenset[str]], key: bytes) -> bool:
    """Whether a text holds words in a row of these hashes."""
    words = _words(text)
    return any(found in hashes for size, hashes in wanted.items() for found in _rows(words, size, key))


def _rows(words: list[str], size: int, key: bytes) -> Iterator[str]:
    for row in {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}:
        yield _hash(row, key)


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _hash(words: Sequence[str], key: bytes) -> str:
    """BLAKE2b with a key (RFC 7693), so that nobody can look a word up in a table."""
    return hashlib.blake2b(" ".join(words).encode("utf-8", "replace"), key=key, digest_size=_HASH_BYTES).hexdigest()

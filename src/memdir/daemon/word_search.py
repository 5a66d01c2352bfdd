"""Searching the local files themselves by words, where meaning is not to be had."""

from __future__ import annotations

import math
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from memdir.core.limits import MIB
from memdir.core.patterns.matcher import is_binary
from memdir.core.patterns.whole_words import whole_words
from memdir.core.siblings import source_path
from memdir.fs.errors import FsError
from memdir.fs.path import decode, encode
from memdir.fs.tree import LocalChangedError

if TYPE_CHECKING:
    from memdir.fs.types import LocalFact
    from memdir.fs.views import SiblingVfs

PROFILE_PATH: Final = "/profile.md"
FILES_MAX: Final = 500
BYTES_MAX: Final = 16 * MIB
ALONE_S: Final = 5.0
"""Where nothing else answers."""
BESIDE_S: Final = 0.06
"""Beside what the server found: what was saved last is read first, and that much is read at once."""
ONE_MAX_BYTES: Final = MIB
"""Of one file beside what the server found; reading that takes some 20 ms."""
TEXT_MAX_CHARS: Final = 2000
_HITS_A_FILE: Final = 3
_PIECE_BYTES: Final = MIB
_SCORE_MAX: Final = 0.5
"""Words found in place never outrank what was found by meaning with confidence."""

_WORD: Final = re.compile(r"\w+", re.UNICODE)
_COMMON: Final = frozenset(
    """
    a an and are as at be by did do does for from had has have he her his how i in is it its me my of on or our she so that
    the their them they this to us was we were what when where which who why will with you your
    """.split()  # noqa: SIM905
)
_ENDINGS: Final = ("ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s")

Json = dict[str, Any]


class Readable(Protocol):
    """What a search needs of `fs.tree.SyncTree`."""

    def fact(self, path: str) -> LocalFact | None: ...

    def children(self, folder: str) -> Sequence[LocalFact]: ...

    def read(self, fact: LocalFact, offset: int, size: int) -> bytes: ...


class WithViews:
    """A tree with what can be read in the mount and stands in none of its files: `profile.md`, and the texts beside files."""

    def __init__(self, tree: Readable, profile: bytes, siblings: SiblingVfs | None) -> None:
        self._tree = tree
        self._profile = profile
        self._siblings = siblings
        self._views: set[str] = {PROFILE_PATH}

    def is_view(self, path: str) -> bool:
        """Whether what `fact` or `children` gave for the path is no file."""
        return path in self._views

    def text_of(self, fact: LocalFact) -> LocalFact | None:
        """The text beside a file; None where there is none, or where a file has its name."""
        text = self._beside(fact)
        if text is None or self._tree.fact(text.path) is not None:
            return None
        self._views.add(text.path)
        return text

    def _beside(self, fact: LocalFact) -> LocalFact | None:
        folder, _, name = fact.path.rpartition("/")
        beside = self._siblings.beside(fact.ino, encode(name)) if self._siblings is not None and fact.kind == "file" else None
        return None if beside is None else _view(f"{folder}/{decode(beside[0])}", beside[1].ino, beside[1].size)

    def fact(self, path: str) -> LocalFact | None:
        if path == PROFILE_PATH:
            return _view(PROFILE_PATH, 0, len(self._profile))
        found = self._tree.fact(path)
        source = source_path(path) if found is None else None
        beside = None if source is None else self._tree.fact(source)
        text = None if beside is None else self.text_of(beside)
        return text if text is not None and text.path == path else found

    def children(self, folder: str) -> Sequence[LocalFact]:
        found = [fact for fact in self._tree.children(folder) if fact.path != PROFILE_PATH]
        taken = {fact.path for fact in found}
        texts = [text for fact in found if (text := self._beside(fact)) is not None and text.path not in taken]
        self._views.update(text.path for text in texts)
        if not texts and folder != "/":
            return found
        own = [_view(PROFILE_PATH, 0, len(self._profile))] if folder == "/" else []
        return sorted((*found, *texts, *own), key=lambda fact: os.fsencode(fact.path))

    def read(self, fact: LocalFact, offset: int, size: int) -> bytes:
        if fact.path == PROFILE_PATH:
            return self._profile[offset : offset + size]
        if self._siblings is not None and fact.path in self._views:
            return self._siblings.text(fact.ino)[offset : offset + size]
        return self._tree.read(fact, offset, size)


def _view(path: str, ino: int, size: int) -> LocalFact:
    from memdir.fs.types import LocalFact

    return LocalFact(path=path, ino=ino, kind="file", mode=0o444, size=size, mtime_ns=0, version=0)


def scope_files(tree: Readable, scopes: Iterable[str]) -> Iterator[str]:
    """Regular files at and below `scopes`, each once: in the order of the scopes, and of the names in each."""
    for entry in entries_below(tree, scopes):
        yield entry.path


def entries_below(tree: Readable, scopes: Iterable[str]) -> Iterator[LocalFact]:
    """The facts of the same files."""
    seen: set[str] = set()
    for scope in scopes:
        first = tree.fact(scope)
        pending = [] if first is None else [first]
        while pending:
            entry = pending.pop()
            if entry.kind == "dir":
                pending.extend(reversed(tree.children(entry.path)))
            elif entry.kind == "file" and entry.path not in seen:
                seen.add(entry.path)
                yield entry


def contents_of(tree: Readable, entry: LocalFact, most_bytes: int | None = None) -> bytes | None:
    """All bytes of one version, or the first `most_bytes`, tried again once when it changes meanwhile; None when it is gone."""
    for _ in range(2):
        end = max(1, entry.size if most_bytes is None else min(entry.size, most_bytes))
        try:
            return b"".join(tree.read(entry, at, min(_PIECE_BYTES, end - at)) for at in range(0, end, _PIECE_BYTES))
        except (LocalChangedError, FsError):
            found = tree.fact(entry.path)
            if found is None or found.kind != "file":
                return None
            entry = found
    return None


@dataclass(slots=True)
class _Scored:
    path: str
    line: int
    text: str
    terms: frozenset[str]


class WordSearch:
    """Lines by their rare query words (inverse document frequency over the searched lines), within bounds."""

    def __init__(self, tree: Readable, query: str, *, containing: Sequence[str] = ()) -> None:
        """`containing`: only lines that hold each of these texts as whole words, in any case."""
        self._tree = tree
        self._containing = [whole_words(text.casefold()) for text in containing]
        words = [word.casefold() for word in _WORD.findall(query)]
        self._terms = frozenset(_stem(word) for word in words if word not in _COMMON) or frozenset(map(_stem, words))
        self.note: str | None = None
        """What was left out because of the bounds."""

    def run(self, paths: Iterable[str], limit: int, *, limit_s: float = ALONE_S) -> list[Json]:
        """The best lines, best first; of what is read in `limit_s`, which is looked at before each file."""
        deadline_s = time.monotonic() + limit_s
        found: list[_Scored] = []
        frequency: Counter[str] = Counter()
        files = size_bytes = lines = absent = 0
        bounded = False
        for path in paths:
            entry = self._tree.fact(path)
            if entry is None or entry.kind != "file":
                continue
            if entry.absent_hash is not None:
                absent += 1
                continue
            left_bytes = min(BYTES_MAX - size_bytes, ONE_MAX_BYTES if limit_s < ALONE_S else BYTES_MAX)
            full = files >= FILES_MAX or not left_bytes or (files > 0 and time.monotonic() > deadline_s)
            bounded |= full or entry.size > left_bytes
            if full:
                break
            files, size_bytes = files + 1, size_bytes + min(entry.size, left_bytes)
            data = contents_of(self._tree, entry, left_bytes)
            if data is None or is_binary(data):
                continue
            candidates = []
            for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):  # as sed counts
                lines += 1
                folded = line.casefold()
                if self._containing:
                    if not all(text.search(folded) for text in self._containing):
                        continue
                elif not any(term in folded for term in self._terms):  # a stem is what its word begins with
                    continue
                terms = self._terms.intersection(_stem(word.casefold()) for word in _WORD.findall(line))
                if terms or self._containing:
                    frequency.update(terms)
                    candidates.append(_Scored(path, number, line[:TEXT_MAX_CHARS], frozenset(terms)))
            candidates.sort(key=lambda hit: -len(hit.terms))
            found += candidates[:_HITS_A_FILE]
        searched = f"only {files} {'files' if files > 1 else 'file'} ({size_bytes / MIB:.1f} MiB) searched in place"
        self.note = with_absent(searched if bounded else None, absent)
        return self._ranked(found, frequency, lines, limit)

    def _ranked(self, found: list[_Scored], frequency: Counter[str], lines: int, limit: int) -> list[Json]:
        weight = {term: math.log(1 + lines / (1 + frequency[term])) for term in self._terms}
        whole = sum(weight.values()) or 1.0
        scored = sorted(
            ((sum(weight[term] for term in hit.terms) / whole, hit) for hit in found),
            key=lambda pair: (-pair[0], pair[1].path, pair[1].line),
        )
        return [
            line_hit(hit.path, hit.line, hit.text.strip(), kind="pending", score=round(_SCORE_MAX * score, 6))
            for score, hit in scored[:limit]
        ]


def with_absent(note: str | None, count: int) -> str | None:
    """The note, and how many files could not be searched because their contents are not here."""
    if not count:
        return note
    absent = f"{count} file{'s' if count > 1 else ''} left out: the contents are on the server only (reading them fetches them)"
    return f"{note}; {absent}" if note else absent


def line_hit(path: str, line: int, text: str, *, kind: str, score: float, last: int | None = None) -> Json:
    """One line, or those up to `last`, as the operation answers it."""
    return {
        "path": path,
        "document_id": None,
        "kind": kind,
        "start_line": line,
        "end_line": line if last is None else last,
        "text": text,
        "score": score,
        "title": None,
        "signals": None,
    }


def _stem(word: str) -> str:
    """Cut common English endings; crude, and the same for query and text."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word

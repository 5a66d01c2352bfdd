"""Exact text and regular expressions in a mount: the server says which of its files can match, their bytes are read here.

So a line that is printed is in the file now. What the server does not have (names that stay on this machine, changes that
could not be pushed) is read here as well; with the server away everything is, but for contents that are on the server only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memdir.core.limits import MIB
from memdir.core.patterns.matcher import Matcher, Pattern, is_binary
from memdir.daemon.wordsearch import TEXT_MAX_CHARS, Readable, contents_of, entries_below, line_hit, with_absent

if TYPE_CHECKING:
    from memdir.api.search import SearchHit, SearchResponse
    from memdir.fs.tree import SyncTree
    from memdir.fs.types import LocalFact

BYTES_MAX: Final = 1024 * MIB
FILE_MAX_BYTES: Final = 64 * MIB
BINARY_MAX: Final = 1000

Json = dict[str, Any]


@dataclass(slots=True)
class ExactSearch:
    """One search. `run` gives the hits; the rest says what else there is to say."""

    tree: Readable
    pattern: Pattern
    files_only: bool = False
    note: str | None = None
    binary: list[str] = field(default_factory=list)

    def run(self, entries: Iterable[LocalFact], limit: int, *, elsewhere: dict[str, list[Json]] | None = None) -> list[Json]:
        """Lines of these files in their order, at most `limit`. `elsewhere`: the hits in files whose contents are not here."""
        matcher = Matcher(self.pattern)
        known = elsewhere or {}
        hits: list[Json] = []
        size_bytes = skipped = absent = 0
        stopped = None
        for entry in entries:
            if len(hits) >= limit:
                break
            if entry.absent_hash is not None:
                hits += known.get(entry.path, ())
                absent += elsewhere is None
                continue
            if entry.size > FILE_MAX_BYTES:
                skipped += 1
                continue
            if size_bytes + entry.size > BYTES_MAX:
                stopped = f"stopped after {BYTES_MAX // MIB} MiB; search a smaller folder"
                break
            size_bytes += entry.size
            hits += self._lines(matcher, entry, limit - len(hits))
        if skipped:
            left_out = f"{skipped} files larger than {FILE_MAX_BYTES // MIB} MiB were left out"
            stopped = f"{stopped}; {left_out}" if stopped else left_out
        self.note = with_absent(stopped, absent)
        return hits[:limit]

    def _lines(self, matcher: Matcher, entry: LocalFact, limit: int) -> list[Json]:
        data = contents_of(self.tree, entry)
        if data is None:
            return []
        if is_binary(data):
            if len(self.binary) < BINARY_MAX and matcher.matches(data):
                self.binary.append(entry.path)
            return []
        found = []
        for line in matcher.lines(data):
            first = max(line.line_start, line.start_byte - TEXT_MAX_CHARS // 2)
            shown = data[first : min(line.line_end, first + TEXT_MAX_CHARS)]
            text = shown.decode("utf-8", "replace").rstrip("\r")
            found.append(line_hit(entry.path, line.number, text, kind="literal", score=1.0))
            if self.files_only or len(found) >= limit:
                break
        return found


def entries_to_read(tree: SyncTree, scope: str, response: SearchResponse, waiting: Iterable[str]) -> Iterator[LocalFact]:
    """What is left to read here when the server has answered, in the order of the tree: files in which it found something,
    those it does not have as they are now, and those that never leave this machine."""
    wanted = {*waiting, *(hit.path for hit in response.results), *(response.binary or ())}
    for entry in entries_below(tree, scope):
        if entry.path in wanted or tree.is_local_only(entry.path):
            yield entry


def hits_by_path(results: Iterable[SearchHit]) -> dict[str, list[Json]]:
    """The server's hits, for files whose contents are not here."""
    found: dict[str, list[Json]] = {}
    for hit in results:
        found.setdefault(hit.path, []).append(line_hit(hit.path, hit.start_line, hit.text, kind="literal", score=1.0))
    return found

"""Exact text and regular expressions in a mount: the server says which of its files can match, their bytes are read here.

So a line that is printed is in the file now. What the server does not have (names that stay on this machine, changes that
could not be pushed) is read here as well; with the server away everything is, but for contents that are on the server only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from memdir.core.limits import EXACT_LIMIT_MAX, MIB
from memdir.core.patterns.matcher import Matcher, Pattern
from memdir.core.patterns.select import Choice, Excerpt, Room, look_into
from memdir.daemon.word_search import Readable, contents_of, line_hit, with_absent

if TYPE_CHECKING:
    from memdir.api.search import SearchHit, SearchResponse
    from memdir.fs.types import LocalFact

BYTES_MAX: Final = 1024 * MIB
FILE_MAX_BYTES: Final = 64 * MIB

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """What the server found, by path."""

    hits: Mapping[str, Sequence[SearchHit]]
    counts: Mapping[str, int]
    binary: frozenset[str]
    texts: frozenset[str]
    """Paths of texts beside files in which something was found."""
    unknown: Callable[[str], bool]
    """Whether the server does not have the file, or the text beside one, as it is now."""

    @classmethod
    def of(cls, response: SearchResponse, unknown: Callable[[str], bool]) -> Elsewhere:
        hits: dict[str, list[SearchHit]] = {}
        for hit in response.results:
            if hit.sibling is None:
                hits.setdefault(hit.path, []).append(hit)
        return cls(
            hits=hits,
            counts={one.path: one.count for one in response.counts or ()},
            binary=frozenset(response.binary or ()),
            texts=frozenset(hit.sibling for hit in response.results if hit.sibling is not None),
            unknown=unknown,
        )

    def can_match(self, path: str) -> bool:
        """Whether the file has to be looked at here."""
        found = path in self.hits or path in self.binary or path in self.texts or self.counts.get(path, 0) > 0
        return found or self.unknown(path)


@dataclass(slots=True)
class ExactSearch:
    """One search. `run` gives the hits; the rest says what else there is to say."""

    tree: Readable
    pattern: Pattern
    choice: Choice = field(default_factory=Choice)
    elsewhere: Elsewhere | None = None
    note: str | None = None
    binary: list[str] = field(default_factory=list)
    counts: list[tuple[str, int]] = field(default_factory=list)

    def run(self, entries: Iterable[LocalFact], limit: int) -> list[Json]:
        """Lines of these files in their order, at most `limit`."""
        matcher, room = Matcher(self.pattern), Room(limit)
        hits: list[Json] = []
        size_bytes = skipped = absent = 0
        stopped = None
        for entry in entries:
            if room.is_full or len(self.counts) >= limit or len(self.binary) >= EXACT_LIMIT_MAX:
                stopped = (
                    room.note if room.is_full else f"these are the first {max(len(self.counts), len(self.binary)):,} files"
                )
                break
            if self.elsewhere is not None and not self.elsewhere.can_match(entry.path):
                self._note_down(entry.path, 0, binary=False)
                continue
            if entry.absent_hash is not None:
                hits += self._at_the_server(entry.path, room)
                absent += self.elsewhere is None
                continue
            if entry.size > FILE_MAX_BYTES:
                skipped += 1
                continue
            if size_bytes + entry.size > BYTES_MAX:
                stopped = f"stopped after {BYTES_MAX // MIB} MiB; search a smaller folder"
                break
            size_bytes += entry.size
            hits += self._here(matcher, entry, room)
        if skipped:
            left_out = f"{skipped} files larger than {FILE_MAX_BYTES // MIB} MiB were left out"
            stopped = f"{stopped}; {left_out}" if stopped else left_out
        self.note = with_absent(stopped, absent)
        return hits

    def _here(self, matcher: Matcher, entry: LocalFact, room: Room) -> list[Json]:
        data = contents_of(self.tree, entry)
        if data is None:
            return []
        look = look_into(matcher, data, self.choice, room)
        self._note_down(entry.path, look.count, binary=look.binary)
        return [self._hit(entry.path, excerpt) for excerpt in look.excerpts]

    def _at_the_server(self, path: str, room: Room) -> list[Json]:
        if self.elsewhere is None:
            return []
        self._note_down(path, self.elsewhere.counts.get(path, 0), binary=path in self.elsewhere.binary)
        excerpts = (_excerpt_of(hit) for hit in self.elsewhere.hits.get(path, ()))
        return [self._hit(path, excerpt) for excerpt in room.take(excerpts)]

    def _note_down(self, path: str, count: int, *, binary: bool) -> None:
        if self.choice.count:
            self.counts.append((path, count))
        elif binary:
            self.binary.append(path)

    def _hit(self, path: str, excerpt: Excerpt) -> Json:
        """The text holds bytes that are not UTF-8 as the names of files do: as lone surrogates."""
        text = excerpt.text.decode("utf-8", "surrogateescape")
        made = line_hit(path, excerpt.first, text, last=excerpt.last, kind="literal", score=1.0)
        if self.choice.has_context:
            made["matched"] = [[line, line] for line in excerpt.matched]
        return made


def _excerpt_of(hit: SearchHit) -> Excerpt:
    return Excerpt(
        first=hit.start_line,
        last=hit.end_line,
        start_byte=hit.start_byte,
        end_byte=hit.end_byte,
        text=hit.text.encode("utf-8", "surrogateescape"),
        matched=tuple(one.start_line for one in hit.matched or ()) or (hit.start_line,),
    )

"""What may and what must be there in the end, from what every user did and saw.

Each write adds a line that nobody wrote before, so that contents name the write that made them. An operation is taken as the
difference between what its actor saw before and after it:
- *Standing.* Contents stand at a path since an actor put them there, until an actor who could see them took them away. What
  is found in the end must stand there, or where a rename or a conflict copy carries it. This is "nothing resurrected" and
  "no stale over new".
- *Owed.* Contents that nobody who had them ever gave up entirely must be found in the end, exactly, or merged with others:
  each of its lines that nobody deleted. This is "no acknowledged write lost".

An actor sees what another did once it has arrived: the engine, or the server, changed that path on its side afterwards.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field

from memdir.fs.path import is_within, rebase

Key = tuple[str, bytes]
"""Kind, and contents or target."""
View = Mapping[str, Key]
"""What an actor sees: every synced path."""

LINE_BYTES = 8
DIR: Key = ("dir", b"")
_COPY = re.compile(r" \(conflict \d{4}-\d\d-\d\d [^()/]*\)")
_CLOSURE_MAX = 500


@dataclass(slots=True)
class Standing:
    """Somebody put contents at a path."""

    actor: str
    time: int
    stands: bool = True
    is_moved: bool = False
    """Whoever took it away renamed it: another rename at the same time may have carried it elsewhere."""
    taken_by: str = ""
    """Who took it away."""
    seen: int = 0
    """Until when that one had seen what others did there."""
    taken_at: int = 0


@dataclass(slots=True)
class Oracle:
    """One schedule. `time` is counted by the world, a tick for each operation."""

    time: int = 0
    standings: dict[tuple[Key, str], list[Standing]] = field(default_factory=dict)
    given_up: dict[Key, set[str]] = field(default_factory=dict)
    """By whom."""
    deleted_lines: set[bytes] = field(default_factory=set)
    renames: dict[tuple[str, str], dict[str, tuple[int, int]]] = field(default_factory=dict)
    """By whom, when last, and until when that one had seen what others did at the source."""
    touched_paths: set[str] = field(default_factory=set)
    """Whose mode somebody changed: that is an edit of whatever contents the server has there by then, too."""
    strict: bool = True
    """Until a server came back from a backup: then what was deleted may return."""
    excused: set[Key] = field(default_factory=set)
    """What only a server had that lost it."""
    _arrivals: dict[tuple[str, str], int] = field(default_factory=dict)
    _told: dict[str, list[int]] = field(default_factory=dict)
    """When the server's state of a path became another: nobody can have seen of others what it was not told by then."""

    # --- hearing -------------------------------------------------------------------------------------------------

    def arrived(self, actor: str, path: str) -> None:
        """What others did became visible to `actor` at and below `path`."""
        self.time += 1
        self._arrivals[actor, path] = self.time

    def told(self, path: str) -> None:
        """The server has another state at and below `path`."""
        self.time += 1
        self._told.setdefault(path, []).append(self.time)

    def renamed(self, actor: str, source: str, path: str) -> None:
        """`actor` renamed, or tried to."""
        self.renames.setdefault((source, path), {})[actor] = (self.time + 1, self._arrival(actor, source))

    def operated(self, actor: str, before: View, after: View) -> None:
        """`actor` did something."""
        self.time += 1
        held_after = set(after.values())
        for path, key in before.items():
            if after.get(path) != key:
                self._taken_away(actor, key, path, is_moved=self._is_moved(key, path, after))
                if key not in held_after:
                    self.given_up.setdefault(key, set()).add(actor)
                    self._note_lines(key, held_after)
        for path, key in after.items():
            if before.get(path) != key:
                self.standings.setdefault((key, path), []).append(Standing(actor, self.time))
                self.given_up.setdefault(key, set()).discard(actor)
                if actor == "api":
                    self.told(path)

    def touched(self, actor: str, key: Key, view: View) -> None:
        """`actor` changed the mode of what has these contents: an edit, which a delete elsewhere does not take away."""
        self.time += 1
        for path, other in view.items():
            if other == key:
                self.standings.setdefault((key, path), []).append(Standing(actor, self.time))
                self.touched_paths.add(path)

    def _taken_away(self, actor: str, key: Key, path: str, *, is_moved: bool) -> None:
        seen = self._arrival(actor, path)
        for standing in self.standings.get((key, path), ()):
            if standing.actor == actor or standing.time <= seen:
                standing.stands, standing.is_moved, standing.taken_by = False, is_moved, actor
                standing.seen, standing.taken_at = seen, self.time

    def _is_moved(self, key: Key, path: str, after: View) -> bool:
        reached = (rebase(path, source, target) for source, target in self.renames if is_within(path, source))
        return any(after.get(other) == key for other in reached)

    def _arrival(self, actor: str, path: str) -> int:
        arrived = told = 0
        above = path
        while above:
            arrived = max(arrived, self._arrivals.get((actor, above), 0))
            above = above.rpartition("/")[0]
        while path:
            told = max(told, max((time for time in self._told.get(path, ()) if time <= arrived), default=0))
            path = path.rpartition("/")[0]
        return told

    def _note_lines(self, key: Key, held_after: set[Key]) -> None:
        if key[0] == "file":
            left = {line for kind, content in held_after if kind == "file" for line in lines(content)}
            self.deleted_lines.update(line for line in lines(key[1]) if line not in left)

    # --- judging -------------------------------------------------------------------------------------------------

    def violations(self, found: View) -> Iterator[str]:
        """What is wrong with `found`, the state that everybody agreed on in the end."""
        if self.strict:
            yield from self._resurrected(found)
        yield from self._lost(found)

    def _resurrected(self, found: View) -> Iterator[str]:
        for path, key in found.items():
            if _COPY.search(path):
                continue  # an older state that is kept beside, needlessly, is a nuisance and no fault
            if key[1] and not self._may_stand(key, path) and not self._is_merged(key, self._writers_of_copies(found, path)):
                yield f"{key[1]!r} stands at {path}, although somebody who saw it there took it away"

    def _may_stand(self, key: Key, path: str) -> bool:
        if any(standing.stands for standing in self.standings.get((key, path), ())):
            return True
        if any(path in self._carried(touched) for touched in self.touched_paths):
            return True
        plain = _COPY.sub("", path)
        for (other, place), standings in self.standings.items():
            if other == key and any(one.stands or one.is_moved or self._was_carried_off(one, place) for one in standings):
                reached = self._carried(place)
                if not any(standing.stands for standing in standings):
                    reached.discard(place)
                if path in reached or plain in reached or plain in {_COPY.sub("", each) for each in reached}:
                    return True
        return False

    def _was_carried_off(self, standing: Standing, place: str) -> bool:
        """Whether somebody else renamed it, and neither had heard of what the other did: a delete goes after no rename."""
        return any(
            not self._was_told(target, since=time, until=standing.seen)
            and not self._was_told(place, since=standing.taken_at, until=heard)
            for (source, target), by in self.renames.items()
            if is_within(place, source)
            for actor, (time, heard) in by.items()
            if actor != standing.taken_by
        )

    def _was_told(self, path: str, *, since: int, until: int) -> bool:
        """Whether the server had another state at `path` in between."""
        while path:
            if any(since < time <= until for time in self._told.get(path, ())):
                return True
            path = path.rpartition("/")[0]
        return False

    def _carried(self, path: str) -> set[str]:
        """Where renames may take `path`, the fewest first: a folder renamed into what stood in it goes on for ever."""
        reached, todo = {path}, deque([path])
        while todo and len(reached) < _CLOSURE_MAX:
            here = todo.popleft()
            for source, target in self.renames:
                if is_within(here, source):
                    there = rebase(here, source, target)
                    if there not in reached:
                        reached.add(there)
                        todo.append(there)
        return reached

    def _writers_of_copies(self, found: View, path: str) -> set[str]:
        """Who wrote what is kept in conflict copies of a path."""
        copies = [key for other, key in found.items() if other != path and _COPY.sub("", other) == path]
        return {each.actor for (key, _), standings in self.standings.items() if key in copies for each in standings}

    def _is_merged(self, key: Key, writers: Set[str]) -> bool:
        """Whether these are the lines of several contents that stand, and nobody wrote them in this way; or of some that one of
        `writers` took away: he had not seen what they were merged to, and what he wrote instead is kept beside it."""
        if key[0] != "file" or key in self.given_up:
            return False
        standing = {
            line
            for (other, _), standings in self.standings.items()
            if other[0] == "file" and any(each.stands or each.taken_by in writers for each in standings)
            for line in lines(other[1])
        }
        return all(line in standing for line in lines(key[1]))

    def _lost(self, found: View) -> Iterator[str]:
        contents = set(found.values())
        there: set[bytes] | None = None
        for key, by in self.given_up.items():
            if by or not key[1] or key in contents or key in self.excused:
                continue
            if there is None:
                there = {line for kind, content in contents if kind == "file" for line in lines(content)}
            if key[0] == "file" and all(line in there or line in self.deleted_lines for line in lines(key[1])):
                continue
            places = sorted(path for other, path in self.standings if other == key)
            yield f"{key[1]!r}, put at {places}, is nowhere, although nobody gave it up"


def lines(content: bytes) -> list[bytes]:
    """The lines of one of our files: all have the same length."""
    return [content[start : start + LINE_BYTES] for start in range(0, len(content), LINE_BYTES)]

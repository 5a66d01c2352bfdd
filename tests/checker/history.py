"""What happened, and whether it may have: a pure checker of histories of several mounts on one memory.

Every content that is written is unlike every other, so a content names who wrote it and when. All processes run on one machine,
so their times can be compared; an operation took place somewhere between its two times, and one without an answer may have
taken place or not. What the server did is known exactly, from its feed.

The rules, for every path but those of `UNTRACKED` (trees that programs made, compared as a whole by others):
- foreign: nobody sees, and nothing keeps, contents that nobody wrote.
- lost: contents whose writing was answered are there at the end, under whatever name, or somebody took them away who can have
  known of them.
- stale: the server does not replace contents by others that were written, with an answer, before those were begun.
- resurrected: contents that somebody took away from a path do not stand there again, unless they were put there again.
- backwards: who saw newer contents at a path does not see the older ones again, unless the server's own history goes there: a
  rename is repeated, at the server and at other machines, before what was written or deleted at the same time. So a machine
  may see whatever once stood at a name under any name that this was renamed to.
- own: of paths that one machine alone writes, it reads exactly what it wrote last, over kills too, and so does everybody
  at the end.
- line: appended lines are there at the end, in the file or in a copy of it; of a log with one writer in their order.
- apart: at the end all mounts and the server hold the same.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

UNTRACKED = ("/bulk-",)
OWN = "/own-"
"""What one machine writes stands below `/own-NAME/`."""
LOGS = "/logs/"
OWN_LOG = "/logs/own-"
EMPTY = hashlib.sha256(b"").hexdigest()
SERVER = "server"
STORY_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """A change that somebody made. `puts`: contents by path; `removes`: what was seen at a path right before it was taken away,
    None for unknown. Both take effect at once, but for `in_place`: then there is an empty file for a moment."""

    machine: str
    what: str
    started_s: float
    ended_s: float
    answered: bool = True
    puts: Mapping[str, str] = field(default_factory=dict)
    removes: Mapping[str, str | None] = field(default_factory=dict)
    below: str = ""
    """A folder that went with everything in it, seen or not."""
    in_place: bool = False
    line: str = ""
    """What was appended, to the path that `removes` names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What somebody saw at a path; None for nothing."""

    machine: str
    path: str
    started_s: float
    ended_s: float
    found: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of the server's feed. `found` is the content of a put, None for a folder."""

    seq: int
    kind: str
    path: str
    source: str = ""
    found: str | None = None


@dataclass(slots=True, kw_only=True)
class History:
    """All of a run. `finals`: for each machine and the server what stands where at the end (files and links)."""

    ops: list[Op] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    finals: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: dict[str, set[str]] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)
    """The lines of the files below LOGS at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    rule: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.path}: {self.text}"


def check(history: History) -> list[Finding]:
    """Every broken rule."""
    index = _Index(history)
    return [
        *_foreign(history, index),
        *_lost(history, index),
        *_stale(index),
        *_resurrected(history, index),
        *_backwards(history, index),
        *_own(history),
        *_lines(history),
        *_apart(history),
    ]


def story(history: History, path: str) -> list[str]:
    """The last events that concern a path, in the order of time, and what the server did to it."""
    events = [
        (op.started_s, f"{op.started_s:9.3f}-{op.ended_s:9.3f} {op.machine} {_told(op, path)}")
        for op in history.ops
        if path in op.puts or path in op.removes or (op.below and path.startswith(op.below + "/"))
    ]
    events += [
        (look.started_s, f"{look.started_s:9.3f}-{look.ended_s:9.3f} {look.machine} saw {_short(look.found)}")
        for look in history.looks
        if look.path == path
    ]
    told = [text for _, text in sorted(events)][-STORY_MAX:]
    server = [
        f"server #{step.seq} {step.kind} {step.path} {step.source} {_short(step.found)}"
        for step in history.steps
        if any(name == path or path.startswith(name + "/") for name in (step.path, step.source) if name)
    ]
    return told + server[-STORY_MAX:]


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_tracked(path: str) -> bool:
    return not path.startswith((*UNTRACKED, LOGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """The server lost a content at a path: to another content, or, `by` None, to a deletion."""

    content: str
    path: str
    by: str | None
    seq: int


class _Index:
    """The history by contents and by paths."""

    def __init__(self, history: History) -> None:
        self.put_by: dict[str, list[Op]] = defaultdict(list)
        self.taken_by: dict[str, list[Op]] = defaultdict(list)
        self.removed_at: dict[str, list[Op]] = defaultdict(list)
        self.subtrees: list[Op] = []
        for op in history.ops:
            for content in set(op.puts.values()):
                self.put_by[content].append(op)
            for path, seen in op.removes.items():
                self.removed_at[path].append(op)
                if seen is not None and seen not in op.puts.values():
                    self.taken_by[seen].append(op)
            if op.below:
                self.subtrees.append(op)
        self.kept = {content for tree in history.finals.values() for content in tree.values()}
        self.moved: set[tuple[str, str | None]] = set()
        """Path and contents of what a rename at the server put somewhere, and of what that was before."""
        self.endings = list(_replay(history.steps, self.moved))

    def removers(self, path: str) -> Iterator[Op]:
        yield from self.removed_at[path]
        yield from (op for op in self.subtrees if path.startswith(op.below + "/"))


def _replay(steps: Iterable[Step], arrived: set[tuple[str, str | None]]) -> Iterator[_Ending]:
    """Every content that the server lost somewhere, as its feed tells. What a rename brought somewhere goes into `arrived`."""
    tree: dict[str, str | None] = {}
    once: dict[str, set[str | None]] = defaultdict(set)
    """What ever stood at a path, and at those that it was renamed from."""
    for step in steps:
        if step.kind == "put":
            before = tree.get(step.path)
            once[step.path].add(step.found)
            if before is not None and before != step.found:
                yield _Ending(content=before, path=step.path, by=step.found, seq=step.seq)
            tree[step.path] = step.found
            continue
        gone = step.path if step.kind == "delete" else step.source
        moved = {path: tree.pop(path) for path in [path for path in tree if path == gone or path.startswith(gone + "/")]}
        if step.kind == "move":
            for path in [path for path in tree if path == step.path or path.startswith(step.path + "/")]:
                replaced = tree.pop(path)
                if replaced is not None:
                    yield _Ending(content=replaced, path=path, by=moved.get(gone), seq=step.seq)
            for path in moved:
                once[step.path + path[len(gone) :]] |= once[path]
            moved = {step.path + path[len(gone) :]: content for path, content in moved.items()}
            arrived.update((path, content) for path in moved for content in once[path])
            tree |= moved
        else:
            for path, content in moved.items():
                if content is not None:
                    yield _Ending(content=content, path=path, by=None, seq=step.seq)


def _foreign(history: History, index: _Index) -> Iterator[Finding]:
    def is_known(path: str, content: str | None) -> bool:
        return content is None or content == EMPTY or content in index.put_by or not is_tracked(path)

    for look in history.looks:
        if not is_known(look.path, look.found):
            yield Finding(rule="foreign", path=look.path, text=f"{look.machine} saw {_short(look.found)}, which nobody wrote")
    for machine, tree in history.finals.items():
        for path, content in tree.items():
            if not is_known(path, content):
                yield Finding(rule="foreign", path=path, text=f"{machine} keeps {_short(content)}, which nobody wrote")


def _lost(history: History, index: _Index) -> Iterator[Finding]:
    for op in history.ops:
        for path, content in op.puts.items():
            if op.answered and content != EMPTY and content not in index.kept and is_tracked(path):
                known = any(taker.ended_s >= op.started_s for taker in index.taken_by[content])
                # What a conflict moved aside between the list of a folder and its removal was taken along, unlisted.
                known = known or any(
                    taker.machine == op.machine and not taker.puts and taker.ended_s >= op.started_s
                    for taker in index.subtrees
                    if path.startswith(f"{taker.below}/")
                )
                if not known and not any(
                    _is_earned(ending, op, index) for ending in index.endings if ending.content == content
                ):
                    yield Finding(rule="lost", path=path, text=f"{_short(content)}, {op.what} by {op.machine}, is nowhere")


def _is_earned(ending: _Ending, op: Op, index: _Index) -> bool:
    """Whether somebody can have known of the contents that `op` wrote when the server lost them. Who moved them away only
    wanted them elsewhere."""
    if ending.by is None:
        removers = (remover for remover in index.removers(ending.path) if ending.content not in remover.puts.values())
        return any(remover.ended_s >= op.started_s for remover in removers)
    return any(writer.ended_s >= op.started_s for writer in index.put_by[ending.by]) or ending.by == EMPTY


def _stale(index: _Index) -> Iterator[Finding]:
    for ending in index.endings:
        begun = [op.started_s for op in index.put_by[ending.content] if ending.path in op.puts]
        older = [op.ended_s for op in index.put_by[ending.by or ""]]
        if not begun or not older or ending.content in index.kept or ending.by == EMPTY or not is_tracked(ending.path):
            continue
        if max(older) < min(begun) and not index.taken_by[ending.content]:
            text = f"at #{ending.seq} {_short(ending.by)} replaced {_short(ending.content)}, which was written later"
            yield Finding(rule="stale", path=ending.path, text=text)


def _resurrected(history: History, index: _Index) -> Iterator[Finding]:
    for path, content in history.finals.get(SERVER, {}).items():
        if content == EMPTY or not is_tracked(path):
            continue
        put_s = max((op.ended_s for op in index.put_by[content] if path in op.puts), default=None)
        if put_s is None:
            continue
        for op in index.removed_at[path]:
            if op.answered and op.removes[path] == content and op.started_s > put_s:
                text = f"{_short(content)} is there, although {op.machine} took it away ({op.what}) at {op.started_s:.3f}"
                yield Finding(rule="resurrected", path=path, text=text)


def _backwards(history: History, index: _Index) -> Iterator[Finding]:
    seen: dict[tuple[str, str], list[tuple[float, float, str | None]]] = defaultdict(list)
    for look in history.looks:
        seen[look.machine, look.path].append((look.started_s, look.ended_s, look.found))
    for op in history.ops:
        if op.answered:
            for path, content in op.puts.items():
                seen[op.machine, path].append((op.started_s, op.ended_s, content))
    for (machine, path), sights in seen.items():
        if not is_tracked(path):
            continue
        last: dict[str | None, tuple[float, float]] = {}
        """When each content was last seen: from and to."""
        for started_s, ended_s, content in sorted(sights, key=lambda sight: sight[1]):
            before_s = last.get(content, (0.0, float("inf")))[1]
            between = [sight for other, sight in last.items() if other not in (content, EMPTY) and sight[1] < started_s]
            since = max((sight[0] for sight in between if sight[0] > before_s), default=None)
            if content not in (None, EMPTY) and content in last and since is not None:
                again = any(path in op.puts and op.ended_s >= since for op in index.put_by[content])
                if not again and (path, content) not in index.moved:
                    text = f"{machine} saw {_short(content)} at {started_s:.3f} again, after something newer at {since:.3f}"
                    yield Finding(rule="backwards", path=path, text=text)
            last[content] = (started_s, ended_s)


def _own(history: History) -> Iterator[Finding]:
    by_path: dict[str, list[Op]] = defaultdict(list)
    for op in history.ops:
        for path in {*op.puts, *op.removes}:
            if path.startswith(OWN):
                by_path[path].append(op)
    for ops in by_path.values():
        ops.sort(key=lambda op: op.started_s)
    for look in history.looks:
        if look.path.startswith(OWN) and look.machine == _owner(look.path):
            allowed = _possible(by_path[look.path], look.path, look.started_s, look.ended_s)
            if look.found not in allowed:
                text = f"{look.machine} saw {_short(look.found)} at {look.started_s:.3f} and not {_all(allowed)}"
                yield Finding(rule="own", path=look.path, text=text)
    for path, ops in by_path.items():
        allowed = _possible(ops, path, float("inf"), float("inf"))
        for machine, tree in history.finals.items():
            if tree.get(path) not in allowed:
                text = f"{machine} has {_short(tree.get(path))} at the end and not {_all(allowed)}"
                yield Finding(rule="own", path=path, text=text)


def _owner(path: str) -> str:
    return path[len(OWN) :].partition("/")[0]


def _possible(ops: Sequence[Op], path: str, started_s: float, ended_s: float) -> set[str | None]:
    """What can stand at a path with one writer, between two times."""
    allowed: set[str | None] = {None}
    for op in ops:
        if op.started_s > ended_s:
            break
        value = op.puts.get(path)
        if op.answered and op.ended_s < started_s:
            allowed = set()
        elif op.in_place:
            allowed |= {EMPTY, None}  # it is truncated first, or moved away
        allowed.add(value)
    return allowed


def _lines(history: History) -> Iterator[Finding]:
    written = {op.line for op in history.ops if op.line}
    kept = {line for lines in history.lines.values() for line in lines}
    for op in history.ops:
        if op.line and op.answered and op.line not in kept:
            yield Finding(rule="line", path=next(iter(op.removes)), text=f"{op.line!r}, appended by {op.machine}, is nowhere")
    for path, lines in history.lines.items():
        if set(lines) - written:
            yield Finding(rule="foreign", path=path, text=f"it has lines that nobody wrote: {sorted(set(lines) - written)[:3]}")
        if path.startswith(OWN_LOG):
            order = [op.line for op in history.ops if op.line in lines and path in op.removes]
            if lines != order:
                yield Finding(rule="line", path=path, text="its lines are not in the order in which they were written")


def _apart(history: History) -> Iterator[Finding]:
    server = history.finals.get(SERVER, {})
    for machine, tree in history.finals.items():
        for path in sorted(path for path in server.keys() | tree.keys() if server.get(path) != tree.get(path)):
            text = f"{machine} has {_short(tree.get(path))}, the server {_short(server.get(path))}"
            yield Finding(rule="apart", path=path, text=text)
        for path in sorted(history.folders.get(SERVER, set()) ^ history.folders.get(machine, set())):
            yield Finding(rule="apart", path=path, text=f"the folder is only at one of {machine} and the server")


def _told(op: Op, path: str) -> str:
    parts = [op.what, "" if op.answered else "(no answer)"]
    parts += [f"over {_short(op.removes[path])}"] if path in op.removes else []
    parts += [f"puts {_short(op.puts[path])}"] if path in op.puts else []
    parts += [op.line] if op.line else []
    return " ".join(part for part in parts if part)


def _short(content: str | None) -> str:
    return "nothing" if content is None else "an empty file" if content == EMPTY else content[:8]


def _all(contents: Iterable[str | None]) -> str:
    return " or ".join(sorted(_short(content) for content in contents))

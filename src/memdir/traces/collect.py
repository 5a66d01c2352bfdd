"""From operations to events. An operation is what the system did; an event is what somebody did: a save through a temporary
file and a rename is one edit, a file that is made with what was just read is a copy.

Operations wait SETTLE_MS before they become events, because what follows tells what they were. No threads, no clock: whoever
collects gives operations in order, and asks for what has settled.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memdir.core.ids import new_id
from memdir.fs.operations import CONTENT_MAX_BYTES, COPY_MS, Operation
from memdir.traces.events import Event, counted, delta, depth_of, hash_of, text_of

SETTLE_MS: Final = 1500
SAVE_MS: Final = 60_000
"""Between the making of a temporary file and its rename to the real name."""
AGAIN_MS: Final = 1000
"""Between two looks of a process at the same file or folder that are one."""
IDLE_MS: Final = 30 * 60_000
"""Who does nothing for so long begins another session."""
PENDING_MAX: Final = 4096
BULK_FILES: Final = 100
BULK_MS: Final = 60_000
"""A program that touches more than BULK_FILES of a session within this time works in bulk: it unpacks, copies, searches, builds
or backs up. What it does is marked `is_bulk`, keeps no contents and tells nothing of habits."""
_PROGRAMS_MAX: Final = 256
_NO_WORD: Final = r"(?![A-Z]?[a-z]+$|[A-Z]+$|\d+$)"
"""Six letters that are written as a word is (`README.Debian`), and six digits (`log.202411`), are no random ones."""
_TEMPORARY: Final = re.compile(
    r"(?:^|/)(?:\.?#.*|\.~lock\..*|4913|\.goutputstream-\w+|\.nfs\w+|\.fuse_hidden\w+|tmp\w{6,}|\.tmp[\w.-]*|sed\w{6}|XX\w{6})$"
    rf"|(?:^|/)zi{_NO_WORD}[A-Za-z0-9]{{6}}$"
    r"|(?:~|___jb_(?:tmp|old)___|\.sw[g-px]|\.tmp|\.temp|\.part|\.crdownload|\.bak~|\.bck|\.kate-swp|\.tmp[\w.-]{4,}|\.\w+-(?:journal|wal|shm))$"
    rf"|\.{_NO_WORD}[A-Za-z0-9]{{6}}$|(?:^|/)\.[^/]+\.{_NO_WORD}\w{{6}}$"
)
"""Names that tools give to files for a moment: editors, sed, mkstemp(3), zip, browsers, SQLite."""
_BACKUP: Final = re.compile(
    r"(?:~|\.bak|\.orig|\.old|[-_ .](?:backup|copy|kopie)(?:[-_ .]?\d*)?(?:\.\w+)?"
    r"| \(copy\)(?:\.\w+)?)$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class _Touched:
    """Files that a program touched, and since when; what works in bulk does so until it has been at rest for BULK_MS."""

    since_ms: int = 0
    last_ms: int = 0
    paths: set[str] = field(default_factory=set)

    @property
    def is_bulk(self) -> bool:
        return len(self.paths) > BULK_FILES

    def add(self, path: str, at_ms: int) -> None:
        if at_ms - (self.last_ms if self.is_bulk else self.since_ms) > BULK_MS:
            self.since_ms, self.paths = at_ms, set()
        self.last_ms = at_ms
        if not self.is_bulk:
            self.paths.add(path)


class Workers:
    """Which programs work in bulk: those that touched something last, at most _PROGRAMS_MAX. Not for several threads."""

    def __init__(self) -> None:
        self._touched: OrderedDict[tuple[str, str], _Touched] = OrderedDict()
        """By session and program."""

    def note(self, operation: Operation) -> None:
        """What one of them does."""
        who = operation.session_key, operation.actor
        touched = self._touched.setdefault(who, _Touched())
        self._touched.move_to_end(who)
        touched.add(operation.target or operation.path, operation.at_ms)
        while len(self._touched) > _PROGRAMS_MAX:
            self._touched.popitem(last=False)

    def is_bulk(self, session_key: str, actor: str) -> bool:
        touched = self._touched.get((session_key, actor))
        return touched is not None and touched.is_bulk


class Collector:
    """Of one root. Not for several threads."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._pending: dict[int, Operation] = {}
        """By number, in order."""
        self._latest: dict[tuple[str, str], int] = {}
        """The last pending one of a kind at a path, and that a rename led away from (`from`) it."""
        self._count = 0
        self._views: dict[tuple[str, str], tuple[int, int]] = {}
        """How often a session read a path, and when last."""
        self._sessions: dict[str, tuple[str, int]] = {}
        self._workers = Workers()

    def take(self, operation: Operation) -> None:
        """The next one."""
        self._workers.note(operation)
        if self._is_told(operation):
            return
        merged = self._merged(operation)
        for one in (operation,) if merged is None else merged:
            self._add(one)

    def _is_bulk(self, operation: Operation) -> bool:
        return self._workers.is_bulk(operation.session_key, operation.actor)

    def _is_told(self, operation: Operation) -> bool:
        """Whether one before it of the same process says it: editors open what they show twice, a listing takes several
        requests, a copier closes its source last."""
        earlier = {"browse": (("browse", AGAIN_MS),), "read": (("read", AGAIN_MS), ("copied", COPY_MS))}.get(operation.kind, ())
        found = (self._earlier(operation, kind, operation.path, within_ms=within_ms) for kind, within_ms in earlier)
        return any(number is not None and self._pending[number].pid == operation.pid for number in found)

    def settled(self, now_ms: int, *, everything: bool = False) -> list[Event]:
        """Events whose operations nothing can change any more. What looks like a temporary file waits for its rename."""
        done: list[int] = []
        for number, one in self._pending.items():
            too_many = len(self._pending) - len(done) > PENDING_MAX
            waits_ms = SAVE_MS if one.kind == "write" and one.created and _TEMPORARY.search(one.path) else SETTLE_MS
            if everything or too_many or now_ms - one.at_ms >= waits_ms:
                done.append(number)
        found = [event for number in done for event in self._event(self._pending.pop(number))]
        if len(self._latest) > 4 * PENDING_MAX:
            self._latest = {key: number for key, number in self._latest.items() if number in self._pending}
        return found

    # what operations were

    def _add(self, one: Operation) -> None:
        self._count += 1
        self._pending[self._count] = one
        self._latest[one.kind, one.target or one.path] = self._count
        if one.kind == "rename":
            self._latest["from", one.path] = self._count
        elif one.kind == "copy":
            self._latest["copied", one.path] = self._count

    def _earlier(self, last: Operation, kind: str, path: str, *, within_ms: int) -> int | None:
        """The number of the last pending one of a kind at a path."""
        number = self._latest.get((kind, path))
        one = None if number is None else self._pending.get(number)
        return None if one is None or last.at_ms - one.at_ms > within_ms else number

    def _merged(self, last: Operation) -> list[Operation] | None:
        """What an operation is together with one before it, which goes. None: it is nothing but itself."""
        if last.kind == "rename":
            return self._saved_by_rename(last)
        if last.kind == "write":
            return self._made_anew(last) if last.created else self._filled(last)
        if last.kind == "delete":
            return self._only_for_a_moment(last)
        if last.kind == "copy":  # it reads its source; that is not reading
            read = self._earlier(last, "read", last.path, within_ms=COPY_MS)
            if read is not None and self._pending[read].pid == last.pid:
                del self._pending[read]
        return None

    def _saved_by_rename(self, last: Operation) -> list[Operation] | None:
        """`notes.tmp` was written and takes the place of `notes.md`: an edit of `notes.md`, or the making of it."""
        number = self._earlier(last, "write", last.path, within_ms=SAVE_MS)
        if number is None:
            number = self._earlier(last, "copy", last.path, within_ms=SAVE_MS)
        made = None if number is None else self._pending[number]
        (folder, _, old), (place, _, new) = last.path.rpartition("/"), last.target.rpartition("/")
        is_temporary = _TEMPORARY.search(last.path) is not None or old.startswith(f".{new}.")
        is_beside = folder == place and old.startswith(new)
        if number is None or made is None:  # made before anybody looked
            if not is_temporary or _is_side_file(last.target):
                return None
            made = replace(last, kind="write", created=True, size_bytes=len(last.after or b""))
        elif not (made.created or made.kind == "copy") or not (last.replaced or is_temporary or is_beside):
            return None
        else:
            del self._pending[number]
        raw = last.raw if made.raw == last.raw else f"{made.raw} + {last.raw}"
        if made.kind == "copy" and not last.replaced:
            return [replace(made, at_ms=last.at_ms, target=last.target, raw=raw)]
        saved = replace(
            made, kind="write", at_ms=last.at_ms, path=last.target, target="",
            before=last.before if last.replaced else None, after=last.after if made.after is None else made.after,
            created=not last.replaced, raw=raw,
        )  # fmt: skip
        return (self._filled(saved) if last.replaced else self._made_anew(saved)) or [saved]

    def _made_anew(self, last: Operation) -> list[Operation] | None:
        """An editor put the old file aside, or deleted it, and the new one comes under its name."""
        number = self._earlier(last, "from", last.path, within_ms=SETTLE_MS)
        if number is not None and _is_side_file(self._pending[number].target):
            moved = self._pending.pop(number)
            kept = replace(moved, kind="copy", fields={"is_backup": True}, raw=f"{moved.raw} (set aside)")
            return [kept, replace(last, created=False, before=moved.after, raw=f"{moved.raw} + {last.raw}")]
        number = self._earlier(last, "delete", last.path, within_ms=SETTLE_MS)
        if number is not None and self._pending[number].pid == last.pid:
            gone = self._pending.pop(number)
            probe = self._earlier(last, "write", last.path, within_ms=SETTLE_MS)
            if probe is not None and self._pending[probe].created and self._pending[probe].after == last.after:
                del self._pending[probe]  # whoever watches a folder from outside saw the new file already where it was tried
                return [last]
            return [replace(last, created=False, before=gone.before, raw=f"{gone.raw} + {last.raw}")]
        return None

    def _only_for_a_moment(self, last: Operation) -> list[Operation] | None:
        """What only stood there for a moment was a tool's own."""
        made = self._earlier(last, "write", last.path, within_ms=SAVE_MS)
        if (
            made is not None
            and self._pending[made].created
            and (_TEMPORARY.search(last.path) or self._was_write_probe(made, last))
        ):
            del self._pending[made]
            return []
        aside = self._earlier(last, "copy", last.path, within_ms=SAVE_MS)
        if aside is not None and self._pending[aside].fields.get("is_backup"):
            del self._pending[aside]
            return []
        return None

    def _was_write_probe(self, made: int, last: Operation) -> bool:
        """Whether a program only made sure that it may write there, as zip does."""
        one = self._pending[made]
        return one.pid == last.pid and not one.size_bytes and not one.after and last.at_ms - one.at_ms <= SETTLE_MS

    def _filled(self, last: Operation) -> list[Operation] | None:
        """A file that is made empty, or emptied, and then filled by the same process was changed once."""
        number = self._earlier(last, "write", last.path, within_ms=SETTLE_MS)
        if number is None or self._pending[number].pid != last.pid or self._pending[number].after != b"":
            return None
        before = self._pending.pop(number)
        return [replace(last, before=before.before, created=before.created, raw=before.raw)]

    # events

    def _event(self, one: Operation) -> Iterator[Event]:
        kind, fields, path = self._told(one)
        if kind is None:
            return
        if self._is_bulk(one):
            fields = {key: value for key, value in fields.items() if key not in ("content", "content_hex")} | {"is_bulk": True}
        yield Event(
            id=new_id(), type=kind, timestamp_ms=one.at_ms, session=self._session(one), actor=one.actor, pid=one.pid,
            root=self._root, path=path, fields=fields, raw=one.raw or one.kind,
        )  # fmt: skip

    def _told(self, one: Operation) -> tuple[str | None, dict[str, Any], str]:
        """Type, fields and path."""
        path = one.path
        if one.kind == "write":
            return self._change(one)
        if one.kind == "read":
            told = "file_read", {**_kind_of(path), **self._view(one), "length": one.size_bytes, **one.fields}, path
        elif one.kind == "browse":
            told = "file_browse", {"dir_path": path, "files_listed": one.size_bytes}, path
        elif one.kind == "search":
            told = "file_search", dict(one.fields), path
        elif one.kind == "mkdir":
            told = "dir_create", {"dir_path": path, **one.fields}, path
        elif one.kind in ("delete", "rmdir"):
            is_temporary = _TEMPORARY.search(path) is not None
            told = "file_delete", {"was_temporary": is_temporary, "is_dir": one.kind == "rmdir", **one.fields}, path
        elif one.kind == "copy":
            is_backup = bool(one.fields.get("is_backup")) or _BACKUP.search(one.target) is not None
            fields = {"src_path": path, "dest_path": one.target, "is_backup": is_backup, **_content(one.after)}
            told = "file_copy", fields, one.target
        else:
            fields = {"old_path": path, "new_path": one.target, **one.fields}
            if path.rpartition("/")[0] == one.target.rpartition("/")[0]:
                told = "file_rename", fields | {"naming_pattern": naming(one.target)}, one.target
            else:
                told = "file_move", fields | {"dest_depth": depth_of(one.target)}, one.target
        return told

    def _change(self, one: Operation) -> tuple[str | None, dict[str, Any], str]:
        """What a write was: the making of a file, an edit, or that it was written over by something unknown."""
        before_hash = None if one.before is None else hash_of(one.before)
        after_hash = None if one.after is None else hash_of(one.after)
        hashes = {"before_hash": None if one.created else before_hash, "after_hash": after_hash}
        kind = _kind_of(one.path)
        if one.created:
            fields = {**kind, "operation": "create", "length": one.size_bytes, **hashes, **_content(one.after)}
            return "file_write", fields, one.path
        if one.before is not None and one.before == one.after:
            return None, {}, one.path
        old = None if one.before is None else text_of(one.before)
        new = None if one.after is None else text_of(one.after)
        if old is None or new is None:
            fields = {**kind, "operation": "overwrite", "length": one.size_bytes, **hashes, **_content(one.after)}
            return "file_write", fields, one.path
        changes = delta(old, new)
        added, deleted, modified = counted(changes)
        lines = {"lines_added": added, "lines_deleted": deleted, "lines_modified": modified}
        return "file_edit", {**kind, "tool": one.actor, **lines, "delta": changes, **hashes}, one.path

    def _view(self, one: Operation) -> dict[str, Any]:
        if self._is_bulk(one):
            return {"view_count": 1, "revisit_ms": None}
        session = self._session(one)
        count, last_ms = self._views.get((session, one.path), (0, 0))
        self._views[session, one.path] = (count + 1, one.at_ms)
        while len(self._views) > PENDING_MAX:
            del self._views[next(iter(self._views))]
        return {"view_count": count + 1, "revisit_ms": one.at_ms - last_ms if count else None}

    def _session(self, one: Operation) -> str:
        """The same until nothing came for IDLE_MS."""
        known = self._sessions.get(one.session_key)
        if known is None or one.at_ms - known[1] > IDLE_MS:
            known = (f"s-{one.at_ms:x}-{hash_of(one.session_key.encode())[:6]}", one.at_ms)
        self._sessions[one.session_key] = (known[0], max(known[1], one.at_ms))
        while len(self._sessions) > PENDING_MAX:
            del self._sessions[next(iter(self._sessions))]
        return known[0]


def derived(events: Sequence[Event]) -> list[Event]:
    """References and switches between files, by the events of one session in their order."""
    made: list[Event] = []
    last: Event | None = None
    switches = 0
    for event in events:
        if event.type not in ("file_read", "file_write", "file_edit"):
            continue
        if last is not None and last.path != event.path:
            switches += 1
            fields: dict[str, Any] = {
                "from_file": last.path,
                "to_file": event.path,
                "trigger": event.type,
                "switch_count": switches,
            }
            made.append(replace(event, id=new_id(), type="context_switch", raw="derived", fields=fields))
            if last.type == "file_read" and event.type != "file_read":
                fields = {"src_file": last.path, "target_file": event.path, "ref_type": "read_then_write"}
                fields["interval_ms"] = event.timestamp_ms - last.timestamp_ms
                made.append(replace(event, id=new_id(), type="cross_file_ref", raw="derived", fields=fields))
        last = event
    return made


def _is_side_file(path: str) -> bool:
    return _TEMPORARY.search(path) is not None or _BACKUP.search(path) is not None


def _kind_of(path: str) -> dict[str, Any]:
    name = path.rpartition("/")[2]
    return {"file_type": name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""}


def _content(data: bytes | None) -> dict[str, Any]:
    """What a file held, as text where it is some: for rebuilding it, and for what its owner writes about."""
    if data is None or len(data) > CONTENT_MAX_BYTES:
        return {}
    text = text_of(data)
    return {"content_hex": data.hex()} if text is None else {"content": text}


_STYLES: Final = (
    ("dated", re.compile(r"\d{4}-?\d{2}-?\d{2}.*")),
    ("snake", re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)+")),
    ("kebab", re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)+")),
    ("camel", re.compile(r"[A-Za-z][a-z0-9]*(?:[A-Z][a-z0-9]+)+")),
)


def naming(path: str) -> str:
    """How a name is made: `dated`, `snake`, `kebab`, `camel`, `spaced`, `plain`."""
    name = path.rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    found = next((style for style, pattern in _STYLES if pattern.fullmatch(stem)), None)
    return found or ("spaced" if " " in stem else "plain")

"""Planning what changes in hosts' files, and doing it: in and out, each file whole and in one step.

All is planned before anything is written: a file that cannot be changed safely stops an installation before its first byte. The
records are written before the files, so that whoever comes after a crash knows what may be in them.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.agents.installers.filetext import Done, present, with_part, without_part
from memdir.agents.installers.hosts import NAME, Part, Reach, Target, targets
from memdir.agents.installers.records import Entry, Record, Records, sha256
from memdir.core.errors import MemdirError, StorageError
from memdir.core.filelock import locked_file
from memdir.core.othersfiles import read_file, replace_file
from memdir.core.paths import ensure_dir, explained

FILE_MAX_BYTES: Final = 32 << 20
"""Claude Code's own file of state grows to several megabytes."""
_LOCK_TIMEOUT_S: Final = 10.0
_OTHER: Final = {
    "json": "an entry {key} of its own, which stays",
    "toml": f"a table mcp_servers.{NAME} of its own, which stays",
    "text": "a block 'memdir:begin {key}' that was changed, which stays: take it out by hand to get a new one",
}
"""What is told of a file in which something else stands where a part would go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens to one file. None: it is not there (before, after)."""

    path: str
    before: bytes | None
    after: bytes | None
    info: os.stat_result | None
    record: Record | None
    """What is noted of the file from now on."""
    remarks: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One file of one host, as `--check` tells it."""

    host: str
    path: str
    state: str
    """`set up`, `missing`, `other` (something else has the name), or why it cannot be read."""


@contextmanager
def locked(records: Records) -> Iterator[None]:
    """One installer of this user at a time."""
    ensure_dir(records.lock_file.parent)
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    with locked_file(records.lock_file, deadline=deadline, busy="another memdir is changing the settings of agent hosts"):
        yield


def check(hosts: Sequence[str], reach: Reach) -> list[State]:
    """How each file of the hosts is doing."""
    found = []
    for host in hosts:
        for target in targets(host, reach):
            try:
                read = read_file(_real(target.file, reach), max_bytes=FILE_MAX_BYTES)
                data = b"" if read is None else read[0]
                states = {present(data, target.kind, part) for part in target.parts}
                state = "missing" if "no" in states else "other" if "other" in states else "set up"
            except MemdirError as error:
                state = error.message
            except OSError as error:
                state = error.strerror or str(error)
            found.append(State(host=host, path=str(target.file), state=state))
    return found


def plan(hosts: Sequence[str], reach: Reach, records: Records) -> list[Change]:
    """What an installation changes. StorageError that names the file for the first one that cannot be changed."""
    known = records.load()
    wanted: dict[str, tuple[Target, list[tuple[str, Part]]]] = {}
    for host in hosts:
        for target in targets(host, reach):
            real = str(_real(target.file, reach))
            _, parts = wanted.setdefault(real, (target, []))
            parts.extend((host, part) for part in target.parts)
    changes = []
    for path, (target, parts) in wanted.items():
        with _naming(path):
            changes.append(_planned(path, target, parts, known.get(path), records))
    return changes


def plan_removal(records: Records, *, hosts: Sequence[str] | None, reach: Reach | None) -> tuple[list[Change], list[str]]:
    """What taking out changes, of `hosts` (None: all) and of one reach (None: wherever something was put), and which files have
    to be left alone, with the reason."""
    changes: list[Change] = []
    problems: list[str] = []
    only = None
    if reach is not None:
        names = hosts or sorted(
            {host for record in records.load().values() for entry in record.entries for host in entry.hosts}
        )
        only = {str(_real(target.file, reach)) for host in names for target in targets(host, reach)}
    for path, record in sorted(records.load().items()):
        if only is not None and path not in only:
            continue
        try:
            with _naming(path):
                change = _removal(record, hosts, records)
        except MemdirError as error:
            problems.append(error.message)
            continue
        if change is not None:
            changes.append(change)
    return changes, problems


def apply(changes: Iterable[Change], records: Records) -> None:
    """Write what was planned. StorageError names the file; files before it are done then."""
    known = records.load()
    doing = [change for change in changes if change.changes or change.record != known.get(change.path)]
    coming = dict(known)
    for change in doing:
        if change.record is not None:
            if change.record.original_sha256 is not None and change.before is not None:
                _keep(records, change, known.get(change.path))
            coming[change.path] = change.record
    records.save(coming)
    for change in doing:
        with _naming(change.path):
            _write(change, coming.get(change.path))
        if change.record is None:
            coming.pop(change.path, None)
    records.save(coming)
    records.prune(coming)


# --- in ----------------------------------------------------------------------------------------------------------------


def _planned(path: str, target: Target, parts: list[tuple[str, Part]], record: Record | None, records: Records) -> Change:
    read = read_file(Path(path), max_bytes=FILE_MAX_BYTES)
    data, info = (None, None) if read is None else read
    if data is None:
        record = None
    entries = _merged(record, parts)
    if record is not None and data is not None and _as_recorded(record, entries, data):
        return Change(path=path, before=data, after=data, info=info, record=record)
    base = data if record is None or data is None else _base(record, data, records)
    text = target.new.encode() if base is None else base
    remarks, done = [], []
    for entry in entries:
        part = entry.done.part
        state = present(text, target.kind, part)
        if state == "no":
            text, made = with_part(text, target.kind, part)
            done.append(dataclasses.replace(entry, done=made))
        elif state == "other":
            remarks.append(f"{target.file} has {_OTHER[target.kind].format(key=part.key)}")
    if not done:
        return Change(path=path, before=data, after=data, info=info, record=record, remarks=tuple(remarks))
    return Change(
        path=path, before=data, after=text, info=info, remarks=tuple(remarks),
        record=Record(
            path=path, kind=target.kind, new=target.new, original_sha256=None if base is None else sha256(base),
            written_sha256=sha256(text), entries=tuple(done),
            folders=record.folders if record is not None else tuple(_missing_folders(Path(path))),
        ),
    )  # fmt: skip


def _merged(record: Record | None, parts: list[tuple[str, Part]]) -> list[Entry]:
    """What is to be in the file: what other hosts have there, and what these want, in the order in which it came."""
    asked = {host for host, _ in parts}
    merged: list[tuple[Part, Done, list[str]]] = []
    for entry in () if record is None else record.entries:
        staying = [host for host in entry.hosts if host not in asked or (host, entry.done.part) in parts]
        if staying:
            merged.append((entry.done.part, entry.done, staying))
    for host, part in parts:
        same = next((hosts for known, _, hosts in merged if known == part), None)
        if same is None:
            merged.append((part, Done(part=part), [host]))
        elif host not in same:
            same.append(host)
    return [Entry(hosts=tuple(hosts), done=done) for _, done, hosts in merged]


def _as_recorded(record: Record, entries: list[Entry], data: bytes) -> bool:
    """Whether all that is wanted is noted and in the file, whatever else was changed in it."""
    return tuple(entries) == record.entries and all(
        present(data, record.kind, entry.done.part) == "yes" for entry in entries
    )  # fmt: skip


def _base(record: Record, data: bytes, records: Records) -> bytes | None:
    """The file without us: as it was, when nobody else changed it since."""
    if sha256(data) == record.written_sha256:
        return records.original(record)
    return _without(record, data, record.entries)


# --- out ---------------------------------------------------------------------------------------------------------------


def _removal(record: Record, hosts: Sequence[str] | None, records: Records) -> Change | None:
    """None when none of the hosts has anything in the file."""
    going = [entry for entry in record.entries if hosts is None or set(entry.hosts) & set(hosts)]
    if not going:
        return None
    staying = []
    for entry in record.entries:
        left = () if hosts is None else tuple(host for host in entry.hosts if host not in hosts)
        if left:
            staying.append(dataclasses.replace(entry, hosts=left))
    kept = [entry.done for entry in staying]
    going = [entry for entry in going if entry.done not in kept]
    read = read_file(Path(record.path), max_bytes=FILE_MAX_BYTES)
    data, info = (None, None) if read is None else read
    untouched = data is not None and sha256(data) == record.written_sha256
    if data is None or sha256(data) == record.original_sha256:
        return Change(path=record.path, before=data, after=data, info=info, record=None)
    if not staying:
        after = records.original(record) if untouched else _emptied(record, _without(record, data, going), records)
        return Change(path=record.path, before=data, after=after, info=info, record=None)
    after = _without(record, data, going)
    written = sha256(after) if untouched else record.written_sha256
    left_record = dataclasses.replace(record, entries=tuple(staying), written_sha256=written)
    return Change(path=record.path, before=data, after=after, info=info, record=left_record)


def _without(record: Record, data: bytes, entries: Sequence[Entry]) -> bytes:
    for entry in reversed(entries):
        data = without_part(data, record.kind, entry.done)
    return data


def _emptied(record: Record, rest: bytes, records: Records) -> bytes | None:
    """A file that holds nothing but what it began as goes back to that, or goes."""
    if rest.strip() in (b"", record.new.strip().encode()):
        original = records.original(record)
        if original is None or not original.strip():
            return original
    return rest


# --- files -------------------------------------------------------------------------------------------------------------


def _real(file: Path, reach: Reach) -> Path:
    """Links followed; a project's settings must be in the project. StorageError."""
    real = Path(os.path.realpath(file))
    if reach.folder is not None and not real.is_relative_to(os.path.realpath(reach.folder)):
        raise StorageError(f"{file} is a link to {real}, outside of the project", hint="replace the link, or use --user")
    return real


def _missing_folders(path: Path) -> Iterator[str]:
    for folder in path.parents:
        if folder.exists():
            return
        yield str(folder)


def _keep(records: Records, change: Change, known: Record | None) -> None:
    """The bytes without us, for the way back: the file as it is now, unless we are in it already."""
    record = change.record
    assert record is not None
    assert change.before is not None
    if sha256(change.before) == record.original_sha256:
        records.keep(change.before)
    elif known is not None and known.original_sha256 != record.original_sha256:
        base = _base(known, change.before, records)
        if base is not None:
            records.keep(base)


def _write(change: Change, record: Record | None) -> None:
    path = Path(change.path)
    if change.after is None:
        path.unlink(missing_ok=True)
        for folder in () if record is None else record.folders:
            with suppress(OSError):  # somebody else put something into it
                os.rmdir(folder)
    elif change.changes:
        if change.before is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, change.after, change.info)


@contextmanager
def _naming(path: str) -> Iterator[None]:
    """Errors say which file they are about."""
    try:
        yield
    except MemdirError as error:
        message = error.message if path in error.message else f"{path} is left as it is: {error.message}"
        raise StorageError(message, hint=error.hint) from None
    except OSError as error:
        told = explained(error)
        raise StorageError(f"{path} is left as it is: {told.message if told else error.strerror}") from error

"""What a crash, a hang or a deleted file leaves of mounts: found, said in words, and mended without losing anything.

Nothing here deletes a cache, and nothing ends a process that was not seen to hold the memory's own lock. Everything a daemon
acknowledged is in its journal, so ending one by force is safe; bringing the journal into the cache and checking that is part
of the mending.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.errors import BusyError, CorruptError, MemdirError
from memdir.core.processes import Process, command_line, end_process, lock_holders, process
from memdir.daemon import agent_hint
from memdir.daemon.control import ControlClient, DaemonGoneError
from memdir.daemon.registry import MountRecord, MountRegistry, lock_holder_exists

ANSWER_TIMEOUT_S: Final = 5.0
"""A daemon that says nothing for so long hangs; one that is busy answers `status` in far less."""
KILL_WAIT_S: Final = 5.0
_SHOWN: Final = 5
_SHARED: Final = ("database", "journal")
"""Findings of fsck whose repair can cost contents that the disk lost: a person decides on those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that is wrong. `mend` puts it right and returns what it did, in sentences; None: a person has to decide, and
    `hint` says how. MemdirError and OSError of `mend` say why it could not."""

    kind: str
    name: str | None
    """The memory, when it is about one."""
    path: str
    sentence: str
    plan: str
    """What `mend` will do."""
    hint: str = ""
    mend: Callable[[], list[str]] | None = None


def clear(registry: MountRegistry, record: MountRecord) -> bool:
    """Take away a mount that nobody serves any more, and write down that it is unmounted. Whether there was one."""
    from memdir.fs.fuse.mounting import clear_dead_mount

    current = registry.get(record.id)
    if current.state == "alive":
        return False  # somebody mounted it again meanwhile
    agent_hint.take_out(Path(current.cache_dir))
    cleared = clear_dead_mount(Path(record.path))
    if current.pid is not None:
        registry.save(dataclasses.replace(current, pid=None, detached=False))
    return cleared


def of_memory(registry: MountRegistry, record: MountRecord, *, force: bool, thorough: bool) -> Iterator[Trouble]:
    """What is wrong with one memory, in the order in which it has to be mended. `force` may end a daemon that hangs;
    `thorough` checks the cache even when the last end was a clean one."""
    held = lock_holder_exists(record.lock_file)
    if held and record.state == "alive" and record.pid in [holder.pid for holder in lock_holders(record.lock_file)]:
        trouble = _silent_daemon(registry, record, force=force)
        if trouble is not None:
            yield trouble
        if trouble is None or trouble.mend is None:
            return
    elif held:
        yield _held_by_another(record, force=force)
        return
    record = registry.get(record.id)  # mending what was yielded may have changed it
    crashed = record.state == "dead"
    if crashed:
        yield _crashed(registry, record)
    elif record.state == "stopped" and _stands_dead(record.path):
        yield Trouble(
            kind="dead-mount", name=record.name, path=record.path, sentence=f"{record.path} is a mount without a daemon",
            plan="clear the mount", mend=lambda: [_clear_sentence(registry, record)],
        )  # fmt: skip
    yield from _of_cache(record, thorough=thorough or crashed or held)


def at_place(path: Path) -> Trouble | None:
    """A dead memdir mount at `path` that is in no record of this home."""
    if not _stands_dead(str(path)):
        return None

    def mend() -> list[str]:
        from memdir.fs.fuse.mounting import clear_dead_mount

        return ["cleared the dead mount"] if clear_dead_mount(path) else ["it was cleared meanwhile"]

    return Trouble(
        kind="dead-mount", name=None, path=str(path), sentence=f"{path} is a mount without a daemon, and in no record here",
        plan="clear the mount", mend=mend,
    )  # fmt: skip


# --- a daemon that runs ------------------------------------------------------------------------------------------------


def _silent_daemon(registry: MountRegistry, record: MountRecord, *, force: bool) -> Trouble | None:
    """None when it answers."""
    found = process(record.pid or 0)
    hint = f"`memdir recover {record.name} --force` ends it; nothing that was written is lost"
    if found is not None and found.is_stopped:
        why, hint = "it was halted by a signal (SIGSTOP)", f"`kill -CONT {found.pid}` lets it go on; {hint}"
    else:
        try:
            ControlClient(record.socket_file).call("status", ANSWER_TIMEOUT_S)
            return None
        except DaemonGoneError:
            why = "its socket is gone, so no command can reach it"
        except MemdirError as error:
            why = error.message
    if found is None:  # it ended while it was asked
        return _crashed(registry, record)
    sentence = f"the daemon (pid {found.pid}, since {_since(found)}) holds the cache and does not answer: {why}"
    if not force:
        return Trouble(kind="hung-daemon", name=record.name, path=record.path, sentence=sentence, plan="", hint=hint)
    return Trouble(
        kind="hung-daemon", name=record.name, path=record.path, sentence=sentence, plan="end the daemon, clear its mount",
        mend=lambda: [_end_holder(record.lock_file, found), *_after_end(registry, record)],
    )  # fmt: skip


def _held_by_another(record: MountRecord, *, force: bool) -> Trouble:
    """The lock is held, but not by the daemon of the record: one that is starting, an fsck, an import, or a stranger."""
    holders = lock_holders(record.lock_file)
    named = ", ".join(f"{holder}, since {_since(holder)}" for holder in holders) or "a process of another user"
    sentence = f"the cache is in use by another process than its daemon: {named}"
    ours = [holder for holder in holders if _is_memdir(holder)]
    if force and holders and ours == holders:
        return Trouble(
            kind="locked-cache", name=record.name, path=record.cache_dir, sentence=sentence, plan="end the process",
            mend=lambda: [_end_holder(record.lock_file, holder) for holder in ours],
        )  # fmt: skip
    hint = "wait for it, then try again"
    if ours:
        hint += f"; when it does not end, `memdir recover {record.name} --force` ends it"
    elif holders:
        hint += f"; it is no memdir, so end it yourself if it has to go: kill {holders[0].pid}"
    return Trouble(kind="locked-cache", name=record.name, path=record.cache_dir, sentence=sentence, plan="", hint=hint)


def _end_holder(lock_file: Path, found: Process) -> str:
    """End a process, having seen through its pidfd's lifetime that it is the one that holds the lock. BusyError."""
    try:
        handle = os.pidfd_open(found.pid)
    except ProcessLookupError:
        return f"{found} had ended meanwhile"
    try:
        if found.pid not in [holder.pid for holder in lock_holders(lock_file)]:
            raise BusyError(f"{found} does not hold the cache any more", hint="run `memdir recover` again")
        if not end_process(handle, wait_s=KILL_WAIT_S):
            raise BusyError(f"{found} cannot be ended", hint="it hangs in the kernel, see `dmesg`; only a reboot helps")
    finally:
        os.close(handle)
    return f"ended the process {found.pid}"


def _is_memdir(found: Process) -> bool:
    words = command_line(found.pid)
    return any(word in ("memdir.daemon", "memdir.cli") or word.rpartition("/")[2] == "memdir" for word in words[:4])


def _since(found: Process) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(found.started_at_s)) if found.started_at_s else "an unknown time"


# --- a daemon that is gone ---------------------------------------------------------------------------------------------


def _crashed(registry: MountRegistry, record: MountRecord) -> Trouble:
    other = process(record.pid or 0)
    reused = f"; its number belongs to another process now ({other.name})" if other is not None else ""
    where = f", and {record.path} is a mount without a daemon" if _stands_dead(record.path) else ""
    return Trouble(
        kind="crashed-daemon", name=record.name, path=record.path,
        sentence=f"the daemon (pid {record.pid}) ended without unmounting{reused}{where}",
        plan="clear the mount, bring the journal into the cache, check the cache",
        mend=lambda: _after_end(registry, record),
    )  # fmt: skip


def _after_end(registry: MountRegistry, record: MountRecord) -> list[str]:
    done = [_clear_sentence(registry, record)]
    try:
        os.unlink(record.socket_file)
        done.append("removed its socket")
    except FileNotFoundError:
        pass  # it went in order, or /run was emptied
    return done


def _clear_sentence(registry: MountRegistry, record: MountRecord) -> str:
    return "cleared the dead mount" if clear(registry, record) else "noted that it is not mounted"


def _stands_dead(path: str) -> bool:
    from memdir.fs.fuse.mountpoint import FSTYPE, is_dead, mount_at

    entry = mount_at(Path(path))
    return entry is not None and entry.fstype == FSTYPE and is_dead(Path(entry.mountpoint))


# --- the cache ---------------------------------------------------------------------------------------------------------


def _of_cache(record: MountRecord, *, thorough: bool) -> Iterator[Trouble]:
    """The journal that waits, other programs in the database, broken rules. The daemon is gone, or will be by then."""
    from memdir.fs.cache.journal import segment_paths
    from memdir.fs.cache.tables import DATABASE_NAME, is_missing

    folder = Path(record.cache_dir)
    if is_missing(folder):
        if record.used or segment_paths(folder):
            error = lost_database(folder, record.name)
            yield Trouble(
                kind="cache-gone", name=record.name, path=record.cache_dir, plan="", sentence=error.message, hint=error.hint
            )
        return
    strangers = {holder.pid: holder for name in (DATABASE_NAME, "sync.db") for holder in lock_holders(folder / name)}
    if strangers:
        named = ", ".join(f"{holder}, since {_since(holder)}" for holder in strangers.values())
        yield Trouble(
            kind="locked-database", name=record.name, path=record.cache_dir, plan="",
            sentence=f"another program has the database of the cache open and locked: {named}",
            hint="close it; only memdir may write there",
        )  # fmt: skip
        return
    if not thorough and not segment_paths(folder):
        return
    yield Trouble(
        kind="cache", name=record.name, path=record.cache_dir,
        sentence="what the daemon acknowledged last may wait in the journal" if segment_paths(folder) else "",
        plan="bring the journal into the cache, check the cache", mend=lambda: _mend_cache(record),
    )  # fmt: skip


def _mend_cache(record: MountRecord) -> list[str]:
    """Replay, check, repair what costs nothing. MemdirError when a person has to decide."""
    from memdir.fs.cache.filesystem import SqliteFs
    from memdir.fs.cache.fsck import check, repair, waiting_operations

    folder = Path(record.cache_dir)
    findings = check(folder)
    lossy = [finding for finding in findings if finding.kind in _SHARED]
    if lossy:
        raise CacheDamagedError(
            f"the cache is damaged: {lossy[0].detail}", hint=f"`memdir fsck {record.name} --repair` saves what can be read"
        )
    waiting = waiting_operations(folder)
    SqliteFs.open(folder, sync=record.sync).close()
    done = [f"brought {waiting:,} operations from the journal into the cache"] if waiting else []
    findings = check(folder)
    if not findings:
        return [*done, "checked the cache: clean"]
    left = [finding for finding in repair(folder) if not finding.repaired]
    if left:
        raise CacheDamagedError(
            f"the cache has {len(left)} broken rules that could not be repaired: {left[0].detail}",
            hint=f"see `memdir fsck {record.name}`",
        )
    return [*done, f"checked the cache: {len(findings)} broken rules, all repaired", *(f.detail for f in findings[:_SHOWN])]


def lost_database(folder: Path, name: str) -> CorruptError:
    """The error for a memory whose database was deleted or emptied."""
    return CorruptError(
        f"cache.db in {folder} is gone or empty, although {name} has been mounted before",
        hint=f"put it back from a copy; or start anew with what the server has: mv {folder} {folder}.old",
    )


class CacheDamagedError(MemdirError):
    """Checking the cache found what must not be mended without being asked."""

"""Where a shell's files come from: a container of a memory server, or a folder of this machine that nothing syncs.

The store is a cache of its own, beside those of mounts: a shell is to the server what another machine is. A process holds it
alone; a second shell for the same container takes another one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from memdir.core.errors import BusyError, UsageError
from memdir.core.paths import AppPaths, ensure_private_dir, write_private
from memdir.daemon.grep import Grep
from memdir.daemon.registry import MountLock, MountRecord
from memdir.daemon.syncing import Syncing
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.tables import DATABASE_NAME
from memdir.fs.views import ProfileFolder, ProfileView, SiblingVfs, ViewVfs
from memdir.shell.files import Files

if TYPE_CHECKING:
    from memdir.client.local import ServerInfo

_STORES_MAX: Final = 16
"""Shells of one container at a time."""
_STORES_FOLDER: Final = "shells"
_LOCK_NAME: Final = "lock"
_CONTAINER_NAME: Final = ".memdir-container"
"""Holds the name of the container that a user's folder belongs to."""


class MemoryStore:
    """The files of one shell, as `files`."""

    def __init__(
        self,
        paths: AppPaths,
        name: str,
        *,
        folder: Path | None = None,
        server: ServerInfo | None = None,
        sync: bool = True,
        read_only: bool = False,
        fetch_timeout_s: float = 30.0,
    ) -> None:
        """`folder` holds the store (default: one of this user's own for the container). `server`: default, the configured or
        the local one, which is started. Without `sync` the folder is all there is. BusyError: another process uses it;
        UsageError: other files lie in it, or those of another container."""
        self.name = name
        self._lock, held = _acquired(paths, name) if folder is None else _one(_for_a_store(folder))
        try:
            if sync and folder is not None:
                _keep_for(held, name)
            self._fs = SqliteFs.open(held, read_only=read_only, sync=sync)
        except BaseException:
            self._lock.release()
            raise
        record = MountRecord(
            id=held.name, name=name, path=f"/{name}", pid=None, started_at_ms=time.time_ns() // 1_000_000, sync=sync,
            log_file="", socket_file="", cache_dir=str(held), read_only=read_only, fetch_timeout_s=fetch_timeout_s,
        )  # fmt: skip
        profile, pages = ProfileView(), ProfileFolder()
        self._syncing = Syncing(paths, record, self._fs, profile, pages=pages, server=server)
        self._grep = Grep(name, self._fs, self._syncing)
        siblings = SiblingVfs(ViewVfs(self._fs, [profile, pages]))
        self._syncing.siblings = siblings
        self.files = Files(siblings, contents=self._syncing.contents, fetch_timeout_s=fetch_timeout_s)
        self._syncing.start()

    def wait(self, timeout_s: float) -> str | None:
        """Until the files of the server are here, at most `timeout_s`; else why they may not be."""
        if not self._syncing.enabled:
            return None
        engine = self._syncing.wait_engine(timeout_s)
        if engine is None:
            return self._syncing.error or "sync is still starting"
        if engine.wait_caught_up(timeout_s):
            return None
        state = engine.link.state()
        return state.error or "not all of the server's files are here yet"

    def grep(self, question: dict[str, Any]) -> dict[str, Any]:
        """See `daemon.grep.Grep.run`."""
        return self._grep.run(question)

    def close(self, drain_timeout_s: float) -> int | None:
        """Push what waits for at most `drain_timeout_s`, and let the folder go. How much is left for the next time; None when
        that cannot be said."""
        try:
            left = self._syncing.drain(drain_timeout_s)
            self._syncing.stop()
        finally:
            self._fs.close()
            self._lock.release()
        return left


def _acquired(paths: AppPaths, name: str) -> tuple[MountLock, Path]:
    """A free store of the container: the first, if nobody has it, as changes may wait in it."""
    if not name or "/" in name or name in (".", ".."):
        raise UsageError(f"{name!r} is no name of a container")
    base = ensure_private_dir(paths.data_dir) / _STORES_FOLDER
    for number in range(_STORES_MAX):
        try:
            return _one(base / (quote(name, safe="") + (f".{number}" if number else "")))
        except BusyError:
            continue
    raise BusyError(f"{_STORES_MAX} shells of {name} run already", hint="end one of them")


def _for_a_store(folder: Path) -> Path:
    """The folder that a user named, unless it has files in it, which the shell would not show and the store would lie among."""
    try:
        names = {entry.name for entry in folder.iterdir()} - {_LOCK_NAME, _CONTAINER_NAME}
    except FileNotFoundError:
        return folder
    except OSError as error:
        raise UsageError(f"{folder} cannot be used: {error.strerror}", hint="name a new or an empty folder") from None
    if names and DATABASE_NAME not in names:
        raise UsageError(
            f"{folder} has files in it, and a shell does not show files of this machine",
            hint="name a new or an empty folder: the shell keeps its files in a database there",
        )
    return folder


def _keep_for(folder: Path, name: str) -> None:
    """A folder that was synced belongs to its container from then on. UsageError for another one."""
    place = folder / _CONTAINER_NAME
    if not place.exists():
        write_private(place, f"{name}\n".encode())
        return
    other = place.read_text("utf-8", errors="replace").removesuffix("\n")
    if other != name:
        raise UsageError(f"{folder} holds files of {other!r}", hint="name another folder, or none")


def _one(folder: Path) -> tuple[MountLock, Path]:
    held = ensure_private_dir(folder)
    return MountLock.acquire(held / _LOCK_NAME), held

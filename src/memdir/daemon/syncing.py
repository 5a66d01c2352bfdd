"""The sync engine as the daemon has it: started in the background, absent at first, and for ever with `--no-sync`.

httpx and pydantic are imported by the starting thread, after the mount is usable.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.errors import MemdirError
from memdir.core.paths import AppPaths, write_private
from memdir.daemon.memory_paths import MemoryPaths
from memdir.daemon.registry import MountRecord
from memdir.daemon.remotes import Remotes
from memdir.daemon.waiting_readers import LateContents
from memdir.fs.views import ProfileFolder, ProfileView, SiblingVfs, is_virtual, read_pages

if TYPE_CHECKING:
    from memdir.client.credentials import Credentials
    from memdir.client.local import ServerInfo
    from memdir.client.remote import Remote
    from memdir.fs.source import ContentSource
    from memdir.fs.tree import SyncTree
    from memdir.sync.engine import Engine

log = logging.getLogger(__name__)

_PROFILE_FILE: Final = "profile.md"
_PAGES_FILE: Final = "profile-pages.json"
_PROFILE_MAX_BYTES: Final = 1 << 20
_START_WAIT_S: Final = 5.0
_JOIN_S: Final = 30.0
_CUT_JOIN_S: Final = 1.0
_REACH_TRIES: Final = 3
"""A connection that another thread has just given up may fail the first."""
_PROFILE_RETRY_S: Final = 5.0
_PROFILE_REFRESH_S: Final = 6 * 3600.0
_SIBLING_RETRY_S: Final = 1.0
"""The text of a file may come before the file itself."""


class Syncing:
    """The engine's life, and the profile that comes with it."""

    def __init__(
        self,
        paths: AppPaths,
        record: MountRecord,
        tree: SyncTree,
        profile: ProfileView,
        *,
        pages: ProfileFolder | None = None,
        on_memory_paths: Callable[[tuple[str, ...] | None], None] = lambda _: None,
        server: ServerInfo | None = None,
    ) -> None:
        """`on_memory_paths` keeps what the server has still to be told (None: nothing) for the next start. `server`: default,
        the configured one, or the local one, which is started."""
        self._server = server
        self._credentials: Credentials | None = None
        """Of the server elsewhere that the mount stays with, once it is known; None with the local one."""
        self._paths = paths
        self._record = record
        self._tree = tree
        self._profile = profile
        self._pages = pages or ProfileFolder()
        self.siblings: SiblingVfs | None = None
        """What shows the texts beside files; set before `start`."""
        self.working_style: Callable[[], Sequence[str]] = tuple
        """What the profile says of how its owner works, where that is recorded; set before `start`."""
        self._profile_file = Path(record.cache_dir) / _PROFILE_FILE
        self._pages_file = Path(record.cache_dir) / _PAGES_FILE
        self._engine: Engine | None = None
        self.contents = LateContents(self._engine_fetcher)
        self._started = threading.Event()
        self._profile_wanted = threading.Event()
        self._siblings_wanted = threading.Event()
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._server_started = False
        self._remotes = Remotes(Path(record.cache_dir), record.name, tree, max_delete=record.max_delete)
        self._connecting = threading.Lock()
        """One thread looks for the server or starts it; the others find what it found."""
        self._wanted = threading.Event()
        """Set by a request that needs the server, while it tries to reach it."""
        self.memory_paths = MemoryPaths(record.name, record.memory_paths, on_memory_paths)
        self.error: str | None = None
        """Why the engine could not be started."""
        self._show_stored_profile()

    @property
    def enabled(self) -> bool:
        return self._record.sync

    @property
    def profile_text(self) -> str:
        """What profile.md shows now."""
        return self._profile.text

    @property
    def engine(self) -> Engine | None:
        """The engine once it runs."""
        return self._engine

    def wait_engine(self, timeout_s: float = _START_WAIT_S) -> Engine | None:
        """The engine, waited for while it is starting; None without sync or when it failed."""
        if self.enabled:
            self._started.wait(timeout_s)
        return self._engine

    def start(self) -> None:
        """Begin in the background."""
        if not self.enabled:
            self._started.set()
            self.contents.open()
            return
        self._threads = [threading.Thread(target=self._start, name="sync-start", daemon=True)]
        self._threads[0].start()

    def _engine_fetcher(self) -> ContentSource | None:
        return None if self._engine is None else self._engine.fetcher

    def bring_server(self, starting: Callable[[], None] = lambda: None) -> bool:
        """Somebody asked for what needs the server: start the local one when it is stopped, and call `starting` before. The
        loops of a mount alone do not, or nobody could stop it. True when it had to be started, and answers; OfflineError when
        it could not be started."""
        from memdir.client.errors import OfflineError
        from memdir.client.local import hanging_pid, running_server

        engine = self._engine
        try:
            away = (
                engine is not None
                and self._elsewhere() is None
                and running_server(self._paths) is None
                and hanging_pid(self._paths) is None
            )
        except MemdirError as error:
            log.debug("no server is started: %s", error.message)
            return False
        if engine is None or not away:
            return False
        starting()
        self._wanted.set()
        for _ in range(_REACH_TRIES):
            engine.reach()
            state = engine.link.state()
            if state.online:
                break
        self._wanted.clear()
        if not state.online:
            raise OfflineError(state.error or "the local server could not be started", hint=state.hint)
        return True

    def drain(self, timeout_s: float) -> int | None:
        """Push what waits for at most `timeout_s`; how much is left, None when that cannot be said."""
        if not self.enabled:
            return 0
        engine = self.wait_engine()
        return engine.drain(timeout_s) if engine is not None else None

    def want_memory_paths(self, paths: tuple[str, ...]) -> None:
        """Facts shall be read in these paths of the container; the server is told as soon as it is there."""
        self.memory_paths.want(paths)
        self._profile_wanted.set()

    def hurry_stop(self) -> None:
        """End a drain that is under way."""
        self._stopping.set()
        if self._engine is not None:
            self._engine.end_drain()

    def stop(self) -> int:
        """End the engine; how much is left for the next mount."""
        join_s = _CUT_JOIN_S if self._stopping.is_set() else _JOIN_S
        self._stopping.set()
        self._profile_wanted.set()
        self._siblings_wanted.set()
        for thread in self._threads:
            thread.join(timeout=join_s)
        left = self._engine.stop() if self._engine is not None else 0
        self._remotes.close()
        return left

    def _start(self) -> None:
        try:
            from memdir.client.credentials import stamp
            from memdir.sync.contents.retention import KeepingPolicy
            from memdir.sync.engine import Engine
            from memdir.sync.push.max_delete import parse_max_delete

            engine = Engine(
                folder=Path(self._record.cache_dir),
                container=self._record.name,
                tree=self._tree,
                factory=self._client,
                is_virtual=is_virtual,
                on_profile=lambda _: self._profile_wanted.set(),
                on_siblings=self._siblings_wanted.set,
                keeping=KeepingPolicy(cache_bytes=self._record.cache_limit_bytes, prefetch_bytes=self._record.prefetch_bytes),
                max_delete=parse_max_delete(self._record.max_delete),
                credentials_stamp=lambda: stamp(self._paths),
            )
        except Exception as error:
            self.error = f"sync could not be started: {error}"
            log.exception("sync could not be started")
            self._started.set()
            self.contents.open()
            return
        if self._stopping.is_set():
            engine.close()
            self._started.set()
            self.contents.open()
            return
        engine.start()
        self._engine = engine
        self._started.set()
        self.contents.open()
        self._profile_wanted.set()
        if self.siblings is not None:
            thread = threading.Thread(
                target=self._siblings_loop, args=(engine, self.siblings), name="sync-siblings", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        self._profile_loop(engine)

    def _client(self) -> Remote:
        """A client of the server, whichever API that speaks. The local server is started once, again when it crashed, and again
        when somebody asked for what needs it; not by the loops alone when somebody stopped it."""
        from memdir.client.local import ensure_server, hanging_pid, running_server

        elsewhere = self._elsewhere()
        if elsewhere is not None:
            return self._spoken(elsewhere)
        with self._connecting:
            crashed = self._paths.server_state_file.exists()
            hanging = hanging_pid(self._paths) if crashed and self._server_started else None
            if hanging is not None:
                raise MemdirError(
                    f"the local server (pid {hanging}) does not answer",
                    hint="`memdir server status`; it may be stopped or busy",
                )
            if self._wanted.is_set() or crashed or not self._server_started:
                info = ensure_server(self._paths)
                self._server_started = True
                return self._spoken(info)
            found = running_server(self._paths)
            if found is None:
                raise MemdirError("the local server is stopped", hint="a search or `memdir sync` starts it again")
            return self._spoken(found)

    def _elsewhere(self) -> ServerInfo | None:
        """The server that was given, or that the mount was made with, whatever its user logs in to later; None for the local
        one."""
        from memdir.client.credentials import configured, refreshed
        from memdir.client.local import server_elsewhere

        if self._server is not None:
            return self._server
        known = self._credentials
        self._credentials = found = configured(self._paths) if known is None else refreshed(known)
        return None if found is None else server_elsewhere(found)

    def _spoken(self, server: ServerInfo) -> Remote:
        from memdir.client.http import Client

        client = Client.to(server)
        return client if server.is_local else self._remotes.speaking(client)

    def _profile_loop(self, engine: Engine) -> None:
        """Fetch the profile whenever it grew, and now and then, as what is recent changes by itself; after a failure again in
        a while."""
        from memdir.client.errors import ClientError
        from memdir.fs.views import render_profile, stored_pages

        failed = False
        while not self._stopping.is_set():
            self._profile_wanted.wait(_PROFILE_RETRY_S if failed else _PROFILE_REFRESH_S)
            self._profile_wanted.clear()
            if self._stopping.is_set():
                return
            try:
                self.memory_paths.settle(engine.link)
                profile = engine.link.call(lambda client: client.profile(self._record.name))
            except ClientError as error:
                failed = True
                log.debug("the profile could not be fetched: %s", error.message)
                continue
            failed = False
            text = render_profile(profile.static, profile.dynamic, self.working_style())
            self._profile.set_text(text)
            self._pages.set_pages(profile.pages)
            try:
                write_private(self._profile_file, text.encode("utf-8", "surrogateescape"))
                write_private(self._pages_file, stored_pages(profile.pages))
            except OSError as error:
                log.warning("the profile could not be kept for the next start: %s", error)

    def _siblings_loop(self, engine: Engine, shown: SiblingVfs) -> None:
        """Bring the texts beside files whenever there are new ones; after a failure, and while files are to come, again."""
        siblings = engine.siblings(shown.show)
        pause_s: float | None = 0.0
        try:
            siblings.begin()
            while not self._stopping.is_set():
                self._siblings_wanted.wait(pause_s)
                self._siblings_wanted.clear()
                if self._stopping.is_set():
                    return
                try:
                    pause_s = None if siblings.refresh() else _SIBLING_RETRY_S
                except MemdirError as error:
                    pause_s = _PROFILE_RETRY_S
                    log.debug("the texts beside files could not be brought: %s", error.message)
        except Exception:
            if not self._stopping.is_set():
                log.exception("texts beside files are not shown any more")

    def _show_stored_profile(self) -> None:
        try:
            with open(self._profile_file, "rb") as handle:
                self._profile.set_text(handle.read(_PROFILE_MAX_BYTES).decode("utf-8", "surrogateescape"))
            with open(self._pages_file, "rb") as handle:
                self._pages.set_pages(read_pages(handle.read(_PROFILE_MAX_BYTES)))
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("the stored profile could not be read: %s", error)

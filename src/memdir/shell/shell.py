"""`Shell`: bash for an agent over a memory, in this process."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from memdir.core.errors import UsageError
from memdir.shell.commands import COMMANDS, Command, builtins
from memdir.shell.interpreter import Interpreter, ShellLimits, ShellResult

if TYPE_CHECKING:
    from memdir.shell.files import Files
    from memdir.shell.store import MemoryStore

_DRAIN_S: Final = 30.0
_END_S: Final = 5.0
"""How long a script that was interrupted is waited for."""
_FIRST_WAIT_S: Final = 15.0
_NAME: Final = re.compile(r"[\w.:@+-]{1,100}")
_RESERVED: Final = frozenset({"bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr", "var"})
DIRECTORY_NAME: Final = "memory"
"""Where the files stand in the shell when they have no container to be named after."""


class Shell:
    """One shell over one memory, which stands at `/NAME`, the first working directory. Variables, functions and the working
    directory last from script to script; files outside the memory, as in /tmp, until `close`.

    No process is started, and nothing of this machine is seen but the memory: neither files, nor environment, nor network.
    Thread-safe: scripts run one after the other.
    """

    def __init__(
        self,
        container: str | None = None,
        *,
        server: str | None = None,
        api_key: str | None = None,
        directory: Path | str | None = None,
        read_only: bool = False,
        env: Mapping[str, str] | None = None,
        limits: ShellLimits | None = None,
        commands: Mapping[str, Command] | None = None,
        network: Sequence[str] = (),
        wait_s: float = _FIRST_WAIT_S,
    ) -> None:
        """Open the memory `container` of `server` (default: the configured one, or this user's local one, which is started), or
        without a container the files in `directory`, which are a store of ours and are not synced. With both, the directory
        is where the container's files are kept here.

        `commands` are more commands, by name; `network` the URLs that curl may ask for, by their beginnings (default: none).
        The server's files are waited for at most `wait_s`; `trouble` says when they are not all here. BusyError: another
        process uses the directory; ShellMissingError; UsageError.
        """
        from memdir.client.local import ServerInfo
        from memdir.core.paths import app_paths
        from memdir.shell.store import MemoryStore

        if container is None and directory is None:
            raise UsageError("a shell needs a container or a directory")
        if (server is None) != (api_key is None):
            raise UsageError("a server and the key for it go together")
        if container is None and server is not None:
            raise UsageError("files of a server have a container")
        info = None if server is None else ServerInfo(
            url=server.rstrip("/"), pid=0, data_dir="", version="", api_key=api_key or ""
        )  # fmt: skip
        self.name = _place(container or DIRECTORY_NAME)
        store = MemoryStore(
            app_paths(), container or DIRECTORY_NAME, folder=None if directory is None else Path(directory), server=info,
            sync=container is not None, read_only=read_only,
        )  # fmt: skip
        self.trouble = store.wait(wait_s)
        """Why not all of the server's files may be here."""
        try:
            self._begin(store.files, store, env, limits, commands, network)
        except BaseException:
            store.close(0)
            raise

    def _begin(
        self,
        files: Files,
        store: MemoryStore | None,
        env: Mapping[str, str] | None,
        limits: ShellLimits | None,
        commands: Mapping[str, Command] | None,
        network: Sequence[str],
    ) -> None:
        from memdir.shell.memory_grep import memory_command

        self._store = store
        mounts = {f"/{self.name}": files}
        ours: dict[str, Command] = {**COMMANDS, **(commands or {})}
        if store is not None:
            ours["memdir"] = memory_command(self.name, store.grep)
        bounds = limits or ShellLimits()
        self._interpreter = Interpreter(
            mounts, cwd=f"/{self.name}", env=dict(env or {}), limits=bounds,
            commands=builtins(ours, mounts, timeout_s=bounds.timeout_s),
            network=network,
        )  # fmt: skip

    @classmethod
    def over(
        cls,
        files: Files,
        *,
        name: str = DIRECTORY_NAME,
        env: Mapping[str, str] | None = None,
        limits: ShellLimits | None = None,
    ) -> Self:
        """A shell over a filesystem that the caller has open, and closes."""
        shell = cls.__new__(cls)
        shell.name, shell.trouble = _place(name), None
        shell._begin(files, None, env, limits, None, ())
        return shell

    @property
    def cwd(self) -> str:
        """The working directory."""
        return self._interpreter.cwd()

    async def run(self, script: str) -> ShellResult:
        """Run a script, or one command of a session. Cancelling this ends it before its next command; a file is written as a
        whole or not at all."""
        import asyncio

        run = self._interpreter.prepared(script)
        self._interpreter.start(run)
        try:
            return await asyncio.wrap_future(run.future)
        except asyncio.CancelledError:
            self._interpreter.cancel(run)
            raise

    def run_sync(self, script: str) -> ShellResult:
        """As `run`, for code that is not asynchronous; Ctrl-C ends the script."""
        run = self._interpreter.prepared(script)
        try:
            self._interpreter.start(run)
            return run.future.result()
        except KeyboardInterrupt:
            self._interpreter.cancel(run)
            with suppress(TimeoutError):  # it may not have begun
                run.future.result(_END_S)
            raise

    def is_complete(self, text: str) -> bool:
        """Whether `text` may be run as it is: False when it goes on in another line."""
        return self._interpreter.is_complete(text)

    def close(self, drain_timeout_s: float = _DRAIN_S) -> int | None:
        """Push what waits for at most `drain_timeout_s`, and let the memory go. How many changes are left for the next time,
        and None when that cannot be said. Calling it twice is allowed."""
        self._interpreter.end()
        store, self._store = self._store, None
        return 0 if store is None else store.close(drain_timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _place(name: str) -> str:
    """The name of the memory's folder in the shell; UsageError for one that cannot be."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a folder in the shell")
    return f"{name}-memory" if name in _RESERVED else name

"""Finding, starting and stopping the local server: one per user and data folder. Standard library and `core` only.

A running server says where it is in `server.json`. That file may be stale (a crash, a reboot, a reused pid), so it is believed
only when the address answers `/healthz` with the same pid. Starting happens under a lock, so that ten commands started at once
bring up one server. The child reports over a pipe: `ready\n`, or the text of its error.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from memdir.client.credentials import ENV_KEY, Credentials, configured
from memdir.core.background import start_background
from memdir.core.errors import BusyError, MemdirError, UsageError
from memdir.core.filelock import locked_file
from memdir.core.paths import AppPaths, ensure_dir
from memdir.core.processes import command_line, wait_for_end

log = logging.getLogger(__name__)

START_TIMEOUT_S: Final = 30.0
STOP_TIMEOUT_S: Final = 15.0
_PROBE_TIMEOUT_S: Final = 2.0
_START_LOCK_FILE: Final = "server-start.lock"
_FILE_MAX_BYTES: Final = 1 << 16


class ServerStartError(MemdirError):
    """The local server did not come up; the message holds its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Where the server is and the key for it. `pid` is 0 and `data_dir` empty for one that is not this user's local server."""

    url: str
    pid: int
    data_dir: str
    version: str
    api_key: str
    ca_file: str = ""
    """Certificates to trust beside the system's."""
    pinned_file: str = ""
    """The certificate of this user's own server, when that speaks TLS."""

    def __repr__(self) -> str:
        return f"ServerInfo(url={self.url!r}, pid={self.pid}, version={self.version!r})"

    @property
    def is_local(self) -> bool:
        """Whether it is this user's own server, found by `server.json`."""
        return self.pid != 0


def configured_server(paths: AppPaths) -> ServerInfo | None:
    """The server that flag, environment, project or user name; no local server is started then."""
    found = configured(paths)
    return None if found is None else server_elsewhere(found)


def server_elsewhere(found: Credentials) -> ServerInfo:
    """The server that credentials name, as the one to speak to."""
    return ServerInfo(url=found.url, pid=0, data_dir="", version="", api_key=found.api_key, ca_file=found.ca_file)


def running_server(paths: AppPaths) -> ServerInfo | None:
    """The configured server (unchecked), or the local one when it really runs; None otherwise. Starts nothing."""
    elsewhere = configured_server(paths)
    if elsewhere is not None:
        return elsewhere
    state = _read_json(paths.server_state_file)
    if state is None:
        return None
    url, pid = state.get("url"), state.get("pid")
    if not isinstance(url, str) or not isinstance(pid, int):
        return None
    pinned = str(state.get("cert_file") or "")
    health = _probe(url, pinned)
    if health is None or health.get("pid") != pid:
        return None
    key = _api_key(paths)
    if key is None:
        return None
    return ServerInfo(
        url=url, pid=pid, data_dir=str(state.get("data_dir", "")), version=str(health.get("version", "")), api_key=key,
        pinned_file=pinned,
    )  # fmt: skip


def recorded_pid(paths: AppPaths) -> int | None:
    """The process that `server.json` names, whether or not it runs; None without such a file."""
    pid = (_read_json(paths.server_state_file) or {}).get("pid")
    return pid if isinstance(pid, int) and pid > 0 else None


def hanging_pid(paths: AppPaths) -> int | None:
    """The local server's process when that lives and gives no answer: halted, or too busy. None otherwise. There is no use in
    starting another beside it: it holds the data."""
    pid = recorded_pid(paths)
    if pid is None or not any("memdir.server" in word for word in command_line(pid)):
        return None
    return None if running_server(paths) is not None else pid


def ensure_server(paths: AppPaths, *, timeout_s: float = START_TIMEOUT_S) -> ServerInfo:
    """The running server, started when there is none. ServerStartError when it does not come up in `timeout_s`."""
    found = running_server(paths)
    if found is not None:
        return _noted(found)
    deadline = time.monotonic() + timeout_s
    try:
        lock = ensure_dir(paths.state_dir) / _START_LOCK_FILE
        with locked_file(lock, deadline=deadline, busy="another process is starting the server and does not finish"):
            found = running_server(paths)  # another starter may have been first
            if found is None:
                _start(paths, deadline)
                found = running_server(paths)
    except OSError as error:  # the disk is full or read-only, a folder is another user's
        raise ServerStartError(
            f"the local server cannot be started: {error.strerror}: {error.filename or paths.state_dir}",
            hint="`memdir doctor` checks the folders it needs; MEMDIR_HOME moves them",
        ) from error
    if found is None:
        raise ServerStartError(
            "the local server started but cannot be reached",
            hint=f"look into {paths.state_dir / 'server.log'}, then `memdir server start`",
        )
    return _noted(found)


def stop_server(paths: AppPaths, *, timeout_s: float = STOP_TIMEOUT_S) -> bool:
    """Ask the local server to end (SIGTERM) and wait for it. False when none ran; BusyError when it does not end."""
    found = configured(paths)
    if found is not None:
        raise UsageError(
            f"the server {found.url} was chosen by {found.source}; it is not ours to stop",
            hint="`--credentials local` means the local one",
        )
    running = running_server(paths)
    if running is None:
        return False
    try:
        handle = os.pidfd_open(running.pid)
    except ProcessLookupError:
        return True
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        if not wait_for_end(handle, timeout_s):
            raise BusyError(
                f"the server (pid {running.pid}) did not end within {timeout_s:g} s",
                hint=f"kill -9 {running.pid} is safe: everything it acknowledged is on disk",
            )
    finally:
        os.close(handle)
    return True


def _noted(found: ServerInfo) -> ServerInfo:
    from memdir import __version__

    if found.is_local and found.version != __version__:
        log.warning("the server is memdir %s, this is %s; `memdir server stop` lets the next command start the new one",
                    found.version, __version__)  # fmt: skip
    return found


def _start(paths: AppPaths, deadline: float) -> None:
    log_file = ensure_dir(paths.state_dir) / "server.log"
    started = start_background("memdir.server", (), log_file=log_file, deadline=deadline)
    if started.ready:
        return
    if started.text is None:
        raise ServerStartError("the local server did not come up in time", hint=f"look into {log_file}")
    reason = started.text or f"it ended with exit code {started.exit_code}"
    raise ServerStartError(f"the local server did not start: {reason}", hint=f"look into {log_file}")


def connection_to(server_url: str, *, ca_file: str = "", pinned_file: str = "", timeout_s: float) -> http.client.HTTPConnection:
    """A connection of the standard library, not opened yet. UsageError for certificates that cannot be used."""
    parts = urlsplit(server_url)
    if parts.scheme != "https":
        return http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    from memdir.client.tls import context_for

    context = context_for(ca_file=ca_file, pinned_file=pinned_file)
    return http.client.HTTPSConnection(parts.hostname or "", parts.port or 443, timeout=timeout_s, context=context)


def _probe(url: str, pinned_file: str) -> dict[str, Any] | None:
    """The `/healthz` of a local address, None when nothing sensible answers."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or (parts.scheme == "https" and not pinned_file):
        return None
    try:
        connection = connection_to(url, pinned_file=pinned_file, timeout_s=_PROBE_TIMEOUT_S)
    except UsageError as error:
        log.debug("the certificate of the server at %s: %s", url, error.message)
        return None
    try:
        connection.request("GET", "/healthz")
        response = connection.getresponse()
        body = json.loads(response.read(_FILE_MAX_BYTES)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException) as error:
        log.debug("no server at %s: %s", url, error)
        return None
    finally:
        connection.close()
    return body if isinstance(body, dict) else None


def _api_key(paths: AppPaths) -> str | None:
    """MEMDIR_API_KEY, or the key that the server wrote at its first start."""
    key = os.environ.get(ENV_KEY, "").strip()
    if key:
        return key
    stored = (_read_json(paths.credentials_file) or {}).get("api_key")
    return stored if isinstance(stored, str) and stored else None


def _read_json(file: Path) -> dict[str, Any] | None:
    try:
        with open(file, "rb") as handle:
            value = json.loads(handle.read(_FILE_MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        log.warning("%s cannot be read: %s", file, error)
        return None
    return value if isinstance(value, dict) else None

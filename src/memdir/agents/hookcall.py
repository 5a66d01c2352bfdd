"""The one call of the hook: `POST /v1/agents/context`, to the server that is there already.

The usual server (this user's own; any that speaks plain HTTP and is named by the environment) is asked with a bare socket:
`http.client`, `json` and what they import cost the process more than everything else it does. Others (TLS, a login) go through
`client.light`. Which one is meant is decided in the order of `client.credentials`. This user's own, when it does not run, is
started, detached, and not waited for. Standard library only.
"""

from __future__ import annotations

import os
import sys
import time
from _json import encode_basestring_ascii as quoted
from _json import make_scanner

from memdir.core.places import config_and_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

PATH: Final = "/v1/agents/context"
_FILE_MAX_BYTES: Final = 1 << 16
_ANSWER_MAX_BYTES: Final = 1 << 18
_LEVELS_MAX: Final = 256
_START_PAUSE_S: Final = 30.0
"""A server that cannot start is tried again that seldom, however many prompts there are."""


class HookCallError(Exception):
    """There is no answer; the message says why, in one line."""


class _Scanning:
    """What the C scanner of `json` asks its owner. `json.decoder` itself would import `re` and `enum`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: Final[dict[str, str]] = {}


def parsed(text: str) -> Any:
    """`json.loads`. ValueError."""
    text = text.strip(" \t\r\n")
    try:
        value, end = make_scanner(_Scanning())(text, 0)  # type: ignore[arg-type]  # its owner, by duck
    except StopIteration:
        raise ValueError("it is no JSON") from None
    except RecursionError:
        raise ValueError("its JSON is nested too deep") from None
    if end != len(text):
        raise ValueError("something follows its JSON")
    return value


def written(fields: dict[str, str | int | bool | tuple[str, ...] | None]) -> bytes:
    """`json.dumps` of an object of texts, numbers and lists of texts. Half characters (lone surrogates) become `?`: the
    server takes none."""
    parts = []
    for name, value in fields.items():
        if value is None:
            continue
        if isinstance(value, str):
            shown = _text(value)
        elif isinstance(value, tuple):
            shown = f"[{','.join(map(_text, value))}]"
        else:
            shown = str(value).lower() if isinstance(value, bool) else str(value)
        parts.append(f'"{name}":{shown}')
    return f"{{{','.join(parts)}}}".encode("ascii")


def _text(value: str) -> str:
    return quoted(value.encode("utf-8", "replace").decode("utf-8"))


def ask(body: bytes, *, timeout_s: float) -> dict[str, Any] | None:
    """What the server answers; None when it does not run, and is being started. HookCallError for everything else."""
    config, state = config_and_state(os.environ)
    named = os.environ.get("MEMDIR_CREDENTIALS", "").strip()
    if named in ("", "local"):
        url = "" if named else os.environ.get("MEMDIR_SERVER_URL", "").strip()
        if url:
            server = _plain(url, os.environ.get("MEMDIR_API_KEY", "").strip())
        elif named == "" and (os.path.lexists(config + "/login.json") or _project_file()):
            server = None
        else:
            found = _object(state + "/server.json")
            if b"memdir.server" not in _read(f"/proc/{found.get('pid')}/cmdline") and _start(state):
                return None
            key = os.environ.get("MEMDIR_API_KEY", "").strip() or _object(config + "/credentials.json").get("api_key")
            server = _plain(found.get("url"), key)
        if server is not None:
            return _answer(*_post(*server, body, timeout_s=timeout_s))
    return _ask_elsewhere(body, state, timeout_s=timeout_s)


def _plain(url: object, key: object) -> tuple[str, int, str] | None:
    """Address, port and key for a bare socket; None for what speaks TLS or has a path."""
    if not isinstance(url, str):
        return None
    place = url.rstrip("/").removeprefix("http://")
    address, _, port = place.partition(":")
    if not url.startswith("http://") or not address or not (port or "80").isdecimal() or {*place} & {"/", "@", "[", "?", "#"}:
        return None
    return (address, int(port or 80), key) if isinstance(key, str) and key else None


def _project_file() -> bool:
    try:
        level = os.getcwd()
    except OSError:
        return False
    for _ in range(_LEVELS_MAX):
        if os.path.lexists(os.path.join(level, ".memdir", "credentials.json")):
            return True
        if level == "/":
            return False
        level = os.path.dirname(level)
    return False


def _object(file: str) -> dict[str, Any]:
    """The JSON object in a file of ours; empty when there is none that can be read."""
    try:
        value = parsed(_read(file).decode("utf-8", "replace"))
    except ValueError:  # told by whoever looks more closely
        return {}
    return value if isinstance(value, dict) else {}


def _read(file: str) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:  # not there: what reads nothing is looked at more closely
        return b""
    try:
        return os.read(descriptor, _FILE_MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


# --- the usual server --------------------------------------------------------------------------------------------------


def _post(address: str, port: int, key: str, body: bytes, *, timeout_s: float) -> tuple[int, bytes]:
    """Status and body of one HTTP/1.1 exchange (RFC 9112) with a server of ours, which always tells the length."""
    import _socket

    head = (
        f"POST {PATH} HTTP/1.1\r\nHost: {address}:{port}\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json\r\nUser-Agent: memdir-hook\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    deadline = time.monotonic() + timeout_s
    connection = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        connection.settimeout(timeout_s)
        connection.connect((address, port))
        connection.sendall(head.encode("latin-1") + body)
        received = bytearray()
        wanted = None
        while wanted is None or len(received) < wanted:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            piece = connection.recv(1 << 16)
            received += piece
            if wanted is None:
                wanted = _length(received)
            if not piece or len(received) > _ANSWER_MAX_BYTES:
                raise HookCallError("the server's answer is " + ("cut short" if not piece else "too long"))
    except TimeoutError:
        raise HookCallError("the server did not answer in time") from None
    except OSError as error:
        raise HookCallError(f"the server at {address}:{port} cannot be reached: {error.strerror or error}") from None
    finally:
        connection.close()
    status = received[9:12]
    if not received.startswith(b"HTTP/1.") or not status.isdigit():
        raise HookCallError("what answers there is no HTTP server")
    return int(status), bytes(received[received.index(b"\r\n\r\n") + 4 : wanted])


def _length(received: bytearray) -> int | None:
    """How long the whole answer is; None before its head is complete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return None
    for line in received[:end].split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            return end + 4 + int(value)
    raise HookCallError("the server's answer does not tell its length")


def _answer(status: int, body: bytes) -> dict[str, Any]:
    try:
        value = parsed(body.decode("utf-8", "replace"))
    except ValueError as error:
        raise HookCallError(f"the server's answer cannot be read (HTTP {status}): {error}") from None
    if status != 200:
        said = value.get("error") if isinstance(value, dict) else None
        raise HookCallError(f"the server refused (HTTP {status}): {said or 'it does not say why'}")
    if not isinstance(value, dict):
        raise HookCallError("the server's answer is no JSON object")
    return value


# --- any other, or none ------------------------------------------------------------------------------------------------


def _ask_elsewhere(body: bytes, state: str, *, timeout_s: float) -> dict[str, Any] | None:
    import json

    from memdir.client.light import call
    from memdir.client.local import configured_server, running_server
    from memdir.core.errors import MemdirError
    from memdir.core.paths import app_paths

    until = time.monotonic() + timeout_s
    try:
        paths = app_paths()
        server = running_server(paths)
        if server is not None:
            left_s = max(0.001, until - time.monotonic())
            return call(server, "POST", PATH, body=json.loads(body), timeout_s=left_s)
        elsewhere = configured_server(paths) is not None
    except MemdirError as error:
        raise HookCallError(error.message) from None
    if not elsewhere and not _start(state):
        raise HookCallError("the server does not run; it was told to start a moment ago")
    return None


def _start(state: str) -> bool:
    """`memdir server start`, in a session of its own: it finds out itself whether another is starting one. False when that was
    done a moment ago."""
    stamp = state + "/hook-start"
    try:
        if 0 <= time.time() - os.stat(stamp).st_mtime < _START_PAUSE_S:
            return False
    except FileNotFoundError:
        os.makedirs(state, mode=0o700, exist_ok=True)
    os.close(os.open(stamp, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    os.utime(stamp)
    spawn(["server", "start"], {**os.environ, "MEMDIR_CREDENTIALS": "local"})
    return True


def spawn(words: list[str], environ: dict[str, str] | None = None) -> None:
    """A command of ours, in a session of its own, that nobody waits for."""
    nowhere = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    nowhere += [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    # -P: nothing of the folder that the host works in is imported
    command = [sys.executable, "-P", "-m", "memdir.cli", *words]
    os.posix_spawn(sys.executable, command, environ or dict(os.environ), file_actions=nowhere, setsid=True)

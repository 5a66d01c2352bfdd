"""Which server, and with which key: flag, environment, project, user, in this order; without any, this user's local server.

Keys are kept in files only: 0600, this user's own, `{"url", "api_key", "ca_file"}`. A project's file is taken only when this
user wrote it there with `memdir login --project` (its path and SHA-256 are noted with the user's own settings): a folder that
came from elsewhere must not lead a mount to somebody else's server. Standard library and `core` only.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memdir.core.errors import UsageError
from memdir.core.paths import AppPaths, write_private

ENV_URL: Final = "MEMDIR_SERVER_URL"
ENV_KEY: Final = "MEMDIR_API_KEY"
ENV_FILE: Final = "MEMDIR_CREDENTIALS"
"""A credentials file, or `local`. Set by the flag `--credentials`, and for a daemon by whoever starts it: it stays with the
server that it was mounted with, whatever its user logs in to later."""
LOCAL: Final = "local"
PROJECT_FILE: Final = Path(".memdir") / "credentials.json"
_TRUSTED_NAME: Final = "projects.json"
_FILE_MAX_BYTES: Final = 1 << 16
_LEVELS_MAX: Final = 256
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A server and a key for it."""

    url: str
    api_key: str
    ca_file: str = ""
    """Certificates to trust beside the system's."""
    source: str
    """`flag`, `environment`, `project` or `user`."""
    file: str = ""

    def __repr__(self) -> str:
        return f"Credentials(url={self.url!r}, source={self.source!r})"


def configured(paths: AppPaths) -> Credentials | None:
    """What was chosen, None for the local server."""
    named = os.environ.get(ENV_FILE, "").strip()
    if named == LOCAL:
        return None
    if named:
        return _read(Path(named), "flag")
    if os.environ.get(ENV_URL, "").strip():
        return _from_environment()
    project = project_file()
    if project is not None:
        _check_trust(paths, project)
        return _read(project, "project")
    if paths.login_file.exists():
        return _read(paths.login_file, "user")
    return None


def refreshed(before: Credentials) -> Credentials:
    """What a process that stays with its server goes on with: a new key for that server, where the file holds one by now, and
    `before` where the file is gone (`memdir logout`) or names another server (`memdir login` to that)."""
    if not before.file or not os.path.exists(before.file):
        return before
    found = _read(Path(before.file), before.source)
    return found if found.url == before.url else before


def stamp(paths: AppPaths) -> tuple[object, ...]:
    """Another value when the files that a key is read from were changed. Costs a few calls of stat."""
    named = os.environ.get(ENV_FILE, "").strip()
    files = [paths.credentials_file, Path(named) if named and named != LOCAL else paths.login_file]
    found: list[object] = []
    for file in files:
        try:
            info = os.stat(file)
        except OSError:
            found.append(None)
        else:
            found.append((info.st_ino, info.st_mtime_ns, info.st_size))
    return tuple(found)


def pinned(paths: AppPaths) -> dict[str, str]:
    """What to put into the environment of a process that shall stay with the server that is chosen now."""
    if os.environ.get(ENV_FILE, "").strip() or os.environ.get(ENV_URL, "").strip():
        return {}
    found = configured(paths)
    return {ENV_FILE: LOCAL if found is None else os.path.abspath(found.file)}


def checked_url(url: str, name: str) -> str:
    """`url` without a trailing slash, or UsageError."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise UsageError(f"{name} must be an http(s) address, not {_without_user(url)!r}")
    return url.rstrip("/")


def is_plain(url: str) -> bool:
    """Whether a key sent there could be read on the way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK


def save(paths: AppPaths, credentials: Credentials, *, project: Path | None = None) -> Path:
    """Keep credentials for this user, or for the project in the folder `project`. Returns the file."""
    kept = {"url": credentials.url, "api_key": credentials.api_key, "ca_file": credentials.ca_file}
    data = (json.dumps(kept, indent=2) + "\n").encode()
    file = paths.login_file if project is None else project / PROJECT_FILE
    write_private(file, data)
    if project is not None:
        _note_trust(paths, file, hashlib.sha256(data).hexdigest())
        ignore = file.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("credentials.json\n", encoding="utf-8")
    return file


def remove(paths: AppPaths, *, project: Path | None = None) -> Path | None:
    """Forget what `save` kept. Returns the file, None when there was none."""
    file = paths.login_file if project is None else project / PROJECT_FILE
    try:
        file.unlink()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if project is not None:
        _note_trust(paths, file, None)
    return file


def project_file() -> Path | None:
    """The credentials file of the project around the current folder, None without one."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        return None
    for level in (here, *here.parents)[:_LEVELS_MAX]:
        file = level / PROJECT_FILE
        try:
            if file.is_file():
                return file
        except OSError:
            continue  # a folder that may not be looked into is no project of ours
    return None


def _from_environment() -> Credentials:
    url = checked_url(os.environ[ENV_URL].strip(), ENV_URL)
    key = os.environ.get(ENV_KEY, "").strip()
    if not key:
        raise UsageError(f"{ENV_URL} is set, but {ENV_KEY} is not", hint=f"set {ENV_KEY} to a key of that server")
    return Credentials(url=url, api_key=key, source="environment")


def _read(file: Path, source: str) -> Credentials:
    """UsageError for a file that others may read, that belongs to somebody else, or that makes no sense."""
    try:
        with open(file, "rb") as handle:
            info = os.fstat(handle.fileno())
            data = handle.read(_FILE_MAX_BYTES)
    except FileNotFoundError:
        raise UsageError(f"there is no credentials file {file}", hint="`memdir login` writes one") from None
    if info.st_uid != os.getuid():
        raise UsageError(f"{file} belongs to another user", hint="`memdir login` again")
    if info.st_mode & 0o077:
        raise UsageError(f"others may read {file}, which holds an API key", hint=f"chmod 600 {file}, and rotate the key")
    try:
        stored = json.loads(data)
    except ValueError:
        stored = None
    fields = {name: stored.get(name) for name in ("url", "api_key", "ca_file")} if isinstance(stored, dict) else {}
    url, key, ca_file = fields.get("url"), fields.get("api_key"), fields.get("ca_file") or ""
    if not isinstance(url, str) or not isinstance(key, str) or not key or not isinstance(ca_file, str):
        raise UsageError(f"{file} is no credentials file", hint="`memdir login` writes it anew")
    return Credentials(url=checked_url(url, str(file)), api_key=key, ca_file=ca_file, source=source, file=str(file))


def _check_trust(paths: AppPaths, file: Path) -> None:
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from error
    if _trusted(paths).get(str(file.resolve())) != digest:
        raise UsageError(
            f"{file} names a server, but you did not log in here",
            hint="`memdir login --project` if you want its server; else remove the file, or use `--credentials local`",
        )


def _trusted(paths: AppPaths) -> dict[str, str]:
    try:
        stored = json.loads((paths.config_dir / _TRUSTED_NAME).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def _note_trust(paths: AppPaths, file: Path, digest: str | None) -> None:
    trusted = _trusted(paths)
    trusted.pop(str(file.resolve()), None)
    if digest is not None:
        trusted[str(file.resolve())] = digest
    write_private(paths.config_dir / _TRUSTED_NAME, (json.dumps(trusted, indent=2) + "\n").encode())


def _without_user(url: str) -> str:
    """For messages: an address may hold a password."""
    scheme, separator, rest = url.partition("://")
    return f"{scheme}{separator}{rest.rpartition('@')[2]}"[:200]

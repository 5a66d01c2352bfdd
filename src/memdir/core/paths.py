"""Where memdir keeps things: the XDG base directories, or everything under `$MEMDIR_HOME`.

Every folder made here is 0700. Unix socket paths are limited to 107 bytes by the kernel (`sun_path`), so sockets live in
the runtime folder under short names.
"""

from __future__ import annotations

import errno
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from memdir.core.errors import MemdirError, StorageError, UsageError
from memdir.core.places import ENV_HOME, config_and_state, xdg

ENV_MODELS = "MEMDIR_MODELS_DIR"

RUNTIME_DIR_MAX_BYTES = 80
"""`sun_path` holds 107 bytes; a socket's name takes up to 24 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppPaths:
    """The five folders of one user's memdir. Not created until `ensure` is called on one of them."""

    config_dir: Path
    data_dir: Path
    state_dir: Path
    cache_dir: Path
    runtime_dir: Path

    @property
    def mounts_dir(self) -> Path:
        """One folder per mount: `mount.json`, the cache database, its journal, the sync database, the log."""
        return self.data_dir / "mounts"

    @property
    def traces_dir(self) -> Path:
        """What was done with files, where somebody asked for that to be recorded."""
        return self.data_dir / "traces"

    @property
    def server_dir(self) -> Path:
        """The local server's data: database, blobs, derived models."""
        return self.data_dir / "server"

    @property
    def server_state_file(self) -> Path:
        """Written by a running server: url, pid, version, data_dir (0600)."""
        return self.state_dir / "server.json"

    @property
    def credentials_file(self) -> Path:
        """The API key of this user for the local server (0600)."""
        return self.config_dir / "credentials.json"

    @property
    def login_file(self) -> Path:
        """The server that this user logged in to, and the key for it (0600)."""
        return self.config_dir / "login.json"

    @property
    def models_dir(self) -> Path:
        """Model files derived from package weights; can be deleted and come back. `MEMDIR_MODELS_DIR` is one folder for several
        homes (and for containers that begin with an empty one): making the files takes some seconds."""
        shared = os.environ.get(ENV_MODELS)
        if shared and not Path(shared).is_absolute():
            raise UsageError(f"{ENV_MODELS} must be an absolute path, not {shared!r}")
        return Path(shared) if shared else self.cache_dir / "models"


def explained(error: OSError) -> StorageError | None:
    """What the machine refuses, in a person's words and with what to set; None when it is none of the usual refusals."""
    place = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    reason = (error.strerror or "").lower()
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        what = "the disk is full" if error.errno == errno.ENOSPC else "your quota of the disk is used up"
        hint = "free some room; `memdir doctor` shows where memdir's data is, MEMDIR_HOME moves it"
        return StorageError(f"{what}: {place}" if place else what, hint=hint)
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return StorageError("too many files are open", hint="raise the limit (`ulimit -n 4096`), or close what has them open")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR):
        hint = "`memdir doctor` checks the folders that memdir needs"
        return StorageError(f"{place}: {reason}" if place else reason, hint=f"{_variable_for(place) or hint}")
    return None


def _variable_for(place: str) -> str:
    """Which variable moves the folder of memdir that `place` is in; '' when it is in none of them."""
    try:
        paths = app_paths()
    except MemdirError:
        return ""
    folders = {
        "XDG_DATA_HOME": paths.data_dir, "XDG_STATE_HOME": paths.state_dir, "XDG_CONFIG_HOME": paths.config_dir,
        "XDG_CACHE_HOME": paths.cache_dir, "XDG_RUNTIME_DIR": paths.runtime_dir,
    }  # fmt: skip
    for variable, folder in folders.items():
        if place and (Path(place).is_relative_to(folder) or folder.is_relative_to(place)):
            named = ENV_HOME if os.environ.get(ENV_HOME) else f"{variable} (or {ENV_HOME}, for all of memdir)"
            return f"memdir keeps data below {folder}: make that writable for you, or set {named} to a folder that is"
    return ""


def ensure_dir(path: Path) -> Path:
    """Create `path` (and parents) with mode 0700 and return it."""
    # pathlib gives parents that it creates the default mode, so they are made one by one.
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir(mode=0o700, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    return path


def app_paths() -> AppPaths:
    """The folders for this process's user and environment."""
    home = os.environ.get(ENV_HOME)
    if home:
        base = Path(home)
        if not base.is_absolute():
            raise UsageError(f"{ENV_HOME} must be an absolute path, not {home!r}")
        return under_home(base)
    user_home = Path.home()
    config_dir, state_dir = config_and_state(os.environ)
    return AppPaths(
        config_dir=Path(config_dir),
        data_dir=_xdg("XDG_DATA_HOME", user_home / ".local" / "share") / "memdir",
        state_dir=Path(state_dir),
        cache_dir=_xdg("XDG_CACHE_HOME", user_home / ".cache") / "memdir",
        runtime_dir=_short_runtime_dir(_runtime_base(user_home)),
    )


def under_home(base: Path) -> AppPaths:
    """The folders of `MEMDIR_HOME=base`."""
    return AppPaths(
        config_dir=base / "config",
        data_dir=base / "data",
        state_dir=base / "state",
        cache_dir=base / "cache",
        runtime_dir=_short_runtime_dir(base / "run"),
    )


def _xdg(variable: str, default: Path) -> Path:
    return Path(xdg(os.environ, variable, str(default)))


def _runtime_base(user_home: Path) -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and os.access(runtime, os.W_OK):
        return Path(runtime) / "memdir"
    return _xdg("XDG_STATE_HOME", user_home / ".local" / "state") / "memdir" / "run"


def _short_runtime_dir(wanted: Path) -> Path:
    """Socket names below the folder take up to 24 bytes; a deeper folder falls back to a private one in TMPDIR, or in /tmp when
    TMPDIR itself is that deep.

    The fallback name is fixed by the wanted path, so that every process of the user finds the same folder; ownership and
    mode are checked by `ensure_private_dir` before anything is put into it.
    """
    if len(os.fsencode(wanted)) <= RUNTIME_DIR_MAX_BYTES:
        return wanted
    import hashlib

    tag = hashlib.sha256(os.fsencode(wanted)).hexdigest()[:16]
    candidates = [Path(base) / f"memdir-{os.getuid()}-{tag}" for base in (tempfile.gettempdir(), "/tmp")]  # noqa: S108  checked
    return next((folder for folder in candidates if len(os.fsencode(folder)) <= RUNTIME_DIR_MAX_BYTES), candidates[0])


def ensure_private_dir(path: Path) -> Path:
    """Like `ensure_dir`, and refuses a folder that belongs to another user or that others may enter."""
    ensure_dir(path)
    info = path.lstat()
    if info.st_uid != os.getuid() or (info.st_mode & 0o170000) != 0o040000:
        raise UsageError(f"{path} is not a folder of this user", hint="remove it, or set MEMDIR_HOME to a folder of yours")
    if info.st_mode & 0o077:
        path.chmod(0o700)
    return path


def close_to_others(paths: AppPaths) -> list[str]:
    """Take away what others may do in memdir's own folders; what was done, in sentences. UsageError for a folder that belongs
    to somebody else: who owns a folder can replace what is in it."""
    done = []
    for folder in (paths.data_dir, paths.mounts_dir, paths.state_dir, paths.config_dir):
        try:
            info = folder.lstat()
        except FileNotFoundError:
            continue
        if info.st_uid != os.getuid() and info.st_uid != 0:
            raise UsageError(
                f"{folder} belongs to user {info.st_uid}", hint=f"chown -R {os.getuid()} {folder}, or set {ENV_HOME}"
            )
        if info.st_mode & 0o022 and info.st_uid == os.getuid():
            folder.chmod(0o700)
            done.append(f"others could write to {folder}; it is closed to them now")
    return done


def private(path: str, flags: int) -> int:
    """For `open(…, opener=private)`: a file that is made is its owner's alone (0600)."""
    return os.open(path, flags, 0o600)


def write_private(path: Path, data: bytes) -> None:
    """Replace `path` atomically with `data`, mode 0600."""
    ensure_dir(path.parent)
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` survive a power cut. OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

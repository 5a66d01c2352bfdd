"""What `memdir doctor` looks at on the machine. Each check is one function: it returns what it found and how to repair it."""

from __future__ import annotations

import os
import shutil
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from memdir.cli.text import human_bytes, plural
from memdir.core.limits import MIB
from memdir.core.paths import AppPaths, ensure_dir, ensure_private_dir

if TYPE_CHECKING:
    from memdir.client.local import ServerInfo
    from memdir.daemon.registry import MountRegistry

Status = Literal["ok", "warn", "fail"]

_FUSE_DEVICE: Final = Path("/dev/fuse")
_KERNEL_OLDEST: Final = (5, 10)
_DISK_FAIL_BYTES: Final = 100 * MIB
_DISK_WARN_BYTES: Final = 1024 * MIB
_INODES_WARN: Final = 1000
_CLOCK_SLACK_MS: Final = 60_000
_FIRST_RELEASE_S: Final = 1_763_000_000
"""November 2025: a clock before this is wrong for sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the doctor's report. `repair` says what to do, in one sentence; empty when all is well."""

    name: str
    status: Status
    detail: str
    repair: str = ""


def check_fuse_device() -> Check:
    """/dev/fuse: the way into the kernel."""
    try:
        mode = _FUSE_DEVICE.stat().st_mode
        if not stat.S_ISCHR(mode):
            return Check(
                name="fuse device", status="fail", detail=f"{_FUSE_DEVICE} is not a device", repair="remove it; modprobe fuse"
            )
        os.close(os.open(_FUSE_DEVICE, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        repair = "as root: modprobe fuse; for a container: --device /dev/fuse --cap-add SYS_ADMIN"
        return Check(name="fuse device", status="fail", detail=f"{_FUSE_DEVICE} does not exist", repair=repair)
    except OSError as error:
        repair = "as root: chmod 666 /dev/fuse; in a container, allow the device (--device /dev/fuse)"
        return Check(
            name="fuse device", status="fail", detail=f"{_FUSE_DEVICE} cannot be opened: {error.strerror}", repair=repair
        )
    return Check(name="fuse device", status="ok", detail=f"{_FUSE_DEVICE} can be opened")


def check_mount_helper() -> Check:
    """fusermount3: how an ordinary user mounts."""
    if os.geteuid() == 0:
        return Check(name="mount helper", status="ok", detail="not needed: root mounts by itself")
    helper = shutil.which("fusermount3")
    if helper is None:
        return Check(
            name="mount helper",
            status="fail",
            detail="fusermount3 is not installed",
            repair="as root: apt-get install -y fuse3",
        )
    info = os.stat(helper)
    if info.st_uid != 0 or not info.st_mode & stat.S_ISUID:
        return Check(
            name="mount helper",
            status="fail",
            detail=f"{helper} is not setuid root, so it cannot mount",
            repair="as root: apt-get install --reinstall -y fuse3",
        )
    return Check(name="mount helper", status="ok", detail=helper)


def check_kernel() -> Check:
    """Older kernels lack parts of the protocol that the driver counts on."""
    release = os.uname().release
    numbers = release.split("-")[0].split(".")
    try:
        version = (int(numbers[0]), int(numbers[1]))
    except (IndexError, ValueError):
        return Check(
            name="kernel", status="warn", detail=f"cannot tell the version from {release!r}", repair="use Linux 5.10 or newer"
        )
    if version < _KERNEL_OLDEST:
        return Check(name="kernel", status="fail", detail=f"Linux {release}", repair="use Linux 5.10 or newer")
    return Check(name="kernel", status="ok", detail=f"Linux {release}")


def check_folders(paths: AppPaths) -> list[Check]:
    """memdir's own folders: there, ours, writable, closed to others."""
    found = []
    for folder in (paths.config_dir, paths.data_dir, paths.state_dir, paths.cache_dir, paths.runtime_dir):
        problem = _folder_problem(folder, private=folder == paths.runtime_dir)
        if problem is not None:
            found.append(problem)
    if paths.credentials_file.exists() and paths.credentials_file.stat().st_mode & 0o077:
        found.append(
            Check(
                name="folders",
                status="fail",
                detail=f"{paths.credentials_file} holds an API key and others may read it",
                repair=f"chmod 600 {paths.credentials_file}",
            )
        )
    return found or [Check(name="folders", status="ok", detail=f"data in {paths.data_dir}")]


def _folder_problem(folder: Path, *, private: bool) -> Check | None:
    try:
        (ensure_private_dir if private else ensure_dir)(folder)
    except OSError as error:
        repair = f"make {folder.parent} writable for you, or set MEMDIR_HOME to a folder of yours"
        return Check(name="folders", status="fail", detail=f"{folder} cannot be made: {error.strerror}", repair=repair)
    info = folder.stat()
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        repair = f"chown -R {os.geteuid()} {folder}; chmod 700 {folder}"
        return Check(name="folders", status="fail", detail=f"{folder} is not writable", repair=repair)
    if info.st_uid != os.geteuid():
        return Check(
            name="folders",
            status="warn",
            detail=f"{folder} belongs to user {info.st_uid}",
            repair=f"chown -R {os.geteuid()} {folder}",
        )
    if info.st_mode & 0o022:
        return Check(name="folders", status="warn", detail=f"others may write to {folder}", repair=f"chmod 700 {folder}")
    return None


def check_disk(paths: AppPaths) -> Check:
    """Room for the cache and the server's data."""
    figures = os.statvfs(ensure_dir(paths.data_dir))
    free = figures.f_bavail * figures.f_frsize
    detail = f"{human_bytes(free)} free for {paths.data_dir}"
    repair = "free some space, or set XDG_DATA_HOME or MEMDIR_HOME to a bigger disk"
    if free < _DISK_FAIL_BYTES:
        return Check(name="disk", status="fail", detail=detail, repair=repair)
    if free < _DISK_WARN_BYTES:
        return Check(name="disk", status="warn", detail=detail, repair=repair)
    if figures.f_files and figures.f_favail < _INODES_WARN:
        return Check(
            name="disk", status="warn", detail=f"only {figures.f_favail} inodes left for {paths.data_dir}", repair=repair
        )
    return Check(name="disk", status="ok", detail=detail)


def check_readers() -> list[Check]:
    """What reads text in pictures and speech; without them such files are kept and an error beside them says so."""
    from memdir.ingest.extractors import ocr, speech
    from memdir.ingest.sandbox.confinement import landlock_version

    seen = ocr.engine()
    heard = speech.engine() if speech.is_available() else None
    apart = Check(name="readers", status="ok", detail="documents are read without network and without your files")
    if landlock_version() < 1:
        apart = Check(
            name="readers", status="warn", detail="a process that reads a document may read your files, too (no Landlock)",
            repair="use Linux 5.13 or newer with Landlock",
        )  # fmt: skip
    return [
        apart,
        *(
            Check(name="readers", status="ok", detail=f"{what}: {found}")
            if found
            else Check(name="readers", status="warn", detail=f"nothing reads {what}", repair=hint)
            for what, found, hint in (("text in pictures", seen, ocr.HINT), ("speech", heard, speech.HINT))
        ),
    ]


def check_clock(registry: MountRegistry) -> Check:
    """Times of files and logs come from it; order never does."""
    now_s = time.time()
    if now_s < _FIRST_RELEASE_S:
        return Check(
            name="clock", status="warn", detail=f"the clock says {time.ctime(now_s)}", repair="set the clock (timedatectl)"
        )
    newest_ms = max((record.started_at_ms for record in registry.all()), default=0)
    if newest_ms > now_s * 1000 + _CLOCK_SLACK_MS:
        return Check(
            name="clock",
            status="warn",
            detail="a mount was started in the future: the clock went backwards",
            repair="timedatectl",
        )
    return Check(name="clock", status="ok", detail=time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(now_s)))


def check_mounts(registry: MountRegistry) -> list[Check]:
    """Dead mounts, unreadable records, parked changes."""
    from memdir.cli.mounts.status import ask
    from memdir.cli.targets import mount_command

    found = [
        Check(name="mounts", status="warn", detail=problem.message, repair=problem.hint or "remove the file")
        for problem in registry.damaged()
    ]
    alive = 0
    for record in registry.all():
        if record.state == "dead":
            repair = (
                f"`{mount_command(record)}` goes on where it was, `memdir recover {record.name}` clears it away and checks it"
            )
            found.append(
                Check(
                    name="mounts", status="warn", detail=f"the daemon of {record.name} at {record.path} is dead", repair=repair
                )
            )
        if record.state != "alive":
            continue
        alive += 1
        answer = ask(record)
        if answer["state"] != "mounted":
            repair = f"`memdir recover {record.name}` says why, with --force it ends the daemon; nothing is lost"
            found.append(
                Check(
                    name="mounts", status="fail", detail=f"{record.name} does not answer: {answer.get('error')}", repair=repair
                )
            )
        elif answer.get("parked"):
            detail = f"{record.name}: {plural(int(answer['parked']), 'change')} parked"
            found.append(
                Check(name="mounts", status="warn", detail=detail, repair="`memdir queue` says why, `memdir retry` tries again")
            )
    return found or [
        Check(name="mounts", status="ok", detail=f"{plural(alive, 'mount')}, none dead" if alive else "nothing is mounted")
    ]


def check_server(paths: AppPaths) -> tuple[Check, ServerInfo | None, bool]:
    """The server, started when none runs. Also returns it, and whether it was started here."""
    from memdir import __version__
    from memdir.client.errors import NotFoundError
    from memdir.client.http import Client
    from memdir.client.local import ensure_server, running_server
    from memdir.core.errors import MemdirError

    started = running_server(paths) is None
    server = None
    try:
        server = ensure_server(paths)
        with Client.to(server) as client:
            try:
                version = client.capabilities().version
            except NotFoundError:  # not ours: it must at least know the key
                client.send("GET", "/v3/session")
                return Check(name="server", status="ok", detail=f"Supermemory API v3 at {server.url}"), server, False
    except MemdirError as error:
        repair = error.hint or "see `memdir logs --server`"
        return Check(name="server", status="fail", detail=error.message, repair=repair), server, started and server is not None
    detail = f"memdir {version} at {server.url}" + (" (started for this check)" if started else "")
    if version != __version__:
        repair = "`memdir server stop`; the next command starts the new version"
        return (
            Check(name="server", status="warn", detail=f"{detail}, but this is memdir {__version__}", repair=repair),
            server,
            started,
        )
    return Check(name="server", status="ok", detail=detail), server, started


def check_models(paths: AppPaths) -> Check:
    """The embedding models load, and know that a boat is nearer to a ship than to a tax form."""
    from memdir.core.errors import MemdirError
    from memdir.retrieval.embed.minilm import MiniLmEmbedder
    from memdir.retrieval.embed.static import StaticEmbedder

    names = []
    try:
        for embedder in (StaticEmbedder(), MiniLmEmbedder(paths.models_dir)):
            question = embedder.embed_query("a boat on the water").ravel()
            near, far = embedder.embed_passages(["the ship sails on the sea", "the tax form is due in April"])
            if float(question @ near) <= float(question @ far):
                detail = f"{embedder.name} does not tell near from far"
                return Check(name="models", status="fail", detail=detail, repair="install memdir's dependencies again")
            names.append(embedder.name)
    except (MemdirError, OSError, ImportError) as error:
        hint = getattr(error, "hint", "") or f"install memdir's dependencies again, remove {paths.models_dir}"
        return Check(name="models", status="fail", detail=str(error), repair=hint)
    return Check(name="models", status="ok", detail=", ".join(names))

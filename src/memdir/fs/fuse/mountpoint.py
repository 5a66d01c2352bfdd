"""Looking at mount points without walking into them.

A dead mount (its daemon was killed) answers every call with ENOTCONN, and a hung one does not answer at all, so whether
something is mounted is read from `/proc/self/mountinfo` (proc(5)), never asked of the path itself.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.fs.fuse.errors import MountError

SUBTYPE: Final = "memdir"
FSTYPE: Final = f"fuse.{SUBTYPE}"

_MOUNTINFO: Final = Path("/proc/self/mountinfo")
_OCTAL: Final = re.compile(rb"\\([0-7]{3})")
_SYMLINKS_MAX: Final = 40
_PROBE_TIMEOUT_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MountEntry:
    """One line of mountinfo."""

    mount_id: int
    device: str
    """`major:minor`; the minor number names the FUSE connection."""
    mountpoint: str
    fstype: str
    source: str


def mounts() -> list[MountEntry]:
    """Every mount this process sees, in mount order: of several at one place the last is the visible one."""
    return [_parse(line) for line in _MOUNTINFO.read_bytes().splitlines() if line]


def _parse(line: bytes) -> MountEntry:
    """Fields 1 to 6, any number of optional fields, `-`, then type, source and options."""
    front, _, back = line.partition(b" - ")
    fields = front.split(b" ")
    kind = back.split(b" ")
    return MountEntry(
        mount_id=int(fields[0]),
        device=fields[2].decode("ascii"),
        mountpoint=os.fsdecode(_unescape(fields[4])),
        fstype=os.fsdecode(_unescape(kind[0])),
        source=os.fsdecode(_unescape(kind[1])) if len(kind) > 1 else "",
    )


def _unescape(field: bytes) -> bytes:
    """The kernel writes space, tab, newline and backslash as three octal digits."""
    return _OCTAL.sub(lambda match: bytes([int(match[1], 8)]), field)


def mount_at(path: Path) -> MountEntry | None:
    """The visible mount whose root is exactly `path`, or None. Follows symlinks, never into a mount at `path`."""
    place = os.path.abspath(path)
    table = {entry.mountpoint: entry for entry in mounts()}
    for _ in range(_SYMLINKS_MAX):
        parent, name = os.path.split(place)
        place = os.path.join(os.path.realpath(parent), name) if name else place
        if place in table:
            return table[place]
        try:
            target = os.readlink(place)
        except OSError:  # no symlink, or nothing there
            return None
        place = os.path.normpath(os.path.join(os.path.dirname(place), target))
    return None


def is_mountpoint(path: Path) -> bool:
    """Whether a filesystem is mounted exactly at `path`; does not touch that filesystem."""
    return mount_at(path) is not None


def is_dead(path: Path, *, timeout_s: float = _PROBE_TIMEOUT_S) -> bool:
    """Whether the mount at `path` has lost its daemon. One that does not answer within `timeout_s` is busy, not dead.

    Asked with statfs: attributes and listings of a dead mount may still come from the kernel's cache, statfs never does.
    """
    outcome: list[int] = []

    def probe() -> None:
        try:
            os.statvfs(path)
        except OSError as error:
            outcome.append(error.errno or errno.EIO)
        else:
            outcome.append(0)

    thread = threading.Thread(target=probe, name="mount-probe", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return outcome == [errno.ENOTCONN]


def check_mountable(path: Path) -> Path:
    """The real path of an existing directory that nothing is mounted on; MountError with a hint otherwise."""
    if mount_at(path) is not None:
        if is_dead(path):
            raise MountError(f"{path} is a dead mount", hint=f"clear it with: umount -l {path} (or fusermount3 -uz {path})")
        raise MountError(f"something is mounted at {path} already", hint="unmount it, or choose another directory")
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except FileNotFoundError:
        raise MountError(f"{path} does not exist", hint=f"create it with: mkdir -p {path}") from None
    except OSError as error:
        raise MountError(f"{path} cannot be used: {error.strerror}", hint="check the path and its permissions") from error
    if not stat.S_ISDIR(mode):
        raise MountError(f"{path} is not a directory", hint="choose an empty directory")
    return real

"""`memdir SOURCE DIR -o OPTIONS`: how mount(8) calls us, through `mount.fuse3`, for `mount -t fuse.memdir notes /mnt`, a line
of /etc/fstab, or `mount -o remount,ro /mnt` (mount.fuse3(8))."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Final

from memdir.cli.command import EXIT_OK
from memdir.core.errors import MemdirError, UsageError

_SOURCE_PREFIX: Final = "memdir:"
"""First column of /proc/mounts, which mount(8) hands back for a remount."""
_MS_REMOUNT: Final = 32
_FLAGS: Final = {"ro": 1, "nosuid": 2, "nodev": 4, "noexec": 8, "sync": 16, "dirsync": 128, "noatime": 1024, "nodiratime": 2048}
"""<sys/mount.h>"""
_SWITCHES: Final = {"ro": "--read-only", "no-sync": "--no-sync", "passthrough": "--passthrough"}
_VALUES: Final = ("profile", "cache-size", "prefetch", "fetch-timeout", "drain-timeout")
_IGNORED: Final = frozenset(
    {
        "allow_other", "async", "atime", "auto", "default_permissions", "defaults", "dev", "exec", "lazytime", "noatime",
        "noauto", "nodev", "nodiratime", "noexec", "nofail", "nosuid", "nouser", "owner", "relatime", "rw", "silent",
        "strictatime", "suid", "sync", "user", "users", "_netdev",
    }
)  # fmt: skip
"""What mount(8) and fstab(5) may add and memdir decides by itself."""
_IGNORED_PREFIXES: Final = ("x-", "X-", "comment=", "user_id=", "group_id=", "max_read=", "user=", "subtype=", "fsname=")


def is_helper_call(arguments: Sequence[str]) -> bool:
    """Two names and `-o`: no command of ours looks like that."""
    return len(arguments) >= 4 and arguments[2] == "-o" and not any(word.startswith("-") for word in arguments[:2])


def run(arguments: Sequence[str]) -> int:
    """Mount, or change the flags of a mount."""
    source, place, _, joined = arguments[:4]
    options = [word for word in joined.split(",") if word]
    if "remount" in options:
        _remount(place, [word for word in options if word != "remount"])
        return EXIT_OK
    from memdir.cli.mounts.mount import COMMAND
    from memdir.cli.output import Output

    parsed = COMMAND.parser().parse_args(
        [source.removeprefix(_SOURCE_PREFIX), "--path", place, "--no-agent-hint", *_as_arguments(options)]
    )
    return COMMAND.run(parsed, Output(json=False))


def _as_arguments(options: Sequence[str]) -> list[str]:
    """Options of mount(8) as those of `memdir mount`."""
    found = []
    for word in options:
        name, _, value = word.partition("=")
        if word in _SWITCHES:
            found.append(_SWITCHES[word])
        elif name in _VALUES and value:
            found.append(f"--{name}={value}")
        elif word not in _IGNORED and not word.startswith(_IGNORED_PREFIXES):
            known = ", ".join([*_SWITCHES, *(f"{name}=…" for name in _VALUES)])
            raise UsageError(f"the mount option {word!r} is not known", hint=f"memdir knows {known} and the usual ones")
    return found


def _remount(place: str, options: Sequence[str]) -> None:
    """mount(2) with MS_REMOUNT: the kernel refuses changes, or allows them again, and the daemon is not asked."""
    flags = _MS_REMOUNT
    for word in options:
        flags |= _FLAGS.get(word, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(None, os.fsencode(place), None, ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise MemdirError(f"{place} cannot be remounted: {os.strerror(number)}", hint="is it mounted, and are you root?")

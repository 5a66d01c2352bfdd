"""Asking the kernel for a FUSE mount: mount(2) as root, the setuid helper `fusermount3` as an ordinary user.

The helper's protocol (libfuse, `util/fusermount.c`): it is started with one end of a Unix socket pair whose number is in
`_FUSE_COMMFD`, mounts, and sends the opened `/dev/fuse` back over it as an SCM_RIGHTS message.
"""

from __future__ import annotations

import array
import ctypes
import errno
import logging
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path
from typing import Final

from memdir.core.limits import KIB
from memdir.fs.fuse.errors import MountBusyError, MountError
from memdir.fs.fuse.mountpoint import FSTYPE, SUBTYPE, is_dead, mount_at
from memdir.fs.fuse.options import FuseOptions

_log = logging.getLogger(__name__)

_STACK_MAX: Final = 16
"""Mounts on top of each other that one clearing takes away."""
_DEVICE: Final = "/dev/fuse"
_DEVICE_NUMBER: Final = os.makedev(10, 229)
"""FUSE_MINOR of <linux/miscdevice.h>."""
_HELPERS: Final = ("fusermount3", "fusermount")
_HELPER_TIMEOUT_S: Final = 30.0

# <sys/mount.h>
_MS_RDONLY: Final = 1
_MS_NOSUID: Final = 2
_MS_NODEV: Final = 4
_MS_NOATIME: Final = 1024
_MNT_DETACH: Final = 2
_UMOUNT_NOFOLLOW: Final = 8

_libc: Final = ctypes.CDLL(None, use_errno=True)
"""CDLL releases the GIL during a call: an unmount may wait for requests that another thread of this process answers."""


def mount_path(path: Path, options: FuseOptions) -> int:
    """Mount at `path` (a real directory) and return the connection's descriptor, close-on-exec. MountError with a hint."""
    if os.geteuid() == 0:
        return _mount_as_root(path, options)
    return _mount_as_user(path, options)


def unmount_path(path: Path, *, lazy: bool = False) -> None:
    """Unmount; `lazy` detaches at once and ends when the last user is gone. MountBusyError while files are open.

    A path where nothing is mounted is a MountError: the caller looks at `is_mountpoint` first.
    """
    if os.geteuid() == 0:
        _unmount_as_root(path, lazy=lazy)
    else:
        _unmount_as_user(path, lazy=lazy)


def _mount_as_root(path: Path, options: FuseOptions) -> int:
    try:
        fd = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise _device_error(error) from error
    if not stat.S_ISCHR(os.fstat(fd).st_mode) or os.fstat(fd).st_rdev != _DEVICE_NUMBER:
        os.close(fd)
        raise MountError(f"{_DEVICE} is not the FUSE device", hint=f"as root: rm {_DEVICE}; mknod -m 666 {_DEVICE} c 10 229")
    words = [f"fd={fd}", "rootmode=40000", f"user_id={os.getuid()}", f"group_id={os.getgid()}", "default_permissions"]
    words.append(f"max_read={options.max_write_bytes}")
    if options.allow_other is not False:
        words.append("allow_other")
    flags = _MS_NOATIME | (0 if options.suid_dev else _MS_NOSUID | _MS_NODEV) | (_MS_RDONLY if options.read_only else 0)
    result = _libc.mount(
        options.source.encode(), os.fsencode(path), FSTYPE.encode(), ctypes.c_ulong(flags), ",".join(words).encode("ascii")
    )
    if result != 0:
        number = ctypes.get_errno()
        os.close(fd)
        raise _mount_error(path, number)
    _widen_readahead(path, options)
    return fd


def _widen_readahead(path: Path, options: FuseOptions) -> None:
    """Let the kernel read ahead as far as `readahead_bytes`: INIT can only narrow its default of 128 KiB, and then eight
    requests bring what one could. Only root may; without it streams are slower and nothing else changes."""
    entry = mount_at(path)
    if entry is None:
        return
    try:
        Path(f"/sys/class/bdi/{entry.device}/read_ahead_kb").write_text(str(options.readahead_bytes // KIB), encoding="ascii")
    except OSError as error:
        _log.info("the kernel keeps its own read-ahead: %s", error)


def _mount_as_user(path: Path, options: FuseOptions) -> int:
    helper = _helper()
    words = ["default_permissions", "noatime", f"max_read={options.max_write_bytes}", f"fsname={options.source}"]
    words.append(f"subtype={SUBTYPE}")
    words.append("ro" if options.read_only else "rw")
    if options.allow_other:
        words.append("allow_other")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        process = subprocess.Popen(
            [helper, "-o", ",".join(words), "--", str(path)],
            env={**os.environ, "_FUSE_COMMFD": str(theirs.fileno())},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        theirs.close()
        ours.settimeout(_HELPER_TIMEOUT_S)
        with process:
            try:
                fd = _receive_descriptor(ours)
                _, complaint = process.communicate(timeout=_HELPER_TIMEOUT_S)
            except (TimeoutError, subprocess.TimeoutExpired):
                process.kill()
                raise MountError(
                    f"{helper} did not answer within {_HELPER_TIMEOUT_S:.0f} s", hint="run: memdir doctor"
                ) from None
    if fd is None:
        raise _helper_error(path, helper, complaint)
    os.set_inheritable(fd, False)
    return fd


def _receive_descriptor(sock: socket.socket) -> int | None:
    """One descriptor, or None when the helper hung up without sending one."""
    size = array.array("i").itemsize
    _, ancillary, _, _ = sock.recvmsg(1, socket.CMSG_SPACE(size), socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS and len(data) >= size:
            return int(array.array("i", data[:size])[0])
    return None


def _unmount_as_root(path: Path, *, lazy: bool) -> None:
    if _libc.umount2(os.fsencode(path), _UMOUNT_NOFOLLOW | (_MNT_DETACH if lazy else 0)) == 0:
        return
    number = ctypes.get_errno()
    if number == errno.EBUSY:
        raise _busy(path)
    raise MountError(f"{path} cannot be unmounted: {os.strerror(number)}", hint="is it mounted, and by this user?")


def _unmount_as_user(path: Path, *, lazy: bool) -> None:
    helper = _helper()
    try:
        done = subprocess.run(
            [helper, "-u", *(["-z"] if lazy else []), "--", str(path)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_HELPER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise MountError(f"{helper} did not answer within {_HELPER_TIMEOUT_S:.0f} s", hint="run: memdir doctor") from None
    if done.returncode == 0:
        return
    complaint = done.stderr.decode("utf-8", "replace").strip()
    if "busy" in complaint.lower():
        raise _busy(path)
    raise MountError(f"{path} cannot be unmounted: {complaint}", hint="is it mounted, and by this user?")


def _helper() -> str:
    """The first FUSE helper there is; the system folders count even when PATH lacks them."""
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"])
    for name in _HELPERS:
        found = shutil.which(name, path=search)
        if found:
            return found
    raise MountError(
        "fusermount3 is not installed; an ordinary user cannot mount without it", hint="install it with: apt-get install fuse3"
    )


def _busy(path: Path) -> MountBusyError:
    return MountBusyError(
        f"{path} is in use", hint="close files and leave directories in it (see: fuser -vm PATH), or unmount lazily"
    )


def _device_error(error: OSError) -> MountError:
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return MountError(
            f"{_DEVICE} is missing", hint="load the kernel module with: modprobe fuse; in a container add: --device /dev/fuse"
        )
    return MountError(
        f"{_DEVICE} cannot be opened: {error.strerror}", hint="in a container add: --device /dev/fuse --cap-add SYS_ADMIN"
    )


def _mount_error(path: Path, number: int) -> MountError:
    hints = {
        errno.EPERM: "mounting needs CAP_SYS_ADMIN; in a container add: --device /dev/fuse --cap-add SYS_ADMIN",
        errno.EACCES: "the directory cannot be reached with this user's permissions",
        errno.ENODEV: "this kernel has no FUSE; load it with: modprobe fuse",
        errno.EBUSY: "something is mounted there already; unmount it first",
        errno.ENOENT: "the directory has to exist",
    }
    hint = hints.get(number, "run: memdir doctor")
    return MountError(f"cannot mount at {path}: {os.strerror(number)}", hint=hint)


def _helper_error(path: Path, helper: str, complaint: bytes) -> MountError:
    text = complaint.decode("utf-8", "replace").strip() or "it gave no reason"
    hint = "run: memdir doctor"
    if "user_allow_other" in text:
        hint = "uncomment user_allow_other in /etc/fuse.conf, or mount without allow_other"
    elif "/dev/fuse" in text and "ermission" in text:
        hint = "let users open the device, as udev does on most systems: chmod 666 /dev/fuse"
    elif "/dev/fuse" in text or "modprobe" in text:
        hint = "load the kernel module with: modprobe fuse; in a container add: --device /dev/fuse"
    elif "ermission" in text or "not permitted" in text or "no write access" in text:
        hint = f"the directory must be owned by or writable for this user, and {helper} must be setuid root"
    return MountError(f"{Path(helper).name} refused to mount at {path}: {text}", hint=hint)


def clear_dead_mount(path: Path) -> bool:
    """Take away memdir mounts at `path` whose daemon is gone; True when there was one.

    A living mount, or one of another kind, is left alone. MountError when a dead one cannot be unmounted.
    """
    cleared = False
    for _ in range(_STACK_MAX):
        entry = mount_at(path)
        if entry is None or entry.fstype != FSTYPE or not is_dead(Path(entry.mountpoint)):
            break
        unmount_path(Path(entry.mountpoint), lazy=True)
        cleared = True
    return cleared

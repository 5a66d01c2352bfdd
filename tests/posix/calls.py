"""What the conformance table can call: one method for each word, in raw system call terms where Python would be too kind.

An answer is one line of text: `ok`, the name of an errno, or what the call told. Inode numbers and times differ between two
filesystems, so no answer contains them; `same` and `moved` compare them inside one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import stat
import subprocess
import time
from collections.abc import Callable
from typing import Final, cast

_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_libc.posix_fallocate.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_libc.truncate.argtypes = [ctypes.c_char_p, ctypes.c_int64]
_libc.ftruncate.argtypes = [ctypes.c_int, ctypes.c_int64]
_libc.renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

AT_FDCWD: Final = -100
_BAD_ADDRESS: Final = ctypes.c_void_p(1)
_COARSE: Final = 5
"""CLOCK_REALTIME_COARSE: what a filesystem stamps files with."""
_FORMATS: Final = {
    stat.S_IFREG: "regular", stat.S_IFDIR: "dir", stat.S_IFLNK: "symlink", stat.S_IFSOCK: "socket", stat.S_IFCHR: "char",
    stat.S_IFBLK: "block", stat.S_IFIFO: "fifo",
}  # fmt: skip
_RENAME_FLAGS: Final = {"NOREPLACE": 1, "EXCHANGE": 2, "WHITEOUT": 4}
_FALLOC_FLAGS: Final = {"KEEP_SIZE": 1, "PUNCH_HOLE": 2, "COLLAPSE": 8, "ZERO": 16, "INSERT": 32, "UNSHARE": 64}
_NAMES: Final = errno.errorcode | {errno.EOPNOTSUPP: "EOPNOTSUPP"}
"""EOPNOTSUPP and ENOTSUP are one number."""
_TIMES: Final = ("atime", "mtime", "ctime")
_SPECIAL_TIMES: Final = {"now": (0, 0x3FFFFFFF), "omit": (0, 0x3FFFFFFE), "bad": (0, 1_000_000_000)}
_PATH_CALLS: Final = {
    "open": (2, 1), "truncate": (76, 1), "rename": (82, 2), "mkdir": (83, 1), "rmdir": (84, 1), "link": (86, 2),
    "unlink": (87, 1), "symlink": (88, 2), "readlink": (89, 1), "chmod": (90, 1), "chown": (92, 1), "lchown": (94, 1),
    "mknod": (133, 1), "chdir": (80, 1), "stat": (4, 1), "lstat": (6, 1), "access": (21, 1), "getxattr": (191, 1),
    "removexattr": (197, 1), "utime": (132, 1), "statfs": (137, 1),
}  # fmt: skip
"""Numbers of system calls that take a path on x86-64, and how many paths; for EFAULT, which no wrapper can ask for."""


def check(result: int) -> int:
    """The result of a C call, or its errno as an OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def flags(words: str, table: dict[str, int] | None = None) -> int:
    """`O_RDWR,O_CREAT` as a number."""
    found = 0
    for word in words.split(","):
        found |= table[word] if table is not None else getattr(os, word)
    return found


def number(word: str) -> int:
    """`5`, `4K`, `10G`, `2^63`, `2^63-1`."""
    for suffix, factor in (("K", 10), ("M", 20), ("G", 30), ("T", 40)):
        if word.endswith(suffix):
            return int(word[:-1]) << factor
    if "^" in word:
        power, _, minus = word[word.index("^") + 1 :].partition("-")
        return (-1 if word[0] == "-" else 1) * ((1 << int(power)) - int(minus or 0))
    return int(word)


def mode(word: str) -> int:
    return int(word, 8)


def describe(info: os.stat_result) -> str:
    kind = _FORMATS[stat.S_IFMT(info.st_mode)]
    text = f"type={kind} mode={stat.S_IMODE(info.st_mode):04o} nlink={info.st_nlink} uid={info.st_uid} gid={info.st_gid}"
    return text if kind == "dir" else f"{text} size={info.st_size} rdev={info.st_rdev:#x}"


def times(info: os.stat_result) -> tuple[int, int, int]:
    return info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns


class Calls:
    """The words of the table, with what a case remembers between them. `close` gives back whatever a case left open."""

    def __init__(self) -> None:
        self.fds: dict[str, int] = {}
        self.running: list[subprocess.Popen[bytes]] = []
        self.stamps: dict[str, tuple[int, int, int]] = {}

    def close_all(self) -> None:
        for fd in self.fds.values():
            os.close(fd)
        for process in self.running:
            process.kill()
            process.wait(30)
        os.umask(0)

    def run(self, words: list[str], fd: str) -> str:
        """Do one call; `fd` names the descriptor that it opens."""
        call: Callable[..., object] = getattr(self, f"do_{words[0]}")
        try:
            answer = call(*words[1:])
        except OSError as error:
            return _NAMES.get(error.errno or 0, str(error))
        if words[0] in ("open", "openat"):
            self.fds[fd or f"#{len(self.fds)}"] = cast(int, answer)
            return "ok"
        return "ok" if answer is None else str(answer)

    def _fd(self, word: str) -> int:
        return self.fds[word] if word.startswith("#") else int(word)

    # ---- making

    def do_make(self, kind: str, name: str, bits: str = "0644") -> None:
        """A file of any type that can be made."""
        if kind == "regular":
            self.do_create(name, bits)
        elif kind == "dir":
            os.mkdir(name, mode(bits))
        elif kind == "symlink":
            os.symlink("test", name)
        else:
            types = {"socket": stat.S_IFSOCK, "char": stat.S_IFCHR, "block": stat.S_IFBLK, "fifo": stat.S_IFIFO}
            os.mknod(name, types[kind] | mode(bits), os.makedev(1, 3) if kind in ("char", "block") else 0)

    def do_remove(self, kind: str, name: str) -> None:
        if kind == "dir":
            os.rmdir(name)
        else:
            os.unlink(name)

    def do_create(self, name: str, bits: str = "0644") -> None:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode(bits)))

    def do_mkdir(self, name: str, bits: str = "0755") -> None:
        os.mkdir(name, mode(bits))

    def do_mkfifo(self, name: str, bits: str = "0644") -> None:
        os.mkfifo(name, mode(bits))

    def do_mknod(self, name: str, kind: str, bits: str, major: str = "0", minor: str = "0") -> None:
        kinds = {
            "c": stat.S_IFCHR,
            "b": stat.S_IFBLK,
            "s": stat.S_IFSOCK,
            "f": stat.S_IFREG,
            "p": stat.S_IFIFO,
            "d": stat.S_IFDIR,
        }
        os.mknod(name, kinds[kind] | mode(bits), os.makedev(int(major), int(minor)))

    def do_symlink(self, target: str, name: str) -> None:
        os.symlink(target, name)

    def do_link(self, source: str, name: str) -> None:
        os.link(source, name, follow_symlinks=False)

    def do_linkf(self, source: str, name: str) -> None:
        """linkat with AT_SYMLINK_FOLLOW."""
        check(_libc.linkat(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(name), 0x400))

    def do_umask(self, bits: str) -> None:
        os.umask(mode(bits))

    # ---- removing and moving

    def do_unlink(self, name: str) -> None:
        os.unlink(name)

    def do_rmdir(self, name: str) -> None:
        os.rmdir(name)

    def do_rename(self, source: str, name: str) -> None:
        os.rename(source, name)

    def do_rename2(self, how: str, source: str, name: str) -> None:
        check(_libc.renameat2(AT_FDCWD, os.fsencode(source), AT_FDCWD, os.fsencode(name), flags(how, _RENAME_FLAGS)))

    # ---- descriptors

    def do_open(self, name: str, how: str, bits: str = "0644") -> int:
        return os.open(name, flags(how), mode(bits))

    def do_tryopen(self, name: str, how: str, bits: str = "0644") -> None:
        """Open and close at once: whether it may be done."""
        os.close(os.open(name, flags(how) | os.O_NONBLOCK, mode(bits)))

    def do_openat(self, folder: str, name: str, how: str, bits: str = "0644") -> int:
        return os.open(name, flags(how), mode(bits), dir_fd=self._fd(folder))

    def do_close(self, fd: str) -> None:
        os.close(self.fds.pop(fd))

    def do_write(self, fd: str, text: str) -> int:
        return os.write(self._fd(fd), text.encode())

    def do_pwrite(self, fd: str, offset: str, text: str) -> int:
        return os.pwrite(self._fd(fd), text.encode(), number(offset))

    def do_fill(self, fd: str, offset: str, count: str) -> int:
        """Bytes 'x'."""
        return os.pwrite(self._fd(fd), b"x" * number(count), number(offset))

    def do_read(self, fd: str, count: str) -> str:
        return repr(os.read(self._fd(fd), number(count)))[1:]

    def do_pread(self, fd: str, offset: str, count: str) -> str:
        return repr(os.pread(self._fd(fd), number(count), number(offset)))[1:]

    def do_put(self, name: str, text: str) -> None:
        """The whole contents of a file."""
        with open(name, "wb") as handle:
            handle.write(text.encode())

    def do_cat(self, name: str) -> str:
        with open(name, "rb") as handle:
            return repr(handle.read())[1:]

    def do_lseek(self, fd: str, offset: str, whence: str) -> int:
        return os.lseek(self._fd(fd), number(offset), getattr(os, f"SEEK_{whence}"))

    def do_fsync(self, fd: str) -> None:
        os.fsync(self._fd(fd))

    def do_truncate(self, name: str, size: str) -> None:
        check(_libc.truncate(os.fsencode(name), number(size)))

    def do_ftruncate(self, fd: str, size: str) -> None:
        check(_libc.ftruncate(self._fd(fd), number(size)))

    def do_posix_fallocate(self, fd: str, offset: str, length: str) -> None:
        result = _libc.posix_fallocate(self._fd(fd), number(offset), number(length))
        if result:
            raise OSError(result, os.strerror(result))

    def do_fallocate(self, fd: str, how: str, offset: str, length: str) -> None:
        bits = 0 if how == "0" else flags(how, _FALLOC_FLAGS)
        check(_libc.fallocate(self._fd(fd), bits, number(offset), number(length)))

    # ---- attributes

    def do_stat(self, name: str) -> str:
        return describe(os.stat(name))

    def do_lstat(self, name: str) -> str:
        return describe(os.lstat(name))

    def do_fstat(self, fd: str) -> str:
        return describe(os.fstat(self._fd(fd)))

    def do_same(self, one: str, other: str) -> str:
        """Whether two names (or descriptors) are one file."""
        first, second = (os.fstat(self._fd(word)) if word.startswith("#") else os.lstat(word) for word in (one, other))
        return "yes" if os.path.samestat(first, second) else "no"

    def do_access(self, name: str, how: str) -> None:
        check(_libc.access(os.fsencode(name), {"F": 0, "R": 4, "W": 2, "X": 1, "RWX": 7}[how]))

    def do_chmod(self, name: str, bits: str) -> None:
        os.chmod(name, mode(bits))

    def do_fchmod(self, fd: str, bits: str) -> None:
        os.fchmod(self._fd(fd), mode(bits))

    def do_chown(self, name: str, uid: str, gid: str) -> None:
        os.chown(name, int(uid), int(gid))

    def do_lchown(self, name: str, uid: str, gid: str) -> None:
        os.lchown(name, int(uid), int(gid))

    def do_fchown(self, fd: str, uid: str, gid: str) -> None:
        os.fchown(self._fd(fd), int(uid), int(gid))

    def do_utime(self, name: str, atime: str, mtime: str) -> None:
        """Nanoseconds since 1970, `now` or `omit`; symlinks are followed."""
        self._utimens(AT_FDCWD, os.fsencode(name), atime, mtime, 0)

    def do_lutime(self, name: str, atime: str, mtime: str) -> None:
        self._utimens(AT_FDCWD, os.fsencode(name), atime, mtime, 0x100)

    def do_futime(self, fd: str, atime: str, mtime: str) -> None:
        self._utimens(self._fd(fd), None, atime, mtime, 0)

    def do_touch(self, name: str) -> None:
        """utimensat with a null pointer: now, for whoever may write."""
        check(_libc.utimensat(AT_FDCWD, os.fsencode(name), None, 0))

    def _utimens(self, folder: int, name: bytes | None, atime: str, mtime: str, how: int) -> None:
        fields: list[int] = []
        for word in (atime, mtime):
            fields += _SPECIAL_TIMES.get(word) or divmod(int(word), 1_000_000_000)
        moments = (ctypes.c_long * 4)(*fields)
        check(_libc.futimens(folder, moments) if name is None else _libc.utimensat(folder, name, moments, how))

    def do_times(self, name: str) -> str:
        """Access and modification, in nanoseconds."""
        info = os.lstat(name)
        return f"atime={info.st_atime_ns} mtime={info.st_mtime_ns}"

    def do_stamp(self, *names: str) -> None:
        """Remember the times of files, and wait until the clock that stamps files has moved on (a few milliseconds)."""
        newest = 0
        for name in names:
            info = os.fstat(self._fd(name)) if name.startswith("#") else os.lstat(name)
            self.stamps[name] = times(info)
            newest = max(newest, info.st_ctime_ns)
        while time.clock_gettime_ns(_COARSE) <= newest:
            os.sched_yield()

    def do_moved(self, name: str, known: str = "") -> str:
        """Which times differ from those remembered (under `known`, when the file had another name): mtime, ctime. Not atime,
        since the native filesystem may be mounted with relatime or without."""
        return self._moved(name, known or name).replace("atime ", "").replace("atime", "none")

    def do_allmoved(self, name: str) -> str:
        return self._moved(name, name)

    def _moved(self, name: str, known: str) -> str:
        info = os.fstat(self._fd(name)) if name.startswith("#") else os.lstat(name)
        pairs = zip(_TIMES, self.stamps[known], times(info), strict=True)
        return " ".join(label for label, before, after in pairs if before != after) or "none"

    # ---- extended attributes

    def do_setxattr(self, name: str, key: str, value: str, how: str = "0") -> None:
        os.setxattr(name, key, _value(value), int(how))

    def do_lsetxattr(self, name: str, key: str, value: str) -> None:
        os.setxattr(name, key, _value(value), follow_symlinks=False)

    def do_getxattr(self, name: str, key: str) -> str:
        value = os.getxattr(name, key)
        return repr(value)[1:] if len(value) < 100 else f"bytes={len(value)}"

    def do_sizedxattr(self, name: str, key: str, room: str) -> int:
        """getxattr into a buffer of `room` bytes; 0 asks for the length."""
        return check(_libc.getxattr(os.fsencode(name), key.encode(), ctypes.create_string_buffer(int(room) or 1), int(room)))

    def do_listxattr(self, name: str) -> str:
        return ",".join(sorted(key for key in os.listxattr(name) if not key.startswith("security."))) or "none"

    def do_sizedlist(self, name: str, room: str) -> int:
        return check(_libc.listxattr(os.fsencode(name), ctypes.create_string_buffer(int(room) or 1), int(room)))

    def do_removexattr(self, name: str, key: str) -> None:
        os.removexattr(name, key)

    # ---- directories and the rest

    def do_ls(self, name: str) -> str:
        return ",".join(sorted(os.listdir(name))) or "none"

    def do_readlink(self, name: str) -> str:
        return os.readlink(name)

    def do_chdir(self, name: str) -> None:
        os.chdir(name)

    def do_fchdir(self, fd: str) -> None:
        os.fchdir(self._fd(fd))

    def do_getcwd(self) -> str:
        return os.path.basename(os.getcwd())

    def do_pathconf(self, name: str, what: str) -> int:
        return os.pathconf(name, f"PC_{what}")

    def do_ioctl(self, fd: str, request: str) -> None:
        check(_libc.ioctl(self._fd(fd), ctypes.c_ulong(int(request, 16)), ctypes.create_string_buffer(4096)))

    def do_start(self, name: str) -> None:
        """Copy a program here and keep it running."""
        with open("/bin/sleep", "rb") as source, open(name, "wb") as target:
            target.write(source.read())
        os.chmod(name, 0o755)
        self.running.append(subprocess.Popen([f"./{name}", "600"]))

    def do_exec(self, name: str) -> int:
        """The exit code of a program."""
        return subprocess.run([f"./{name}"], check=False, timeout=30, capture_output=True).returncode

    def do_program(self, name: str) -> None:
        self.do_put(name, "#!/bin/sh\nexit 7\n")
        os.chmod(name, 0o755)

    def do_efault(self, call: str, which: str = "1") -> None:
        """A system call with a path that is no address."""
        call_number, count = _PATH_CALLS[call]
        paths = [_BAD_ADDRESS if int(which) == place else ctypes.c_char_p(b"f") for place in range(1, count + 1)]
        spare = [ctypes.c_long(4)] * 4
        check(_libc.syscall(ctypes.c_long(call_number), *paths, *spare))

    def do_setrlimit_size(self, size: str) -> None:
        """RLIMIT_FSIZE of this process from now on; -1 takes it away. SIGXFSZ is ignored by Python."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _value(word: str) -> bytes:
    """`*1000` is a value of 1,000 bytes."""
    return b"v" * int(word[1:]) if word.startswith("*") else word.encode()

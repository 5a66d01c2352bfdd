"""What a child may not do: sockets (seccomp), files of its user (Landlock), more memory and larger files (setrlimit), outliving
its parent.

seccomp(2), prctl(2): the filter is classic BPF over `struct seccomp_data` (linux/seccomp.h). landlock(7): the rights are those
of linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FILE_MAX_BYTES: Final = 512 << 20
_FILES_MAX: Final = 256
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP: Final = 22
_FILTER_MODE: Final = 2
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | 13  # SECCOMP_RET_ERRNO | EACCES
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ARCHITECTURES: Final = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""AUDIT_ARCH_* and the number of socket(2); io_uring_setup(2) has one number everywhere."""
_IO_URING_SETUP: Final = 425
_X32: Final = 0x40000000
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1, 2, 4, 8
_TRUNCATE: Final = 1 << 14
_TRUNCATE_SINCE: Final = 3
_ALL_FILES: Final = (1 << 13) - 1
_READ: Final = _EXECUTE | _READ_FILE | _READ_FOLDER
_OF_A_FILE: Final = _EXECUTE | _READ_FILE


def close_network() -> bool:
    """From now on this process and its children open no socket. False where the kernel or the processor has no such filter."""
    known = _ARCHITECTURES.get(platform.machine())
    if known is None:
        return False
    architecture, socket_number = known
    program = (
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
        (_AT_LEAST, 3, 0, _X32),
        (_EQUAL, 2, 0, socket_number),
        (_EQUAL, 1, 0, _IO_URING_SETUP),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    return not prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) and not prctl(
        _PR_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(header), 0, 0
    )


def landlock_version() -> int:
    """Of the kernel's interface; below 1 it has none (before Linux 5.13, or switched off)."""
    version: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    return version


def close_files(folder: Path, readable: Iterable[Path]) -> bool:
    """From now on this process and its children open what lies in `folder`, and only read what lies in or is one of `readable`.
    What is open stays open. Needs `close_network` before. False where the kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = landlock_version()
    if version < 1:
        return False
    handled = _ALL_FILES | (_TRUNCATE if version >= _TRUNCATE_SINCE else 0)
    attributes = ctypes.create_string_buffer(struct.pack("=Q", handled), 8)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(8), ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        for path, rights in ((folder, handled), *((path, _READ) for path in readable)):
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue  # there is none on this machine
            allowed = rights if path.is_dir() else rights & _OF_A_FILE
            rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, place), 12)
            libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
            os.close(place)
        return not libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def bound(*, memory_bytes: int, recognition_bytes: int, cpu_s: int) -> None:
    """Limits of this process, which those that it starts inherit. Memory is address space: `memory_bytes`, and the larger
    `recognition_bytes` after `allow_recognition`."""
    for limit, value in (
        (resource.RLIMIT_AS, max(memory_bytes, recognition_bytes)),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, FILE_MAX_BYTES),
        (resource.RLIMIT_NOFILE, _FILES_MAX),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (wanted, wanted))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (min(memory_bytes, hard), hard))


def allow_recognition() -> None:
    """Let this process have the memory that recognising text in pictures takes."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))

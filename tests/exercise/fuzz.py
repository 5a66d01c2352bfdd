"""A coverage-guided fuzzer of the request parser: `Dispatcher.answer` is given mutated requests of a real kernel, and every
reply must be one that the kernel takes. Inputs that reach a new line of `fs/fuse` or `fs/views` become seeds themselves.

    python -m tests.exercise.fuzz --seed 7 --rounds 20 [--kind blobs] [--profile observed] [--within 300] [--blind] [--json]

A round is a new filesystem and some thousand requests; it is the same for the same seed and number. With `--within` the process
ends after so many seconds, whatever hangs, and shows where.
"""

from __future__ import annotations

import argparse
import errno
import faulthandler
import json
import logging
import os
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from memdir.core.clock import FakeClock
from memdir.fs.cache import large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Op
from memdir.fs.fuse.dispatch import Dispatcher
from memdir.fs.fuse.options import FuseOptions, Profile
from memdir.fs.fuse.wire import Header, MalformedRequestError, Reply
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO, VIRTUAL_INO_BASE
from memdir.fs.views import ProfileView, StatusView, ViewVfs
from tests.exercise.capture import UID, UNIQUE, anonymous, load
from tests.memory_folder import memory_folder

KINDS: Final = ("memory", "sqlite", "blobs")
ROUND_REQUESTS: Final = 2_000
_SLOW_S: Final = 3.0
"""Processor time of one request past which it counts as a hang. The slowest honest one copies 8 MiB."""
_DISK_BYTES: Final = 32 << 20
"""What the pretended disk under the blobs has room for: the fuzzer asks for ranges of many terabytes."""
_REQUEST_MAX_BYTES: Final = 70_000
_SEEDS_MAX: Final = 3_000
_NUMBERS: Final = [
    0, 1, 2, 3, 4, 7, 8, 15, 16, 255, 256, 511, 512, 4095, 4096, 65_535, 65_536, 131_072, 1 << 20, 2**31 - 1, 2**31, 2**32 - 2,
    2**32 - 1, 2**39, 2**40, 2**41, 2**41 - 1, VIRTUAL_INO_BASE, VIRTUAL_INO_BASE + 1, VIRTUAL_INO_BASE + 3, 2**62, 2**62 + 1,
    2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1,
]  # fmt: skip
_TEXTS: Final = [
    b"", b"\0", b"/", b".", b"..", b"a", b"d", b"hard", b"a/b", b"../../etc/passwd", b"x" * 255, b"x" * 256, b"x" * 1025,
    b"y" * 4096, b"\xff\xfe", b"a\0b", "ä🦜".encode(), b"profile.md", b".memdir", b".memdirignore", b"user.k", b"user.",
    b"trusted.t", b"system.x", b"security.capability", b"user." + b"n" * 250, b"user." + b"n" * 251, b"status.json", b"errors",
]  # fmt: skip
_SILENT: Final = frozenset({Op.FORGET, Op.BATCH_FORGET, Op.INTERRUPT, Op.NOTIFY_REPLY})
_PAYLOAD_BYTES: Final = {
    Op.LOOKUP: 128, Op.GETATTR: 104, Op.SETATTR: 104, Op.SYMLINK: 128, Op.MKNOD: 128, Op.MKDIR: 128, Op.LINK: 128, Op.OPEN: 16,
    Op.WRITE: 8, Op.STATFS: 80, Op.INIT: 64, Op.CREATE: 144, Op.LSEEK: 8, Op.COPY_FILE_RANGE: 8, Op.COPY_FILE_RANGE_64: 8,
    Op.UNLINK: 0, Op.RMDIR: 0, Op.RENAME: 0, Op.RENAME2: 0, Op.SETXATTR: 0, Op.REMOVEXATTR: 0, Op.FSYNC: 0, Op.FSYNCDIR: 0,
    Op.SYNCFS: 0, Op.FALLOCATE: 0, Op.RELEASE: 0, Op.RELEASEDIR: 0, Op.DESTROY: 0,
}  # fmt: skip
"""Replies of a fixed size. Those that fill a buffer of the caller are checked against it below."""
_READLINK_MAX_BYTES: Final = 4095


def request(op: int, ino: int = ROOT_INO, body: bytes = b"") -> bytes:
    return abi.IN_HEADER.pack(abi.IN_HEADER_BYTES + len(body), op, UNIQUE, ino, UID, UID, 1, 0, 0) + body


BY_HAND: Final = [
    request(Op.RENAME, ROOT_INO, abi.RENAME_IN.pack(ROOT_INO) + b"hard\0there\0"),
    request(Op.COPY_FILE_RANGE, 4, abi.COPY_FILE_RANGE_IN.pack(0, 0, 4, 0, 9000, 100, 0)),
    request(Op.INTERRUPT, 0, struct.pack("=Q", 12345)), request(Op.NOTIFY_REPLY, 0, bytes(40)), request(Op.DESTROY, 0),
    request(Op.SYNCFS, ROOT_INO, bytes(8)), request(Op.ACCESS, ROOT_INO, bytes(8)), request(Op.BMAP, 4, bytes(16)),
    request(Op.POLL, 4, bytes(24)), request(Op.RELEASEDIR, ROOT_INO, bytes(24)), request(Op.GETLK, 4, bytes(48)),
    request(Op.SETLKW, 4, bytes(48)), request(Op.STATX, 4, bytes(24)), request(Op.TMPFILE, ROOT_INO, bytes(16) + b"t\0"),
    request(Op.BATCH_FORGET, 0, abi.BATCH_FORGET_IN.pack(2, 0) + abi.FORGET_ONE.pack(4, 1) + abi.FORGET_ONE.pack(5, 2**63)),
    request(Op.LOOKUP, ROOT_INO, b"profile.md\0"), request(Op.LOOKUP, ROOT_INO, b".memdir\0"),
    request(Op.READ, VIRTUAL_INO_BASE + 1, abi.READ_IN.pack(0, 0, 4096, 0, 0, 0, 0)),
    request(Op.READDIRPLUS, VIRTUAL_INO_BASE + 1, abi.READ_IN.pack(0, 0, 4096, 0, 0, 0, 0)), request(60, ROOT_INO),
    request(2**31, ROOT_INO),
]  # fmt: skip
"""What the kernel of the capture does not send, or not without provocation."""


class FindingError(AssertionError):
    """A reply that the kernel would not take, a defect behind an EIO, or a hang."""


class Watched(Dispatcher):
    """Tells a defect from a request that makes no sense: both are EIO for the kernel."""

    defect: Exception | None = None

    def _failed(self, opcode: int, header: Header, error: Exception) -> Reply:
        if not isinstance(error, MalformedRequestError | struct.error):
            self.defect = error
        return super()._failed(opcode, header, error)


class Target:
    """A filesystem with views behind a dispatcher, in the state that the captured requests leave."""

    def __init__(self, kind: str, profile: str, folder: Path) -> None:
        self.folder = folder
        self.kind = kind
        self.fs = self._open()
        views = [ProfileView(), StatusView(status=dict, queue=list, errors=lambda: {"/a": "refused", "/b": "too long"})]
        self.dispatcher = Watched(ViewVfs(self.fs, views), FuseOptions(profile=Profile(profile)), FakeClock())
        for message in load(profile):
            self.ask(message)

    def _open(self) -> Any:
        if self.kind == "memory":
            return MemoryFs(clock=FakeClock(), uid=UID, gid=UID)
        before, large.BLOB_MIN_BYTES = large.BLOB_MIN_BYTES, 64 if self.kind == "blobs" else large.BLOB_MIN_BYTES
        try:
            fs = SqliteFs.open(self.folder, clock=FakeClock(), uid=UID, gid=UID)
        finally:
            large.BLOB_MIN_BYTES = before
        _shrink_disk(fs)
        return fs

    def ask(self, message: bytes) -> bytes | None:
        """The reply in one piece, checked."""
        self.dispatcher.defect = None
        started_s = time.thread_time()
        answer = self.dispatcher.answer(memoryview(bytearray(message)), len(message))
        took_s = time.thread_time() - started_s
        if self.dispatcher.defect is not None:
            raise FindingError(f"a defect answered as EIO: {self.dispatcher.defect!r}") from self.dispatcher.defect
        if took_s > _SLOW_S:
            raise FindingError(f"{took_s:.1f} s of processor time")
        if answer is not None and not isinstance(answer, bytes):
            if len(answer) > os.sysconf("SC_IOV_MAX"):
                raise FindingError(f"{len(answer)} buffers are more than writev takes")
            answer = b"".join(answer)
        if trouble := reply_trouble(message, answer):
            raise FindingError(trouble)
        return answer

    def close(self) -> None:
        """fsck has the last word."""
        self.fs.close()
        if self.kind != "memory" and (findings := check(self.folder)):
            raise FindingError(f"fsck: {findings[:5]}")


def _shrink_disk(fs: SqliteFs) -> None:
    """Let the blobs refuse to reserve more than a small disk has."""
    blobs: Any = fs._blobs
    allocate = blobs.allocate

    def bounded(ino: int, blob: int, start: int, end: int) -> None:
        if end - start > _DISK_BYTES:
            raise FsError(errno.ENOSPC)
        allocate(ino, blob, start, end)

    blobs.allocate = bounded


def reply_trouble(message: bytes, reply: bytes | None) -> str | None:
    """What the kernel would say about this reply (fuse_dev_do_write and the callers of fuse_simple_request in Linux)."""
    opcode = abi.IN_HEADER.unpack_from(message)[1] if len(message) >= abi.IN_HEADER_BYTES else -1
    if reply is None:
        return None if opcode == -1 or opcode in _SILENT else "no reply"
    if opcode == -1 or opcode in _SILENT:
        return "a reply that nobody waits for"
    length, error, unique = abi.OUT_HEADER.unpack_from(reply)
    payload_bytes = len(reply) - abi.OUT_HEADER_BYTES
    if length != len(reply) or unique != abi.IN_HEADER.unpack_from(message)[2]:
        return f"a header that does not fit: {length} bytes of {len(reply)}, unique {unique}"
    if error:
        return None if -512 < error < 0 and not payload_bytes else f"error {error} with {payload_bytes} bytes"
    return _payload_trouble(opcode, message[abi.IN_HEADER_BYTES :], payload_bytes)


def _payload_trouble(opcode: int, body: bytes, payload_bytes: int) -> str | None:
    fixed = _PAYLOAD_BYTES.get(Op(opcode)) if opcode in set(Op) else None
    if fixed is not None:
        return None if payload_bytes == fixed else f"{payload_bytes} bytes where {fixed} belong"
    if opcode == Op.READLINK:
        room = _READLINK_MAX_BYTES
    elif opcode in (Op.READ, Op.READDIR, Op.READDIRPLUS):
        room = min(abi.READ_IN.unpack_from(body)[2], FuseOptions().max_write_bytes)
    elif opcode in (Op.GETXATTR, Op.LISTXATTR):
        room = abi.GETXATTR_IN.unpack_from(body)[0] or abi.GETXATTR_OUT.size
    else:
        return f"{payload_bytes} bytes as a reply to opcode {opcode}"
    return None if payload_bytes <= room else f"{payload_bytes} bytes for a buffer of {room}"


class Coverage:
    """Lines of the watched files that ran, by `sys.settrace`. On only while a request is answered."""

    def __init__(self, *, blind: bool = False) -> None:
        self.lines: set[tuple[CodeType, int]] = set()
        self._watched: dict[CodeType, bool] = {}
        self._blind = blind

    def __enter__(self) -> Coverage:
        self._before = sys.gettrace()
        if not self._blind:
            sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def functions(self, module: str) -> set[str]:
        """Names of the functions in files of that name that ran."""
        return {code.co_name for code, _ in self.lines if code.co_filename.endswith(module)}

    def _call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        code = frame.f_code
        watched = self._watched.get(code)
        if watched is None:
            watched = self._watched[code] = any(part in code.co_filename for part in ("memdir/fs/fuse/", "memdir/fs/views/"))
        return self._line if watched else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.lines.add((frame.f_code, frame.f_lineno))
        return self._line


class Mutator:
    """From a request to another one."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def mutate(self, seed: bytes, other: bytes) -> bytes:
        rng = self.rng
        head, body = bytearray(seed[: abi.IN_HEADER_BYTES]), bytearray(seed[abi.IN_HEADER_BYTES :])
        for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
            rng.choice([self._number, self._number, self._ino, self._text, self._bytes, self._cut, self._splice, self._opcode])(
                head, body, other
            )
        if rng.random() < 0.6:
            self._mend(head, body)
        message = bytes(head + body)[:_REQUEST_MAX_BYTES]
        if rng.random() < 0.03:
            message = message[: rng.randrange(len(message) + 1)]
        if len(message) >= abi.IN_HEADER_BYTES:
            message = anonymous(message)
        return message

    def _number(self, head: bytearray, body: bytearray, other: bytes) -> None:
        """A field of the body becomes a number at the edge of something."""
        width = self.rng.choice([4, 8])
        if len(body) >= width:
            at = self.rng.randrange(0, len(body) - width + 1, 4)
            value = self.rng.choice(_NUMBERS) + self.rng.choice([0, 0, -1, 1])
            body[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, sys.byteorder)

    def _ino(self, head: bytearray, body: bytearray, other: bytes) -> None:
        value = self.rng.choice([self.rng.randrange(1, 14), self.rng.randrange(1, 14), self.rng.choice(_NUMBERS)])
        head[16:24] = (value % (1 << 64)).to_bytes(8, sys.byteorder)

    def _opcode(self, head: bytearray, body: bytearray, other: bytes) -> None:
        value = self.rng.choice([self.rng.randrange(1, 56), self.rng.choice(list(Op)), self.rng.choice(_NUMBERS) % (1 << 32)])
        head[4:8] = value.to_bytes(4, sys.byteorder)

    def _text(self, head: bytearray, body: bytearray, other: bytes) -> None:
        """The last text, or the whole end, becomes another one."""
        text = self.rng.choice(_TEXTS) + b"\0"
        cut = body.rstrip(b"\0").rfind(b"\0") + 1
        if self.rng.random() < 0.5:
            body[cut:] = text
        else:
            fixed = self.rng.choice([0, 4, 8, 16])
            body[fixed:] = text if self.rng.random() < 0.5 else text + self.rng.choice(_TEXTS) + b"\0"

    def _bytes(self, head: bytearray, body: bytearray, other: bytes) -> None:
        if body:
            at = self.rng.randrange(len(body))
            body[at] ^= 1 << self.rng.randrange(8)

    def _cut(self, head: bytearray, body: bytearray, other: bytes) -> None:
        if self.rng.random() < 0.5:
            del body[self.rng.randrange(len(body) + 1) :]
        else:
            body.extend(self.rng.randbytes(self.rng.choice([1, 7, 8, 40, 5000])))

    def _splice(self, head: bytearray, body: bytearray, other: bytes) -> None:
        at = self.rng.randrange(len(body) + 1)
        body[at:] = other[abi.IN_HEADER_BYTES + at :]

    def _mend(self, head: bytearray, body: bytearray) -> None:
        """Let announced lengths be true again, so that what lies behind the first check is reached."""
        opcode = int.from_bytes(head[4:8], sys.byteorder)
        if opcode == Op.WRITE and len(body) >= abi.WRITE_IN.size:
            body[16:20] = (len(body) - abi.WRITE_IN.size).to_bytes(4, sys.byteorder)
        elif opcode == Op.SETXATTR and b"\0" in body[8:]:
            body[0:4] = (len(body) - body.index(b"\0", 8) - 1).to_bytes(4, sys.byteorder)
        head[0:4] = (len(head) + len(body)).to_bytes(4, sys.byteorder)


class Fuzzer:
    """Rounds of one seed. Seeds that are found go on from round to round."""

    def __init__(self, seed: int, folder: Path, *, blind: bool = False) -> None:
        """`blind`: without coverage, so that no input becomes a seed."""
        self.seed = seed
        self.folder = folder
        self.coverage = Coverage(blind=blind)
        self.corpora = {profile: [*load(profile), *BY_HAND] for profile in ("fast", "observed")}
        self.executions = 0
        self.found = 0
        """Inputs that reached something new."""

    def round(self, number: int, kind: str, profile: str, *, requests: int = ROUND_REQUESTS) -> None:
        """FindingError tells how to see it again."""
        rng = random.Random(f"fuzz {self.seed} {number}")
        mutator, corpus = Mutator(rng), self.corpora[profile]
        target = Target(kind, profile, self.folder / f"round-{number}")
        message = b""
        try:
            for _ in range(requests):
                message = mutator.mutate(rng.choice(corpus), rng.choice(corpus))
                before = len(self.coverage.lines)
                with self.coverage:
                    target.ask(message)
                self.executions += 1
                if len(self.coverage.lines) > before:
                    self.found += 1
                    if len(corpus) < _SEEDS_MAX:
                        corpus.append(message)
            message = b""
            target.ask(request(Op.GETATTR, ROOT_INO, bytes(16)))
        except FindingError as error:
            raise FindingError(
                f"{error}\nseed {self.seed}, round {number} ({kind}, {profile}), request {self.executions}: "
                f"{message[:300].hex()}"
            ) from error
        finally:
            target.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--kind", choices=KINDS)
    parser.add_argument("--profile", choices=["fast", "observed"])
    parser.add_argument("--within", type=float, metavar="SECONDS")
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    if arguments.within:
        faulthandler.dump_traceback_later(arguments.within, exit=True)  # a thread in C: it needs no GIL
    # In memory, because FSYNC is a request like any other.
    with tempfile.TemporaryDirectory(prefix="memdir-fuzz-", dir=memory_folder()) as folder:
        fuzzer = Fuzzer(arguments.seed, Path(folder), blind=arguments.blind)
        for number in range(arguments.rounds):
            kind = arguments.kind or KINDS[number % len(KINDS)]
            fuzzer.round(number, kind, arguments.profile or ("fast", "observed")[number % 2])
    lines = len(fuzzer.coverage.lines)
    if arguments.json:
        told = {"requests": fuzzer.executions, "lines": lines, "found": fuzzer.found}
        json.dump(told | {"handlers": sorted(fuzzer.coverage.functions("names.py"))}, sys.stdout)
    else:
        sys.stdout.write(f"{fuzzer.executions} requests, {lines} lines, {fuzzer.found} new seeds\n")


if __name__ == "__main__":
    main()

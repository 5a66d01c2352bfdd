"""`memdir bench nfs`: calls a second and processor time a call, beside FUSE, on one machine in one run.

The calls are made before and sent in batches, so that the client costs little. FUSE is asked by system calls with the kernel's
caches off the way (`posix_fadvise`, names never asked before), which is what reaches its daemon.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.fuse.session import FuseSession
from memdir.fs.nfs.session import NfsOptions, NfsSession
from memdir.fs.nfs.xdr import opaque, u32, u64
from memdir.fs.types import ROOT_INO, Owner
from memdir_bench.figures import Figure, figure_of, machine
from memdir_bench.report import reported

GOALS: Final[Mapping[str, float]] = {
    "getattr": 20_000, "lookup": 20_000, "read": 400, "write": 400, "cpu_of_a_lookup_against_fuse": 1.5,
}  # fmt: skip
figure: Final = partial(figure_of, GOALS)
_BATCH: Final = 64
_MIB: Final = 1 << 20
_STAT_FILES: Final = 2_000


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """NFS by its protocol, then FUSE by system calls, on one filesystem each."""
    count, size_mib = (2_000, 32) if args.quick else (20_000, 256)
    with tempfile.TemporaryDirectory(prefix="memdir-bench-nfs-") as name:
        figures = [*_nfs(Path(name, "nfs"), count, size_mib)]
        try:
            fuse_s = _fuse_lookup_s(Path(name, "fuse"))
        except OSError as error:
            return {"machine": machine(), "figures": [one.as_json() for one in figures], "failed": {"fuse": str(error)}}
    lookup_s = next(one.value for one in figures if one.name == "cpu_of_a_lookup") / 1e6
    figures.append(figure("cpu_of_a_lookup_against_fuse", lookup_s / fuse_s, "ratio", samples=_STAT_FILES))
    return {"machine": machine(), "figures": [one.as_json() for one in figures], "failed": {}}


@contextmanager
def _served(folder: Path) -> Iterator[tuple[NfsSession, SqliteFs]]:
    (folder / "mnt").mkdir(parents=True)
    fs = SqliteFs.open(folder / "cache", uid=os.geteuid(), gid=os.getegid())
    session = NfsSession(fs, folder / "mnt", NfsOptions(key_folder=folder))
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    try:
        yield session, fs
    finally:
        session.unmount()
        thread.join()
        fs.close()


def _nfs(folder: Path, count: int, size_mib: int) -> Iterator[Figure]:
    with _served(folder) as (session, fs):
        export = session.command.split("127.0.0.1:")[1].split()[0]
        client = _Client(session)
        root = client.handle_of(export)
        owner = Owner(os.geteuid(), os.getegid())
        for number in range(200):
            fs.create(ROOT_INO, f"file-{number}".encode(), 0o100644, owner)
        key = root[:16]
        for name, bodies in (
            ("getattr", [opaque(root)] * count),
            ("lookup", [opaque(root) + opaque(f"file-{number % 200}".encode()) for number in range(count)]),
            ("access", [opaque(root) + u32(0x3F)] * count),
        ):
            took_s, cpu_s = client.timed({"getattr": 1, "lookup": 3, "access": 4}[name], bodies)
            yield figure(name, count / took_s, "calls/s", samples=count, better="higher")
            if name == "lookup":
                yield figure("cpu_of_a_lookup", cpu_s / count * 1e6, "µs", samples=count)
        listing = [opaque(root) + u64(0) + bytes(8) + u32(65_536) + u32(65_536)] * (count // 100)
        took_s, _cpu_s = client.timed(17, listing)
        yield figure(
            "readdirplus", len(listing) / took_s, "calls/s", samples=len(listing), better="higher", note="200 entries each"
        )
        made = fs.create(ROOT_INO, b"big", 0o100644, owner)
        handle = opaque(key + made.ino.to_bytes(8, "big"))
        block = os.urandom(_MIB)
        writes = [handle + u64(at * _MIB) + u32(_MIB) + u32(0) + opaque(block) for at in range(size_mib)]
        took_s, _cpu_s = client.timed(7, writes, batch=4)
        yield figure("write", size_mib / took_s, "MiB/s", samples=size_mib, better="higher", note="1 MiB each, unstable")
        reads = [handle + u64(at * _MIB) + u32(_MIB) for at in range(size_mib)]
        took_s, _cpu_s = client.timed(6, reads, batch=4)
        yield figure("read", size_mib / took_s, "MiB/s", samples=size_mib, better="higher", note="1 MiB each")
        client.close()


class _Client:
    """Sends calls that were made before, in batches, and reads whole replies without looking into them."""

    def __init__(self, session: NfsSession) -> None:
        self._session = session
        self._socket = socket.create_connection(("127.0.0.1", session.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", buffering=4 * _MIB)
        credential = u32(0) + opaque(b"bench") + u32(os.geteuid()) + u32(os.getegid()) + u32(0)
        self._caller = u32(1) + opaque(credential) + u32(0) + opaque(b"")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def _message(self, program: int, procedure: int, body: bytes) -> bytes:
        message = struct.pack(">IIIIII", 1, 0, 2, program, 3, procedure) + self._caller + body
        return u32(0x80000000 | len(message)) + message

    def _reply(self) -> bytes:
        (mark,) = struct.unpack(">I", self._file.read(4))
        return bytes(self._file.read(mark & 0x7FFFFFFF))

    def handle_of(self, export: str) -> bytes:
        self._socket.sendall(self._message(100005, 1, opaque(export.encode())))
        reply = self._reply()
        return reply[32 : 32 + 24]

    def timed(self, procedure: int, bodies: Sequence[bytes], *, batch: int = _BATCH) -> tuple[float, float]:
        """Seconds by the clock, and of the processor in the server. RuntimeError when a call was refused."""
        messages = [self._message(100003, procedure, body) for body in bodies]
        began_s, cpu_s = time.perf_counter(), self._session.stats().cpu_s
        for at in range(0, len(messages), batch):
            part = messages[at : at + batch]
            self._socket.sendall(b"".join(part))
            for _ in part:
                reply = self._reply()
                if reply[24:28] != b"\0\0\0\0":
                    raise RuntimeError(f"procedure {procedure} was refused")
        return time.perf_counter() - began_s, self._session.stats().cpu_s - cpu_s


def _fuse_lookup_s(folder: Path) -> float:
    """Processor seconds of the FUSE loop for a name that the kernel asks for: each is asked once."""
    (folder / "mnt").mkdir(parents=True)
    fs = SqliteFs.open(folder / "cache", uid=os.geteuid(), gid=os.getegid())
    owner = Owner(os.geteuid(), os.getegid())
    for number in range(_STAT_FILES):
        fs.create(ROOT_INO, f"file-{number}".encode(), 0o100644, owner)
    session = FuseSession(fs, folder / "mnt")
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    try:
        before = session.stats()
        for number in range(_STAT_FILES):
            os.stat(folder / "mnt" / f"file-{number}")
        after = session.stats()
    finally:
        session.unmount()
        thread.join()
        fs.close()
    asked = sum(after.requests.values()) - sum(before.requests.values())
    return (after.cpu_s - before.cpu_s) / max(asked, 1)

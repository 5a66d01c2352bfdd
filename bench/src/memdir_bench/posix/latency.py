"""What a single caller waits for: a create, a lookup beside an indexing server, a remote change, a mount after a kill."""

from __future__ import annotations

import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir_bench.corpus import generate, write
from memdir_bench.figures import Figure, percentile
from memdir_bench.posix import clocks
from memdir_bench.posix.sizes import SMALL_FILE_BYTES, Sizes
from memdir_bench.posix.suites import small_file_paths, write_new
from memdir_bench.posix.targets import Peer, Target
from memdir_bench.session import BenchError, BenchSession, uninterrupted

_VISIBLE_LIMIT_S: Final = 10.0
_INDEXING_LIMIT_S: Final = 20.0
_ANSWER_LIMIT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Amounts:
    """How often; a quick run takes a fiftieth."""

    creates: int
    changes: int
    many: int
    documents: int
    lookups_min: int
    kills: int
    files_before_kill: int

    @classmethod
    def of(cls, sizes: Sizes, rounds: int) -> Amounts:
        share = min(1.0, sizes.files / 5000)
        return cls(
            creates=max(100, int(20_000 * share)),
            changes=max(10, int(300 * share)),
            many=max(200, int(10_000 * share)),
            documents=max(24, int(300 * share)),
            lookups_min=max(200, int(5000 * share)),
            kills=rounds,
            files_before_kill=max(50, int(2000 * share)),
        )


def creates(target: Target, amounts: Amounts) -> list[Figure]:
    """open(O_CREAT|O_EXCL), write of 1 KiB, close; every one timed, the background work that they cause included."""
    folder = target.root / "creates"
    folder.mkdir()
    paths = small_file_paths(folder, amounts.creates)
    for parent in sorted({os.path.dirname(path) for path in paths}):
        os.mkdir(parent)
    data = b"x" * SMALL_FILE_BYTES
    waits_us = []
    for path in paths:
        started_ns = time.perf_counter_ns()
        write_new([path], data)
        waits_us.append((time.perf_counter_ns() - started_ns) / 1000)
    prefix = "create" if target.name == "memdir" else f"{target.name}_create"
    count = len(waits_us)
    return [
        Figure(name=f"{prefix}_p50", value=percentile(waits_us, 0.5), unit="us", samples=count),
        Figure(name=f"{prefix}_p99", value=percentile(waits_us, 0.99), unit="us", samples=count),
        Figure(name=f"{prefix}_max", value=max(waits_us) / 1000, unit="ms", samples=count),
    ]


def lookups_while_indexing(session: BenchSession, amounts: Amounts, *, drops: bool) -> list[Figure]:
    """Each name is looked up anew while the daemon pushes and the server indexes; ends when that does, or after 20 s. Passes
    after which nothing is left to index do not count.

    As root the kernel forgets all names before each pass. Otherwise names that do not exist are asked for, each only once.
    """
    session.memdir("server", "start")
    session.mount("indexed")
    root = session.folder / "indexed"
    write(root, generate(amounts.documents))
    found = [os.path.join(parent, name) for parent, _, names in os.walk(root) for name in names]
    waits_us: list[float] = []
    with _client(session) as waiting:
        _wait_begun(waiting)
        deadline_s = time.monotonic() + _INDEXING_LIMIT_S
        for number in itertools.count():
            if drops:
                clocks.drop_caches(clocks.DROP_NAMES)
            lookups_us = _timed_lookups(found if drops else [f"{path}.{number}" for path in found])
            indexing = waiting()
            if not indexing:
                break
            waits_us += lookups_us
            if time.monotonic() > deadline_s and len(waits_us) >= amounts.lookups_min:
                break
    if not waits_us:
        raise BenchError("the server was done before a lookup was measured", hint="use more --files")
    count = len(waits_us)
    note = f"{indexing} of {len(found)} documents were still being indexed at the end"
    return [
        Figure(name="lookup_p50_while_indexing", value=percentile(waits_us, 0.5) / 1000, unit="ms", samples=count),
        Figure(name="lookup_p99_while_indexing", value=percentile(waits_us, 0.99) / 1000, unit="ms", samples=count, note=note),
        Figure(name="lookup_max_while_indexing", value=max(waits_us) / 1000, unit="ms", samples=count),
    ]


def _wait_begun(waiting: Callable[[], int]) -> None:
    """Until the first document is at the server."""
    deadline_s = time.monotonic() + _ANSWER_LIMIT_S
    while waiting() == 0:
        if time.monotonic() > deadline_s:
            raise BenchError(f"nothing reached the server within {_ANSWER_LIMIT_S:.0f} s")
        time.sleep(0.01)


def _timed_lookups(paths: Sequence[str]) -> list[float]:
    waits_us = []
    for path in paths:
        started_ns = time.perf_counter_ns()
        os.path.lexists(path)
        waits_us.append((time.perf_counter_ns() - started_ns) / 1000)
    return waits_us


@contextmanager
def _client(session: BenchSession) -> Iterator[Callable[[], int]]:
    """A way to ask the server how many documents it still works on."""
    from memdir.client.http import Client

    status = session.server_status()
    credentials = json.loads(session.paths().credentials_file.read_text(encoding="utf-8"))
    with Client(str(status["url"]), str(credentials["api_key"])) as client:
        yield lambda: client.processing_count("indexed")


def between_mounts(session: BenchSession, amounts: Amounts) -> list[Figure]:
    """A file written in one mount until another mount of the same memory shows it: the whole way, through the server."""
    session.memdir("server", "start")
    places = [session.folder / "shared-here", session.folder / "shared-there"]
    waits_ms = []
    try:
        for place in places:
            with uninterrupted():
                session.memdir("mount", "shared", "--path", str(place))
                session.mounts.append(str(place))  # two of one name are told apart by their paths
        for number in range(max(5, amounts.changes // 20)):
            name, text = f"note-{number % 3}.md", f"version {number:05d}\n".encode("ascii")
            (places[0] / name).write_bytes(text)
            written_ns = time.monotonic_ns()
            waits_ms.append((_seen(places[1] / name, text) - written_ns) / 1e6)
    finally:
        for place in [place for place in places if str(place) in session.mounts]:
            session.unmount(str(place))
    count = len(waits_ms)
    note = "sync's quiet time, the server and the other mount's pull included"
    return [
        Figure(name="change_between_mounts_p50", value=percentile(waits_ms, 0.5), unit="ms", samples=count, note=note),
        Figure(name="change_between_mounts_max", value=max(waits_ms), unit="ms", samples=count),
    ]


def remote_changes(session: BenchSession, amounts: Amounts) -> list[Figure]:
    """From the arrival of a change to the moment another process reads the new contents; and telling the kernel of 10,000."""
    place = session.folder
    cache = place / "remote-cache"
    cache.mkdir()
    mount = RemoteTarget("remote", place, command=_remote_command(cache), describes="the driver, fed by the benchmark")
    mount.start()
    try:
        return [*_visible(mount, amounts), *_invalidated(mount, amounts)]
    finally:
        mount.stop()


def _remote_command(cache: Path) -> Callable[[Path, Path], list[str]]:
    return lambda _, root: [sys.executable, "-m", "memdir_bench.posix.remote", str(root), str(cache)]


class RemoteTarget(Peer):
    """The child of `remote`, with its pipes."""

    is_peer = False

    def start(self) -> None:
        self.root.mkdir(exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        if self.receive() != {"ready": True}:
            raise BenchError("the mount for remote changes did not come up")

    def send(self, op: str, **arguments: Any) -> None:
        pipe = None if self._process is None else self._process.stdin
        if pipe is None:
            raise BenchError("the mount for remote changes is not running")
        pipe.write(json.dumps({"op": op, **arguments}).encode("ascii") + b"\n")
        pipe.flush()

    def receive(self) -> dict[str, Any]:
        pipe = None if self._process is None else self._process.stdout
        line = b"" if pipe is None else pipe.readline()
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace").strip()[-300:]
            raise BenchError(f"the mount for remote changes ended: {said or 'no message'}")
        answer = json.loads(line)
        if not isinstance(answer, dict) or "error" in answer:
            raise BenchError(f"the mount for remote changes failed: {answer}")
        return answer

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        self.send(op, **arguments)
        return self.receive()


def _visible(mount: RemoteTarget, amounts: Amounts) -> list[Figure]:
    path = mount.root / "watched.md"
    mount.ask("change", path="/watched.md", text="version 00000")
    path.read_bytes()
    waits_ms = []
    for number in range(1, amounts.changes + 1):
        wanted = f"version {number:05d}"
        mount.send("change", path="/watched.md", text=wanted)
        seen_ns = _seen(path, wanted.encode("ascii"))
        waits_ms.append((seen_ns - mount.receive()["arrived_ns"]) / 1e6)
    count = len(waits_ms)
    return [
        Figure(name="remote_change_visible_p50", value=percentile(waits_ms, 0.5), unit="ms", samples=count),
        Figure(name="remote_change_visible", value=max(waits_ms), unit="ms", samples=count, note="the slowest of them"),
    ]


def _seen(path: Path, wanted: bytes) -> int:
    """Look until the contents are there; the monotonic time of that look."""
    deadline_s = time.monotonic() + _VISIBLE_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            if path.read_bytes() == wanted:
                return time.monotonic_ns()
        except FileNotFoundError:
            continue  # a file that is new on the other side
    raise BenchError(f"{path.name} did not show the change within {_VISIBLE_LIMIT_S:.0f} s")


def _invalidated(mount: RemoteTarget, amounts: Amounts) -> list[Figure]:
    mount.ask("change_many", count=amounts.many, text="first")
    _know_all(mount.root / "many", amounts.many, 5)
    changed = mount.ask("change_many", count=amounts.many, text="the second")
    _know_all(mount.root / "many", amounts.many, 10)
    again = mount.ask("announce_again")
    name = f"invalidate_{amounts.many}"
    note = f"{again['count']} notifications, nothing else"
    return [
        Figure(name=name, value=again["told_s"] * 1000, unit="ms", samples=1, note=note),
        Figure(
            name=f"apply_{amounts.many}", value=changed["told_s"] * 1000, unit="ms", samples=1,
            note="replacing the files and telling the kernel",
        ),
    ]  # fmt: skip


def _know_all(folder: Path, count: int, size_bytes: int) -> None:
    """Bring names, attributes and contents into the kernel's caches; they must be the new ones."""
    seen = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            fd = os.open(path, os.O_RDONLY)
            try:
                right = os.fstat(fd).st_size == size_bytes == len(os.read(fd, 100))
            finally:
                os.close(fd)
            if not right:
                raise BenchError(f"{path} still shows an old version")
            seen += 1
    if seen != count:
        raise BenchError(f"{seen} files instead of {count} below {folder}")


def kills(session: BenchSession, amounts: Amounts) -> list[Figure]:
    """kill -9 right after the last acknowledged write, then `memdir mount` until it returns; and what is missing."""
    root = session.folder / "killed"
    data = b"acknowledged " * 78
    waits_s = []
    lost = written = 0
    pid = int(session.mount("killed", "--no-sync", "--json").json()["pid"])
    for number in range(amounts.kills):
        paths = [f"{root}/{number}-{index:05d}" for index in range(amounts.files_before_kill)]
        write_new(paths, data)
        os.kill(pid, signal.SIGKILL)
        _wait_gone(pid)
        again = session.mount("killed", "--no-sync", "--json")
        waits_s.append(again.elapsed_s)
        pid = int(again.json()["pid"])
        written += len(paths)
        lost += sum(not _is_whole(path, data) for path in paths)
    return [
        Figure(
            name="remount_after_kill", value=statistics.median(waits_s), unit="s", samples=len(waits_s),
            spread=(min(waits_s), max(waits_s)), note="the whole memdir mount command",
        ),
        Figure(name="lost_after_kill", value=lost, unit="files", samples=written),
    ]  # fmt: skip


def _wait_gone(pid: int) -> None:
    """Until the kernel has torn the process down; its exit is the daemon's parent's to read, so look."""
    deadline_s = time.monotonic() + _ANSWER_LIMIT_S
    while time.monotonic() < deadline_s:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.001)
    raise BenchError(f"process {pid} did not end after SIGKILL")


def _is_whole(path: str, data: bytes) -> bool:
    try:
        return Path(path).read_bytes() == data
    except OSError:
        return False

"""Real requests of the kernel, seeds of the fuzzer: `python -m tests.exercise.capture` writes `requests-PROFILE.txt` anew.

One request a line, in hex, in the order in which the kernel sent them; replayed in that order on a new filesystem they make the
same tree again. Who asked and the request's number are blanked out, so that a new capture differs only where the kernel does.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

from memdir.core.clock import FakeClock
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Op
from memdir.fs.fuse.session import FuseOptions, FuseSession, Profile
from memdir.fs.memory import MemoryFs
from tests.exercise.operations import World

FOLDER: Final = Path(__file__).parent
UNIQUE: Final = 77
UID: Final = 1000
_RECORDED_MAX_BYTES: Final = 6000


def corpus_path(profile: str) -> Path:
    return FOLDER / f"requests-{profile}.txt"


def load(profile: str) -> list[bytes]:
    """The captured requests in order."""
    return [bytes.fromhex(line) for line in corpus_path(profile).read_text().split()]


def anonymous(message: bytes) -> bytes:
    """Without what differs from one capture to the next."""
    length, opcode, _, ino, _, _, _, extra, padding = abi.IN_HEADER.unpack_from(message)
    return abi.IN_HEADER.pack(length, opcode, UNIQUE, ino, UID, UID, 1, extra, padding) + message[abi.IN_HEADER_BYTES :]


def capture(profile: str, root: Path) -> list[bytes]:
    """Mount, work, unmount; what the kernel asked meanwhile."""
    seen: list[bytes] = []
    session = FuseSession(MemoryFs(clock=FakeClock(), uid=UID, gid=UID), root, FuseOptions(profile=Profile(profile)))
    answer = session._dispatcher.answer

    def recording(buffer: memoryview, length: int) -> object:
        if length <= _RECORDED_MAX_BYTES:
            seen.append(anonymous(bytes(buffer[:length])))
        return answer(buffer, length)

    session._dispatcher.answer = recording  # type: ignore[method-assign, assignment]
    session.mount()
    thread = threading.Thread(target=session.run)
    thread.start()
    try:
        # A child, because a process that maps a file of its own mount stands still.
        subprocess.run([sys.executable, "-m", __spec__.name, "--work", str(root)], check=True, timeout=60)
    finally:
        session.unmount(lazy=True)
        thread.join()
    return [message for number, message in enumerate(seen) if number == 0 or message != seen[number - 1]]


def work(root: Path) -> None:
    """A little of everything."""
    world = World(root)
    with contextlib.suppress(OSError):
        (root / "missing").stat()
    for op in (
        ["mkdir", "d", 0o755], ["mkdir", "d/e", 0o2775], ["open", 0, "a", os.O_RDWR | os.O_CREAT, 0o644],
        ["write", 0, 1, 300], ["pwrite", 0, 2, 100, 5000], ["fsync", 0, False], ["fsync", 0, True], ["pread", 0, 4000, 0],
        ["link", "a", "hard", False],
        ["symlink", "../target", "d/l"], ["readlink", "d/l"], ["rename", "a", "d/b"], ["renameat2", "d/b", "hard", 2],
        ["renameat2", "d/l", "l2", 1], ["chmod", "hard", 0o6755], ["chown", "hard", 5, 6, True], ["utime", "hard", 12345, True],
        ["truncate", "hard", 200], ["ftruncate", 0, 8000], ["fallocate", 0, 0, 0, 9000], ["fallocate", 0, 3, 100, 200],
        ["fallocate", 0, 16, 300, 50], ["lseek", 0, 0, 3], ["lseek", 0, 0, 4], ["setxattr", "hard", "user.k", "value", 0, True],
        ["getxattr", "hard", "user.k"], ["listxattr", "hard"], ["removexattr", "hard", "user.k"], ["mknod", "n", 0o600],
        ["open", 1, "copy", os.O_RDWR | os.O_CREAT, 0o644], ["copy", 0, 1, 300, 0, 10], ["listdir", "."], ["listdir", "d"],
        ["open", 2, "d", os.O_RDONLY | os.O_DIRECTORY, 0], ["flistdir", 2], ["fsync", 2, False], ["access", "d", os.R_OK],
        ["stat", "d/e", True], ["unlink", "n"], ["rmdir", "d/e"], ["open", 3, "copy", os.O_RDONLY, 0], ["unlink", "copy"],
    ):  # fmt: skip
        world.run(op)
    os.statvfs(root)
    with (root / "mapped").open("w+b") as handle:
        handle.truncate(10_000)
        with mmap.mmap(handle.fileno(), 0) as view:
            view[4000:4100] = b"m" * 100
        fcntl.flock(handle, fcntl.LOCK_EX)
        fcntl.lockf(handle, fcntl.LOCK_SH)
        os.isatty(handle.fileno())
    os.utime(root / "mapped")
    world.close()
    os.sync()


def main() -> None:
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]))
        return
    for profile in ("fast", "observed"):
        with tempfile.TemporaryDirectory() as root:
            requests = capture(profile, Path(root))
        corpus_path(profile).write_text("".join(f"{message.hex()}\n" for message in requests))
        names = {op.value: op.name for op in Op}
        kinds = sorted({names.get(abi.IN_HEADER.unpack_from(message)[1], "?") for message in requests})
        sys.stdout.write(f"{profile}: {len(requests)} requests: {' '.join(kinds)}\n")


if __name__ == "__main__":
    main()

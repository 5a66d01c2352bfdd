"""A mount whose remote changes this benchmark makes itself: `python -m memdir_bench.posix.remote MOUNTPOINT FOLDER`.

The same filesystem, driver and notifier as in the daemon, without the network in front: what arrives here is what a pull hands
over. One JSON command a line on standard input, one JSON answer a line on standard output; ends when the mount is gone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir.fs.cache import SqliteFs
from memdir.fs.fuse.session import FuseSession
from memdir.fs.types import LocalFact
from memdir.fs.vfs import Invalidator

SWITCH_INTERVAL_S: Final = 0.0001
"""As the daemon sets it."""
_NOTIFY_LIMIT_S: Final = 60.0


class Announcements:
    """Hands invalidations on and remembers them, so that they can be sent again by themselves."""

    def __init__(self, invalidator: Invalidator) -> None:
        self._invalidator = invalidator
        self.seen: list[tuple[int, bytes | None]] = []

    def inode_changed(self, ino: int) -> None:
        self.seen.append((ino, None))
        self._invalidator.inode_changed(ino)

    def entry_changed(self, parent: int, name: bytes) -> None:
        self.seen.append((parent, name))
        self._invalidator.entry_changed(parent, name)

    def again(self) -> int:
        for ino, name in self.seen:
            if name is None:
                self._invalidator.inode_changed(ino)
            else:
                self._invalidator.entry_changed(ino, name)
        return len(self.seen)


class RemoteMount:
    """The filesystem, its mount, and what can be asked of them."""

    def __init__(self, mountpoint: Path, folder: Path) -> None:
        self.fs = SqliteFs.open(folder)
        self.session = FuseSession(self.fs, mountpoint)
        self._announcements = Announcements(self.session.invalidator)
        self.fs.connect(self._announcements)

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        operations = {"change": self._change, "change_many": self._change_many, "announce_again": self._announce_again}
        return operations[command["op"]](command)

    def _change(self, command: dict[str, Any]) -> dict[str, Any]:
        """One file; the moment is that of its arrival, before anything was done with it."""
        expected = self.fs.fact(command["path"])
        text = command["text"].encode("utf-8")
        arrived_ns = time.monotonic_ns()
        self._put(command["path"], text, expected)
        return {"arrived_ns": arrived_ns}

    def _change_many(self, command: dict[str, Any]) -> dict[str, Any]:
        """As fast as they can be applied."""
        text = command["text"].encode("utf-8")
        paths = [f"/many/d{number // 100:04d}/file-{number:05d}" for number in range(command["count"])]
        facts = [self.fs.fact(path) for path in paths]
        self._announcements.seen.clear()
        started_s = time.perf_counter()
        for path, fact in zip(paths, facts, strict=True):
            self._put(path, text, fact)
        applied_s = time.perf_counter() - started_s
        self._wait_told()
        return {"applied_s": applied_s, "told_s": time.perf_counter() - started_s}

    def _announce_again(self, _: dict[str, Any]) -> dict[str, Any]:
        """What `change_many` told the kernel, by itself."""
        started_s = time.perf_counter()
        count = self._announcements.again()
        self._wait_told()
        return {"count": count, "told_s": time.perf_counter() - started_s}

    def _put(self, path: str, text: bytes, expected: LocalFact | None) -> None:
        self.fs.put_file(path, [text], mode=0o644, mtime_ns=time.time_ns(), expected=expected)

    def _wait_told(self) -> None:
        if not self.session.wait_notified(_NOTIFY_LIMIT_S):
            raise MemdirError(f"the kernel was not told within {_NOTIFY_LIMIT_S:.0f} s")


def _say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _serve(mount: RemoteMount) -> None:
    for line in sys.stdin:
        try:
            _say(mount.answer(json.loads(line)))
        except MemdirError as error:
            _say({"error": error.message})


def main() -> None:
    mount = RemoteMount(Path(sys.argv[1]), Path(sys.argv[2]))
    mount.session.mount()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    threading.Thread(target=_serve, args=(mount,), daemon=True).start()
    _say({"ready": True})
    mount.session.run()
    mount.fs.close()
    sys.stdout.flush()
    os._exit(0)  # the other thread sits in a read of standard input


if __name__ == "__main__":
    main()

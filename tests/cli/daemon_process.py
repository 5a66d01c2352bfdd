"""`python -m tests.cli.daemon_process ID MODE`: a process that holds a mount's lock and answers `stop`, well or badly.

Modes: `good` answers and ends; `stays` answers and does not end; `silent` never answers, but obeys SIGTERM; `stubborn` never
answers and ignores SIGTERM.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import sys

from memdir.core.paths import app_paths
from memdir.daemon.registry import MountLock, MountRegistry


def main(mount_id: str, mode: str) -> None:
    registry = MountRegistry(app_paths())
    record = registry.get(mount_id)
    lock = MountLock.acquire(record.lock_file)
    registry.save(dataclasses.replace(record, pid=os.getpid()))
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(record.socket_file)
        listener.listen(4)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                request = json.loads(lines.readline())
                if mode in ("silent", "stubborn"):
                    signal.pause()
                assert request["op"] == "stop"
                connection.sendall(json.dumps({"ok": True, "result": {"left": 4}}).encode() + b"\n")
            if mode == "good":
                break
    registry.save(dataclasses.replace(record, pid=None))
    lock.release()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

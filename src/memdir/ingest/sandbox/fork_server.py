"""Forks a child for each document that the parent sends. Reads no document itself. Ends when the parent does, and if that
was killed leaves none of its documents behind.

The socket on standard input brings one JSON object a message, with the pipe for the child's answers as a descriptor.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import shutil
import signal
import socket
import sys
from importlib import import_module

from memdir.ingest.sandbox.confinement import close_network
from memdir.ingest.sandbox.messages import REQUEST_MAX_BYTES

_PRELOADED = (
    *("pdf", "word", "slides", "sheets", "opendocument", "ebook", "rtf", "email", "outlook", "calendar", "chat", "image"),
    "archive",
)


def main() -> int:
    """Exit code 0 when the parent has closed the socket."""
    close_network()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    for name in _PRELOADED:
        import_module(f"memdir.ingest.extractors.{name}")
    from memdir.ingest.sandbox import child

    gc.collect()
    gc.freeze()  # a child's first collection would copy every page it shares with this process
    folders: set[str] = set()
    with socket.socket(fileno=os.dup(0)) as control:
        while True:
            data, descriptors, _, _ = socket.recv_fds(control, REQUEST_MAX_BYTES, 1)
            if not data:
                for folder in folders:  # copies of somebody's documents that the parent could not delete
                    shutil.rmtree(folder, ignore_errors=True)
                return 0
            request = json.loads(data)
            folders = {request["folder"], *filter(os.path.exists, folders)}
            server_pid = os.getpid()
            if os.fork() == 0:
                with contextlib.suppress(BaseException):
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # its own programs are waited for
                    control.close()
                    os.close(0)
                    child.run(request, descriptors[0], server_pid)
                os._exit(1)
            for descriptor in descriptors:
                os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())

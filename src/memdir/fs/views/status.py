"""`/.memdir/`: the state of the mount as files, for people and agents who look with `cat`.

Hidden from listings, so that copying or indexing the mount never picks it up; `ls .memdir` works all the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from memdir.core.limits import NAME_MAX_BYTES
from memdir.fs.path import encode
from memdir.fs.views.names import HIDDEN_NAME
from memdir.fs.views.nodes import VirtualDir, VirtualFile, VirtualNode

_ERRORS_MAX: Final = 1000
"""Files shown in `errors/`; `queue.json` and `memdir status` know the rest."""
_SUFFIX: Final = ".txt"
_DIGEST_CHARS: Final = 16


class StatusView:
    """`status.json` and `queue.json` hold what the callbacks return, `errors/` one text file for each parked path.

    The callbacks run in the request loop: they return what is already known, at once, and never touch the mount.
    """

    name = HIDDEN_NAME
    listed = False
    yields = False

    def __init__(self, *, status: Callable[[], Any], queue: Callable[[], Any], errors: Callable[[], Mapping[str, str]]) -> None:
        self._errors = errors
        children: dict[bytes, VirtualNode] = {
            b"status.json": VirtualFile(render=lambda: _as_json(status())),
            b"queue.json": VirtualFile(render=lambda: _as_json(queue())),
            b"errors": VirtualDir(children=self._error_files),
        }
        self.node = VirtualDir(children=lambda: children)

    def connect(self, changed: Callable[[], None]) -> None:
        """Nothing to announce: these files are made anew at every look."""

    def _error_files(self) -> dict[bytes, VirtualNode]:
        shown = sorted(self._errors().items())[:_ERRORS_MAX]
        return {error_name(path): _text_file(f"{path}\n\n{reason.rstrip()}\n") for path, reason in shown}


def error_name(path: str) -> bytes:
    """A file name for a path: without the first slash, `%2F` for the others, cut and told apart by a digest when too long."""
    quoted = encode(path.lstrip("/").replace("%", "%25").replace("/", "%2F"))
    if len(quoted) + len(_SUFFIX) <= NAME_MAX_BYTES:
        return quoted + _SUFFIX.encode()
    digest = hashlib.sha256(encode(path)).hexdigest()[:_DIGEST_CHARS]
    tail = f"~{digest}{_SUFFIX}".encode()
    kept = quoted[: NAME_MAX_BYTES - len(tail)].decode("utf-8", "ignore").encode()
    return kept + tail


def _text_file(text: str) -> VirtualFile:
    data = encode(text)
    return VirtualFile(render=lambda: data)


def _as_json(value: Any) -> bytes:
    """Indented for reading. ASCII, so that odd file names survive every reader."""
    return json.dumps(value, indent=2, sort_keys=True, default=str).encode("ascii") + b"\n"

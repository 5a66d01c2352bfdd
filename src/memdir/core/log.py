"""Logging to a bounded file, one line an event, with secrets blanked out: our own keys, and the formats of others.

Nothing leaves the machine. `memdir logs` reads these files.
"""

from __future__ import annotations

import logging
import os
import re
from logging.handlers import RotatingFileHandler
from pathlib import Path

from memdir.core.limits import MIB
from memdir.core.paths import ensure_dir

_SECRET = re.compile(r"\bmd_[A-Za-z0-9_-]{16,}")
_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class _RedactingFormatter(logging.Formatter):
    """Blanks keys in the finished line, so that arguments and tracebacks are covered too."""

    def format(self, record: logging.LogRecord) -> str:
        from memdir.core.secrets import masked  # not before there is something to log: it compiles 40 patterns

        return masked(_SECRET.sub("md_[redacted]", super().format(record)))


def log_to_file(path: Path, *, level: int = logging.INFO) -> None:
    """Send the `memdir` loggers to `path`: 0600, at most 3 files of 4 MiB."""
    ensure_dir(path.parent)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    handler = RotatingFileHandler(path, maxBytes=4 * MIB, backupCount=2, encoding="utf-8", errors="backslashreplace")
    _install(handler, level)


def log_to_stderr(*, level: int = logging.INFO) -> None:
    """Send the `memdir` loggers to standard error (foreground runs)."""
    _install(logging.StreamHandler(), level)


def _install(handler: logging.Handler, level: int) -> None:
    handler.setFormatter(_RedactingFormatter(_FORMAT))
    root = logging.getLogger("memdir")
    root.setLevel(level)
    root.addHandler(handler)

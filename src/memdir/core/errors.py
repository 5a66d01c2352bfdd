"""The root of every error that a user may read.

Each layer derives its own tree from `MemdirError`; the edge (CLI, HTTP, FUSE) maps a class to an exit code, a status or
an errno in one table. `hint` says what to do next, in one sentence.
"""

from __future__ import annotations


class MemdirError(Exception):
    """A failure that has an explanation; never shown with a stack trace."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(MemdirError):
    """The caller asked for something that cannot be; nothing was changed."""


class NotFoundError(MemdirError):
    """The named thing does not exist."""


class BusyError(MemdirError):
    """Somebody else holds the lock or the address."""


class CorruptError(MemdirError):
    """Stored data does not say what it must; `memdir fsck` or a rebuild is the next step."""


class StorageError(MemdirError):
    """The disk or its permissions refuse; nothing is wrong with the data."""


class VersionError(MemdirError):
    """Stored data was written by a newer memdir than this one."""


class FetchError(MemdirError):
    """A page or a search of the web that could not be had."""


class UnreachableError(FetchError):
    """The host gave no answer; later it may."""

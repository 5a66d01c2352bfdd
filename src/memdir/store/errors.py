"""What the store refuses, and why. The server maps each class to a status in one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memdir.core.errors import BusyError, MemdirError, StorageError

if TYPE_CHECKING:
    from memdir.store.types import Document


class StoreError(MemdirError):
    """Root of this layer; nothing was changed."""


class InvalidError(StoreError):
    """The request cannot be carried out whatever the store holds (a bad path, a folder moved into itself)."""


class ConflictError(StoreError):
    """The request does not fit what stands there (a file over a folder, a folder that is not empty)."""


class PreconditionError(StoreError):
    """If-Match or If-None-Match did not hold. `current` is what stands there now."""

    def __init__(self, message: str, *, current: Document | None) -> None:
        super().__init__(message)
        self.current = current


class HistoryGoneError(StoreError):
    """The feed cannot say it step by step; everything is to be compared again."""


class HistoryForkedError(StoreError):
    """The caller has seen another history than this one: the store was restored from a backup, or its files were put back."""


class IdempotencyError(StoreError):
    """The key was used before, for another request."""


class SupersededError(StoreError):
    """What a worker holds is not wanted any more: the document was replaced or deleted, or another worker has the work now."""

    def __init__(self, message: str = "the document was replaced or deleted, or another worker has the work") -> None:
        super().__init__(message)


class DiskFullError(StorageError):
    """A write found no room, here or on the database's machine, or none beside what is kept for deleting; its transaction did
    not happen."""

    def __init__(self, message: str = "the server's disk is full", *, hint: str = "make room; nothing was changed") -> None:
        super().__init__(message, hint=hint)


class ContentionError(BusyError):
    """The transaction stood in another one's way (a deadlock) and was rolled back: running it again is right."""

"""Errors of the server's own, and the one table from error classes to statuses."""

from __future__ import annotations

from typing import Final

from memdir.core.errors import BusyError, CorruptError, MemdirError, NotFoundError, StorageError, UsageError
from memdir.store.errors import (
    ConflictError,
    DiskFullError,
    HistoryForkedError,
    HistoryGoneError,
    IdempotencyError,
    InvalidError,
    PreconditionError,
)


class AuthenticationError(MemdirError):
    """No key, or none that we know."""


class ForbiddenError(MemdirError):
    """The key is known and may not do this; or the request comes from where none may come from."""


class TooLargeError(MemdirError):
    """More bytes than the server takes."""


class UnsupportedError(MemdirError):
    """A body in a form that the server does not read."""


class RateError(MemdirError):
    """The key calls too often; `retry_after_s` says when it may again."""

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message, hint=f"try again in {retry_after_s} s")
        self.retry_after_s = retry_after_s


class QuotaError(MemdirError):
    """The key's containers, or the organisation, hold as much as they may."""


class RefusedSecretError(MemdirError):
    """What was sent holds a secret, and the caller did not ask to have it replaced."""


class NotImplementedHereError(MemdirError):
    """A call of another service's API that this server does not offer, said plainly."""


STATUS: Final[tuple[tuple[type[MemdirError], int], ...]] = (
    (AuthenticationError, 401),
    (ForbiddenError, 403),
    (RateError, 429),
    (QuotaError, 413),
    (TooLargeError, 413),
    (UnsupportedError, 415),
    (NotImplementedHereError, 501),
    (PreconditionError, 412),
    (ConflictError, 409),
    (HistoryForkedError, 409),
    (HistoryGoneError, 410),
    (IdempotencyError, 422),
    (RefusedSecretError, 422),
    (InvalidError, 400),
    (UsageError, 400),
    (NotFoundError, 404),
    (DiskFullError, 507),
    (BusyError, 503),
    (StorageError, 503),
    (CorruptError, 500),
)


def status_of(error: MemdirError) -> int:
    """The HTTP status for an error; 500 for one that no rule names."""
    for kind, status in STATUS:
        if isinstance(error, kind):
            return status
    return 500


def headers_of(error: MemdirError) -> dict[str, str]:
    """What the answer to an error says in its headers."""
    if isinstance(error, AuthenticationError):
        return {"WWW-Authenticate": "Bearer"}
    if isinstance(error, RateError):
        return {"Retry-After": str(error.retry_after_s)}
    if isinstance(error, NotImplementedHereError):  # the published clients try every 5xx again, unless they are told not to
        return {"x-should-retry": "false"}
    return {"Retry-After": "2"} if status_of(error) == 503 else {}


def text_of(error: MemdirError) -> str:
    """The sentence for the caller, with the hint."""
    return f"{error.message} ({error.hint})" if error.hint else error.message

"""What a call to the server can end in, one class for each thing a caller does about it.

`from_status` is the only table from HTTP statuses to errors; batch items go through it as well.
"""

from __future__ import annotations

import math

from memdir.api.v1 import FileEntry
from memdir.core.errors import MemdirError


class ClientError(MemdirError):
    """Any failed call."""


class OfflineError(ClientError):
    """The server was not reached, or the answer was lost: it is not known whether the call happened."""


class ServerError(ClientError):
    """5xx, 408, 425, or an answer that makes no sense: try again later."""


class ServerFullError(ServerError):
    """507: the server has no room; what was sent is as it was."""


class RateLimitedError(ClientError):
    """429: try again after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuthError(ClientError):
    """401: no call will work before somebody repairs the key."""


class ForbiddenError(AuthError):
    """403: the key is known and may not do this; what it may do still works."""


class NotFoundError(ClientError):
    """404: nothing stands at that path."""


class ConflictError(ClientError):
    """409: something that stands there now is in the way."""


class PreconditionFailedError(ClientError):
    """412: the path is at another revision. `current` is what stands there now, None for nothing."""

    def __init__(self, message: str, *, current: FileEntry | None) -> None:
        super().__init__(message)
        self.current = current


class RejectedError(ClientError):
    """400, 413, 415, 422 and the like: this request will never be accepted as it is."""


class TooLargeError(RejectedError):
    """413."""


class CursorGoneError(ClientError):
    """410: the feed no longer reaches back that far; compare everything again."""


SERVER_FULL = "the server's disk is full"
_RETRY_AFTER_DEFAULT_S = 5.0
_RETRY_AFTER_MAX_S = 3600.0


def from_status(status: int, message: str, *, current: FileEntry | None = None, retry_after: str | None = None) -> ClientError:
    """The error for a status of 300 or more."""
    text = f"{message} (HTTP {status})"
    if status == 401:
        return AuthError(text, hint="`memdir login` with a new key; `memdir whoami` tells which one is used")
    if status == 403:
        return ForbiddenError(text, hint="`memdir whoami` tells which key is used and what it opens")
    if status == 412:
        return PreconditionFailedError(text, current=current)
    if status == 429:
        return RateLimitedError(text, retry_after_s=retry_after_seconds(retry_after))
    if status == 507:
        return ServerFullError(SERVER_FULL, hint="make room there; it goes on by itself")
    if status >= 500 or status in (408, 425):
        return ServerError(text)
    simple: dict[int, type[ClientError]] = {
        404: NotFoundError,
        409: ConflictError,
        410: CursorGoneError,
        413: TooLargeError,
    }
    return simple.get(status, RejectedError)(text)


def retry_after_seconds(value: str | None) -> float:
    """Seconds of a Retry-After header, 5 when it is missing or a date, at most an hour."""
    try:
        seconds = float(value) if value is not None else _RETRY_AFTER_DEFAULT_S
    except ValueError:
        return _RETRY_AFTER_DEFAULT_S
    return min(max(seconds, 0.0), _RETRY_AFTER_MAX_S) if not math.isnan(seconds) else _RETRY_AFTER_DEFAULT_S

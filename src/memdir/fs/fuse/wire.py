"""What handlers take and give, and the parsing that several of them share."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from memdir.fs.types import Data

Header: TypeAlias = tuple[Any, ...]
"""An unpacked fuse_in_header; the positions that handlers use follow."""
HEADER_OPCODE: Final = 1
HEADER_UNIQUE: Final = 2
HEADER_INO: Final = 3
HEADER_UID: Final = 4
HEADER_GID: Final = 5
HEADER_PID: Final = 6

Reply: TypeAlias = bytes | Sequence[Data] | int | None
"""Bytes are a payload, a sequence is a payload in pieces, a number is an errno, None is silence (the kernel expects no answer).
An expected refusal (ENOSYS) is returned and not raised: exceptions cost a microsecond."""

Handler: TypeAlias = Callable[[int, memoryview, Header], Reply]
"""Takes the inode number, the bytes behind the header and the header. The bytes are valid during the call only."""

OK: Final = b""

SETID_BITS: Final = stat.S_ISUID | stat.S_ISGID


class MalformedRequestError(ValueError):
    """The bytes are no request of this protocol. Answered with EIO."""


def one_name(body: memoryview) -> bytes:
    """The name in `name NUL`."""
    raw = bytes(body)
    if raw.find(0) != len(raw) - 1 or not raw:
        raise MalformedRequestError("a name must end with the only NUL")
    return raw[:-1]


def two_names(body: memoryview) -> tuple[bytes, bytes]:
    """Both names in `name NUL name NUL`."""
    parts = bytes(body).split(b"\0")
    if len(parts) != 3 or parts[2]:
        raise MalformedRequestError("two names, each with a NUL behind it, were expected")
    return parts[0], parts[1]

"""XDR (RFC 4506): what NFS messages are made of. Big-endian words; everything is padded to four bytes."""

from __future__ import annotations

import struct
from typing import Final

_U32: Final = struct.Struct(">I")
_U64: Final = struct.Struct(">Q")
_PADDING: Final = (b"", b"\0\0\0", b"\0\0", b"\0")

u32 = _U32.pack
u64 = _U64.pack
TRUE: Final = u32(1)
FALSE: Final = u32(0)


class XdrError(ValueError):
    """A message that ends too early, or says that something is longer than it may be."""


def opaque(data: bytes | bytearray | memoryview) -> bytes:
    """Bytes of any length, with their length before them."""
    return b"".join((u32(len(data)), data, _PADDING[len(data) & 3]))


class Reader:
    """Reads a message from its beginning."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def u32(self) -> int:
        try:
            (value,) = _U32.unpack_from(self._data, self._at)
        except struct.error:
            raise XdrError("the message ends too early") from None
        self._at += 4
        return int(value)

    def words(self, count: int) -> tuple[int, ...]:
        """As `u32`, several at once."""
        try:
            found = struct.unpack_from(f">{count}I", self._data, self._at)
        except struct.error:
            raise XdrError("the message ends too early") from None
        self._at += 4 * count
        return found

    def u64(self) -> int:
        try:
            (value,) = _U64.unpack_from(self._data, self._at)
        except struct.error:
            raise XdrError("the message ends too early") from None
        self._at += 8
        return int(value)

    def flag(self) -> bool:
        value = self.u32()
        if value > 1:
            raise XdrError("a boolean is 0 or 1")
        return value == 1

    def opaque(self, max_bytes: int) -> memoryview:
        """XdrError when it is longer than `max_bytes`."""
        length = self.u32()
        if length > max_bytes:
            raise XdrError(f"{length} bytes where at most {max_bytes} may be")
        return self.fixed(length)

    def fixed(self, length: int) -> memoryview:
        end = self._at + length
        if end + (-length & 3) > len(self._data):
            raise XdrError("the message ends too early")
        found = self._data[self._at : end]
        self._at = end + (-length & 3)
        return found

"""Documents of Pages, Numbers and Keynote, as far as they are read: objects, protocol buffers, Snappy."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence

Field = tuple[int, "int | bytes | str"]


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def message(*fields: Field) -> bytes:
    found = b""
    for number, value in fields:
        if isinstance(value, int):
            found += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            found += varint(number << 3 | 2) + varint(len(data)) + data
    return found


def reference(identity: int) -> bytes:
    return message((1, identity))


def stored(identity: int, kind: int, data: bytes) -> bytes:
    """An object with its head."""
    head = message((1, identity), (2, message((1, kind), (3, len(data)))))
    return varint(len(head)) + head + data


def storage(identity: int, text: str, kind: int = 3) -> bytes:
    return stored(identity, 2001, message((1, kind), (3, text)))


def literal(data: bytes) -> bytes:
    """A Snappy block without copies."""
    return varint(len(data)) + b"\xf4" + struct.pack("<H", len(data) - 1) + data


def iwa(*blocks: bytes) -> bytes:
    return b"".join(b"\0" + len(block).to_bytes(3, "little") + block for block in blocks)


def packed(files: Mapping[str, Sequence[bytes] | bytes]) -> bytes:
    """A document: for a file with objects their bytes one after the other."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, parts in files.items():
            archive.writestr(name, parts if isinstance(parts, bytes) else iwa(literal(b"".join(parts))))
        archive.writestr("Metadata/BuildVersionHistory.plist", b"x")
    return buffer.getvalue()


def cell(kind: int, *parts: tuple[int, bytes]) -> bytes:
    return bytes([5, kind]) + bytes(6) + struct.pack("<I", sum(bit for bit, _ in parts)) + b"".join(data for _, data in parts)


def decimal(significand: int, exponent: int, *, negative: bool = False) -> bytes:
    biased = exponent + 0x1820
    high = [(biased & 0x7F) << 1 & 0xFF, biased >> 7 | (0x80 if negative else 0)]
    return significand.to_bytes(14, "little") + bytes(high)


def table(begin: int, name: str, rows: Sequence[Sequence[bytes | None]], strings: Sequence[str], rich: str = "") -> bytes:
    """A table whose objects have the identities from `begin` on; text is referred to by its place in `strings`, from 1."""
    tile = b""
    for number, cells in enumerate(rows):
        offsets, buffer = b"", b""
        for one in cells:
            offsets += struct.pack("<h", len(buffer) if one is not None else -1)
            buffer += one or b""
        tile += message((5, message((1, number), (6, buffer), (7, offsets + b"\xff\xff" * 3))))
    entries = [(3, message((1, key), (3, text))) for key, text in enumerate(strings, start=1)]
    store = message(
        (3, message((1, message((2, reference(begin + 2)))))), (4, reference(begin + 3)), (17, reference(begin + 4))
    )
    return b"".join(
        [
            stored(begin, 6000, message((2, reference(begin + 1)))),
            stored(begin + 1, 6001, message((4, store), (7, max(map(len, rows))), (8, name))),
            stored(begin + 2, 6002, tile),
            stored(begin + 3, 6005, message((1, 1), *entries)),
            stored(begin + 4, 6005, message((3, message((1, 1), (9, reference(begin + 5)))))),
            stored(begin + 5, 6218, message((1, reference(begin + 6)))),
            storage(begin + 6, rich, 5),
        ]
    )

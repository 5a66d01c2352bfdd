"""Writes compound files ([MS-CFB]): one sector of file allocation table, streams of 4,096 bytes and more."""

from __future__ import annotations

import struct

_SECTOR = 512
_FREE, _END, _TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_SMALLEST = 4096
"""Shorter streams stand elsewhere."""


def compound(streams: dict[str, bytes]) -> bytes:
    """A file with streams at paths such as `Pool/_1/CONTENTS`; they are filled up with zeros. At most 60 KB."""
    names = [""]
    for path in streams:
        parts = path.split("/")
        names += [folder for end in range(1, len(parts) + 1) if (folder := "/".join(parts[:end])) not in names]
    sectors: list[bytes] = []
    table: list[int] = [_TABLE]
    starts = {}
    for path, data in streams.items():
        whole = data.ljust(max(_SMALLEST, -len(data) % _SECTOR + len(data)), b"\0")
        starts[path] = (len(table), len(whole))
        count = len(whole) // _SECTOR
        table += [*range(len(table) + 1, len(table) + count), _END]
        sectors += [whole[at : at + _SECTOR] for at in range(0, len(whole), _SECTOR)]
    entries = b"".join(_entry(path, names, *starts.get(path, (0, 0)), is_stream=path in streams) for path in names)
    entries = entries.ljust(-len(entries) % _SECTOR + len(entries), b"\0")
    first = len(table)
    table += [*range(first + 1, first + len(entries) // _SECTOR), _END]
    assert len(table) <= _SECTOR // 4
    head = struct.pack(
        "<8s16xHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        62,
        3,
        0xFFFE,
        9,
        6,
        0,
        1,
        first,
        0,
        _SMALLEST,
        _END,
        0,
        _END,
        0,
    ) + struct.pack("<109I", 0, *[_FREE] * 108)
    allocation = struct.pack("<128I", *table, *[_FREE] * (128 - len(table)))
    return head + allocation + b"".join(sectors) + entries


def _entry(path: str, names: list[str], start: int, size: int, *, is_stream: bool) -> bytes:
    """Siblings are a chain to the right."""
    folder = path.rpartition("/")[0]
    beside = [one for one in names if one and one.rpartition("/")[0] == folder and path] if path else []
    after = beside[beside.index(path) + 1 :] if path else []
    inside = [one for one in names if one and one.rpartition("/")[0] == path]
    name = (path.rpartition("/")[2] or "Root Entry").encode("utf-16-le")
    kind = 2 if is_stream else 1 if path else 5
    right = names.index(after[0]) if after else _FREE
    child = names.index(inside[0]) if inside and not is_stream else _FREE
    return struct.pack(
        "<64sHBBIII16x4x16xIQ", name, len(name) + 2, kind, 1, _FREE, right, child, start if is_stream else _END, size
    )

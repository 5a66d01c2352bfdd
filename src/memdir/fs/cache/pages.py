"""Reading a SQLite file that SQLite does not open any more, page by page (sqlite.org/fileformat2.html).

Nothing is believed: every length, page number and serial type is checked against the page it stands on, and a cell that does
not add up is left out. Sections there: 1.3 header, 1.5 free pages, 1.6 trees, 2.1 records, 4.1 write-ahead log.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TABLE_LEAF: Final = 0x0D
TABLE_INTERIOR: Final = 0x05
INDEX_LEAF: Final = 0x0A
INDEX_INTERIOR: Final = 0x02
_HEADER_BYTES: Final = 100
_PAYLOAD_MAX_BYTES: Final = 1 << 24
"""No row of a cache is longer than a chunk with its key; anything beyond is no length but garbage."""
_WAL_HEADER: Final = struct.Struct(">8I")
_WAL_FRAME: Final = struct.Struct(">6I")
_WAL_MAGIC: Final = 0x377F0682
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)
_FLOAT: Final = 7

Value = int | float | bytes | str | None


class PageError(ValueError):
    """What stands on a page cannot be what SQLite wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One row. `rowid` is None on the pages of an index (and of a table without rowid)."""

    rowid: int | None
    values: tuple[Value, ...]
    shares: bool = False
    """Another row has the same overflow pages: the contents of one of them are not its own."""


class PageFile:
    """The pages of a database with its committed write-ahead log laid over them. Use as a context manager."""

    def __init__(self, path: Path, *, page_bytes: int) -> None:
        """`page_bytes` is believed when the file's header does not say anything sensible."""
        self._file = open(path, "rb")  # noqa: SIM115 - closed by close()
        size_bytes = path.stat().st_size
        self._data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if size_bytes else b""
        self._log = path.with_name(path.name + "-wal")
        self._overlay: dict[int, bytes] = {}
        self._claims: dict[int, tuple[int | None, int]] = {}
        """Overflow pages, and whose they are: rowid and length of the row."""
        self.page_bytes = page_bytes
        header = self._data[:_HEADER_BYTES]
        if header[:15] == b"SQLite format 3":
            said = int.from_bytes(header[16:18], "big")
            said = 65536 if said == 1 else said
            if said >= 512 and said & (said - 1) == 0:
                self.page_bytes = said
        self._overlay = self._committed()
        first = self.page(1)
        self._usable = self.page_bytes - (first[20] if first[:15] == b"SQLite format 3" else 0)
        self.page_count = max([size_bytes // self.page_bytes, *self._overlay], default=0)

    def close(self) -> None:
        if isinstance(self._data, mmap.mmap):
            self._data.close()
        self._file.close()

    def __enter__(self) -> PageFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def page(self, number: int) -> bytes:
        """One page; empty when the file ends before it."""
        found = self._overlay.get(number)
        if found is not None:
            return found
        start = (number - 1) * self.page_bytes
        page = bytes(self._data[start : start + self.page_bytes])
        return page if len(page) == self.page_bytes else b""

    def free_pages(self) -> set[int] | None:
        """The pages that hold nothing, although old rows may stand on them; None when that cannot be told."""
        header = self.page(1)[:_HEADER_BYTES]
        if header[:15] != b"SQLite format 3":
            return None
        trunk, count = struct.unpack_from(">II", header, 32)
        free: set[int] = set()
        while trunk and len(free) <= count:
            page = self.page(trunk)
            if not page or trunk in free:
                return None
            following, leaves = struct.unpack_from(">II", page)
            if leaves > (self._usable - 8) // 4:
                return None
            free.add(trunk)
            free.update(struct.unpack_from(f">{leaves}I", page, 8))
            trunk = following
        return free if len(free) == count else None

    def kind(self, number: int) -> int:
        """The type of a tree's page; 0 when it is none."""
        page = self.page(number)
        kind = page[_HEADER_BYTES if number == 1 else 0] if page else 0
        return kind if kind in (TABLE_LEAF, TABLE_INTERIOR, INDEX_LEAF, INDEX_INTERIOR) else 0

    def children(self, number: int) -> list[int]:
        """The pages below an interior page. PageError."""
        page, at = self._tree_page(number)
        found = [int.from_bytes(page[start : start + 4], "big") for start in self._starts(page, at, at + 12)]
        found.append(int.from_bytes(page[at + 8 : at + 12], "big"))
        if any(not 1 < child <= self.page_count for child in found):
            raise PageError(f"page {number} points outside of the file")
        return found

    def cells(self, number: int) -> Iterator[Cell | PageError]:
        """The rows on a page, each one or the reason why it cannot be read. PageError when the page itself makes no sense."""
        page, at = self._tree_page(number)
        kind = page[at]
        if kind == TABLE_INTERIOR:
            return
        for start in self._starts(page, at, at + (12 if kind == INDEX_INTERIOR else 8)):
            try:
                yield self._cell(page, start + (4 if kind == INDEX_INTERIOR else 0), with_rowid=kind == TABLE_LEAF)
            except (PageError, IndexError, UnicodeDecodeError) as error:
                yield PageError(f"page {number}: {error}")

    def _tree_page(self, number: int) -> tuple[bytes, int]:
        page, at = self.page(number), _HEADER_BYTES if number == 1 else 0
        if not page or not self.kind(number):
            raise PageError(f"page {number} is no page of a tree")
        return page, at

    def _starts(self, page: bytes, at: int, array: int) -> tuple[int, ...]:
        """Where the cells of a page begin."""
        count = int.from_bytes(page[at + 3 : at + 5], "big")
        if array + 2 * count > self._usable:
            raise PageError("it says to hold more cells than fit")
        starts = struct.unpack_from(f">{count}H", page, array)
        if any(not array + 2 * count <= start < self._usable for start in starts):
            raise PageError("a cell begins outside of it")
        return starts

    def _cell(self, page: bytes, at: int, *, with_rowid: bool) -> Cell:
        length, at = _varint(page, at)
        rowid = None
        if with_rowid:
            rowid, at = _varint(page, at)
            rowid -= (1 << 64) if rowid >= 1 << 63 else 0
        if length > _PAYLOAD_MAX_BYTES:
            raise PageError("a row of an impossible length")
        payload, shares = self._payload(page, at, length, rowid)
        return Cell(rowid=rowid, values=_record(payload), shares=shares)

    def _payload(self, page: bytes, at: int, length: int, rowid: int | None) -> tuple[bytes, bool]:
        """The row's bytes, and whether another row claims some of them."""
        usable = self._usable
        most = usable - 35 if rowid is not None else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return self._local(page, at, length), False
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        parts = [self._local(page, at, local)]
        following = int.from_bytes(self._local(page, at + local, 4), "big")
        left = length - local
        shares = False
        while left:
            more = self.page(following) if 1 < following <= self.page_count else b""
            if not more:
                raise PageError("its overflow pages are cut off")
            shares |= self._claims.setdefault(following, (rowid, length)) != (rowid, length)
            parts.append(more[4 : 4 + min(left, usable - 4)])
            left -= len(parts[-1])
            following = int.from_bytes(more[:4], "big")
        if following:
            raise PageError("its overflow pages do not end where the row does")
        return b"".join(parts), shares

    def _local(self, page: bytes, at: int, length: int) -> bytes:
        if at + length > self._usable:
            raise PageError("a row goes past the end of the page")
        return page[at : at + length]

    def _committed(self) -> dict[int, bytes]:
        """The newest version of each page in the log, up to the last commit whose checksums hold."""
        try:
            log = self._log.read_bytes()
        except FileNotFoundError:
            return {}
        if len(log) < _WAL_HEADER.size:
            return {}
        magic, _, size, _, salt1, salt2, sum1, sum2 = _WAL_HEADER.unpack_from(log)
        if magic & ~1 != _WAL_MAGIC or not 512 <= size <= 65536 or size & (size - 1):
            return {}
        order = ">" if magic & 1 else "<"
        state = _checksum(log[:24], (0, 0), order)
        if state != (sum1, sum2):
            return {}
        pending: dict[int, bytes] = {}
        done: dict[int, bytes] = {}
        for at in range(_WAL_HEADER.size, len(log) - _WAL_FRAME.size - size + 1, _WAL_FRAME.size + size):
            number, committed, frame1, frame2, *wanted = _WAL_FRAME.unpack_from(log, at)
            page = log[at + _WAL_FRAME.size : at + _WAL_FRAME.size + size]
            state = _checksum(page, _checksum(log[at : at + 8], state, order), order)
            if (frame1, frame2) != (salt1, salt2) or [*state] != wanted:
                break
            pending[number] = page
            if committed:
                done.update(pending)
                pending.clear()
                self.page_bytes = size
        return done


def _checksum(data: bytes, state: tuple[int, int], order: str) -> tuple[int, int]:
    first, second = state
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of 1 to 9 bytes, the highest bits first; the ninth has eight of them."""
    value = 0
    for position in range(8):
        byte = data[at + position]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + position + 1
    return value << 8 | data[at + 8], at + 9


def _record(payload: bytes) -> tuple[Value, ...]:
    header_bytes, at = _varint(payload, 0)
    if not at <= header_bytes <= len(payload):
        raise PageError("a row with an impossible header")
    kinds = []
    while at < header_bytes:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    body = header_bytes
    for kind in kinds:
        length = _length_of(kind)
        if body + length > len(payload):
            raise PageError("a row whose values go past its end")
        values.append(_value(kind, payload[body : body + length]))
        body += length
    if body != len(payload):
        raise PageError("a row that is longer than its values")
    return tuple(values)


def _length_of(kind: int) -> int:
    if kind >= 12:
        return (kind - 12) // 2
    if kind in (10, 11):
        raise PageError("a value of a reserved kind")
    return 8 if kind == _FLOAT else 0 if kind >= 8 else _INTEGER_BYTES[kind]


def _value(kind: int, data: bytes) -> Value:
    if kind == 0:
        return None
    if kind >= 12:
        return data if kind % 2 == 0 else data.decode("utf-8")
    if kind == _FLOAT:
        value: float = struct.unpack(">d", data)[0]
        return value
    return kind - 8 if kind >= 8 else int.from_bytes(data, "big", signed=True)

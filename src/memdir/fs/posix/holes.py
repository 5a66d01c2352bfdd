"""Where data is and where holes are in contents that are in chunks.

Inside of a chunk a page of zeros counts as a hole (POSIX allows it: a hole is what reads as zeros): a chunk is 128 KiB, and
programs that look for holes expect them to be found to the page.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Final

from memdir.fs.posix.state import CHUNK_BYTES, Chunk

_PAGE_BYTES: Final = 4096
_ZEROS: Final = bytes(_PAGE_BYTES)
_FINE_MAX_BYTES: Final = 64 * CHUNK_BYTES
"""In a larger file, which an older version wrote, a whole chunk is data: nobody waits while gigabytes are read for a seek."""


def seek(fetch: Callable[[int], Chunk | None], held: Set[int], size: int, offset: int, *, hole: bool) -> int | None:
    """The first place from `offset` on, which is below `size`, that is data, or with `hole` that is none: for a hole at the
    latest the end; None when no data follows. `held` are the indexes of the chunks there are, `fetch` gives one."""
    at = offset
    while at < size:
        index, start = divmod(at, CHUNK_BYTES)
        if index not in held:
            if hole:
                return at
            following = [other for other in held if other > index]
            if not following:
                return None
            at = min(following) * CHUNK_BYTES
        elif size > _FINE_MAX_BYTES:
            if not hole:
                return at
            at = (index + 1) * CHUNK_BYTES
        else:
            found = _seek_page(fetch(index) or b"", start, hole=hole)
            at = index * CHUNK_BYTES + found
            if found < CHUNK_BYTES:
                break
    if at >= size:
        return size if hole else None
    return at


def _seek_page(chunk: Chunk, start: int, *, hole: bool) -> int:
    """The same in one chunk, whose missing end is zeros; CHUNK_BYTES when it is not in there."""
    at = start
    while (page := at - at % _PAGE_BYTES) < len(chunk):
        piece = chunk[page : page + _PAGE_BYTES]
        if (piece == _ZEROS[: len(piece)]) is hole:
            return at
        at = page + _PAGE_BYTES
    return at if hole else CHUNK_BYTES

"""Where the contents of a regular file are: the values of `Inode.place`.

A positive number is the number of a blob, a plain file beside the tables (`fs.cache.blobs`).
"""

from __future__ import annotations

from typing import Final

IN_CHUNKS: Final = 0
"""In chunks, in the tables: every file begins here."""
ABSENT: Final = -1
"""On the server only: size, times and mode are known, no byte is on this machine."""

"""File handles: 16 random bytes of this memory on this machine, and the number of the inode.

They hold over restarts and renames, because inode numbers do. Nobody can guess one: the random bytes are in a file that only
its owner reads, and whoever has no handle gets none without the export's path, which is as random.
"""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from typing import Final

KEY_FILE: Final = "nfs-key"
_KEY_BYTES: Final = 16
_INO_BYTES: Final = 8
SIZE_BYTES: Final = _KEY_BYTES + _INO_BYTES


class Handles:
    """Made of the key in `folder`, which is made when it is missing; OSError when it cannot be."""

    def __init__(self, folder: Path) -> None:
        path = folder / KEY_FILE
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            key = b""
        if len(key) != 2 * _KEY_BYTES:
            key = secrets.token_bytes(2 * _KEY_BYTES)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(key)
        self._key = key[:_KEY_BYTES]
        self.export = f"/{key[_KEY_BYTES:].hex()}"
        """The path to mount: 128 random bits."""

    def of(self, ino: int) -> bytes:
        return self._key + ino.to_bytes(_INO_BYTES, "big")

    def ino(self, handle: bytes | memoryview) -> int | None:
        """None for what is no handle of this memory."""
        if len(handle) != SIZE_BYTES or not hmac.compare_digest(bytes(handle[:_KEY_BYTES]), self._key):
            return None
        return int.from_bytes(handle[_KEY_BYTES:], "big")

    def is_export(self, path: bytes | memoryview) -> bool:
        return hmac.compare_digest(bytes(path), self.export.encode())

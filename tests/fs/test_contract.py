"""MemoryFs and SqliteFs keep the contract."""

from __future__ import annotations

from .contract import VfsContract


class TestVfs(VfsContract):
    """Run once for each implementation (fixture `fs`)."""

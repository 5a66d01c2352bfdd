"""MemoryFs and SqliteFs keep the contract; a mount runs the same cases in `tests/fuse/test_contract.py`."""

from __future__ import annotations

import pytest

from .contract import NumberContract, VfsContract


@pytest.mark.promise("parts.contract", "exercise.one-contract")
class TestVfs(VfsContract, NumberContract):
    """Run once for each implementation (fixture `fs`)."""

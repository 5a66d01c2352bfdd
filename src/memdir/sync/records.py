"""The engine's records in a mount's folder, as a database."""

from __future__ import annotations

from pathlib import Path

from memdir.core.sqlite import Database
from memdir.sync.untracked_changes import SYNC_FILE


def open_records(folder: Path) -> Database:
    """`sync.db` as the engine uses it: what is read inside a transaction is what the transaction has made of it."""
    return Database(folder / SYNC_FILE, migrations="memdir.sync.schema", reads_own_writes=True)

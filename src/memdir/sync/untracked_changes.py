"""Changes that leave no intent: those of a mount without sync. Light to import.

What such a mount wrote, the filesystem names at its next opening with sync; what it deleted or renamed away has to be found by
comparing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memdir.core.sqlite import Database

SYNC_FILE: Final = "sync.db"
"""The engine's records in a mount's folder."""
UNSEEN_KEY: Final = "unseen_changes"
"""In `meta`: not empty when paths may have gone from the mount without an intent."""


def note_unseen_changes(folder: Path) -> None:
    """A mount without sync begins: the next one with sync has to look for what went (`intake.find_unseen`).

    Durable when it returns; does nothing for a mount that never synced.
    """
    file = folder / SYNC_FILE
    if not file.exists():
        return
    database = Database(file, migrations="memdir.sync.schema")
    try:
        with database.write(durable=True) as tx:
            tx.execute(
                "insert into meta (key, value) values (?, '1') on conflict (key) do update set value = excluded.value",
                (UNSEEN_KEY,),
            )
    finally:
        database.close()

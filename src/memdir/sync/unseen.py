"""Changes that leave no intent. Light to import: a mount without sync notes them before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from memdir.core.sqlite import Database

SYNC_FILE: Final = "sync.db"
"""The engine's records in a mount's folder."""
RESCAN_KEY: Final = "rescan"
"""In `meta`: not empty when everything has to be compared before the feed is read on."""


def note_unseen_changes(folder: Path) -> None:
    """A mount without sync begins: what it deletes or renames leaves no trace, so the next one with sync compares everything.

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
                (RESCAN_KEY,),
            )
    finally:
        database.close()

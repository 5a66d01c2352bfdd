"""The filesystem of a mount on disk: a redo journal, and SQLite behind it.

`SqliteFs` is the way in. `journal` and `record` make an answered operation durable; `overlay` keeps the hot rows in memory;
`flusher` brings batches into the tables of `tables`; `fsck` checks and repairs a folder that nobody has open.
"""

from memdir.fs.cache.filesystem import SqliteFs

__all__ = ["SqliteFs"]

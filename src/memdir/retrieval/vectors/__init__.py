"""Which passages are closest to a vector: exact while few are in scope, by codes and lists when they are many.

`port` says what a search asks. On PostgreSQL the chunk store answers it itself; on SQLite `index` does, with files that are
made from the store (`build`, `segment`) and what changed since in memory (`tail`).
"""

from memdir.retrieval.vectors.port import VectorIndex

__all__ = ["VectorIndex"]

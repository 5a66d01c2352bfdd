"""The POSIX rules, once: inodes, names, contents and intents over tables in memory.

`MemoryFs` is these tables alone; `SqliteFs` puts a redo journal before them and SQLite behind them. Every operation works
in three steps: check, stage (a `Txn` of new row values, nothing touched), commit (log the transaction, then apply it). The
log step is the only one that can fail for lack of space, so a refused operation changes nothing; replay after a crash runs
the same apply step.
"""

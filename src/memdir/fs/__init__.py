"""A filesystem in SQLite and the ways to reach it. `vfs` is the contract; `cache` and `memory` fulfil it; `fuse` serves it."""

"""Sync with a server that speaks Supermemory's `/v3` and `/v4` only: no revisions, no feed, no deletions told, and text that
may come back changed. `remote.PlainRemote` makes a `client.remote.Remote` of it, so that the engine need not know.

What such a server does not keep for us stands in `plain.db` beside `sync.db`: which document is shown at which path, and the
changes in an order of our own.
"""

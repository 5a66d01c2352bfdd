"""Bytes of documents, once for each SHA-256: in the database while they are small, else in a folder or a bucket.

Pieces come in through an upload (`blobs`); `backends` and `s3` are places for large ones; `blob_trash` is what has to go.
Start with `blobs`.
"""

"""Passages of documents as every engine keeps them: reading, following changes, vectors, links between them.

The engines' own parts (words, nearest vectors) are in `store.sqlite` and `store.postgres`. Start with `reading`.
"""

"""Finding passages by their words, with SQLite as the store.

In: the store's log of passages, and words with a scope. Out: ids of passages with BM25 scores. tantivy keeps the index and
ranks; here is what it does not know: following the store, scopes, moved documents, languages. Read `index.py` first.
"""

"""Words: which passages hold those of a query, by exact BM25."""

"""Finding passages by meaning: embeddings, lexical and vector candidates, fusion, exact lines; and byte-exact search."""

"""From bytes to passages: decoding and structure-aware chunking. Extractors for other formats join here."""

"""`memdir bench ingest`: how much of files that are no text is read, and how fast."""

"""Files that are no text, read in processes apart."""

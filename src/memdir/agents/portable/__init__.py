"""Memories in files: what `memdir memory export` writes, and what it and other systems' exports are read into."""

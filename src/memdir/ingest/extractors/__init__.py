"""Reads the text out of files that are none: one module for each kind, each on a library of its own, run in a process apart."""

from typing import Final

VERSION: Final = 7
"""Grows when any extractor reads more than before: what an older one read is read again when its document is indexed again."""

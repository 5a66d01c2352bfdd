"""The documentation of this machine's packages, which is about nobody: READMEs, changelogs, licences, whoever wrote them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

FOLDER: Final = Path("/usr/share/doc")
_SUFFIXES: Final = frozenset({"", ".gz", ".md", ".txt", ".Debian"})


def documents(*, max_bytes: int, most: int | None = None, every: int = 1) -> Iterator[tuple[Path, str]]:
    """Files and the first `max_bytes` of their texts, by name: of the first `most` names (default: all) each `every`-th, as
    far as they are texts. Nothing on a machine that keeps none."""
    for path in islice(sorted(FOLDER.glob("*/*")), 0, most, every):
        if path.suffix in _SUFFIXES and path.is_file():
            raw = path.read_bytes()
            yield path, (gzip.decompress(raw) if path.suffix == ".gz" else raw)[:max_bytes].decode("utf-8", "replace")

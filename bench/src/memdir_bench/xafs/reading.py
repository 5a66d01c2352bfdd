"""How quickly files of each format become text: one after the other, by what a server reads them with."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from memdir.ingest.extractors.formats import HEAD_BYTES, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox

_SAMPLE: Final = 12
"""Files of a format that are read."""


def by_format(files: Sequence[Path]) -> dict[str, dict[str, Any]]:
    """By ending: how many files there are, how many of a sample are read in a second and how many of it bring no text. A
    text that needs no reader has no rate."""
    formats: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(files):
        formats[file.suffix].append(file)
    sandbox = Sandbox()
    try:
        return {suffix: {"files": len(of), **_read(sandbox, of[:: -(-len(of) // _SAMPLE)])} for suffix, of in formats.items()}
    finally:
        sandbox.close()


def _read(sandbox: Sandbox, sample: Sequence[Path]) -> dict[str, Any]:
    took_s, read, without_text = 0.0, 0, 0
    for file in sample:
        data = file.read_bytes()
        family = family_of(data[:HEAD_BYTES], file.name)
        if family is None:
            without_text += not data.decode(errors="replace").strip()
            continue
        began_s = time.perf_counter()
        try:
            without_text += not sandbox.extract([data], family).text.strip()
        except ExtractionError:
            without_text += 1
        took_s += time.perf_counter() - began_s
        read += 1
    return {"sample": len(sample), "a_second": round(read / took_s, 1) if read else None, "without_text": without_text}

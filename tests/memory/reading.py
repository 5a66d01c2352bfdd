"""What the rules read in a text."""

from __future__ import annotations

from memdir.memory.extract import extract
from memdir.store.types import MemoryCandidate
from memdir_bench.memory.judging import bytes_before


def read(text: str, path: str = "/memory/diary.md") -> tuple[MemoryCandidate, ...]:
    return extract(text, path, byte_at=bytes_before(text))


def facts(text: str, path: str = "/memory/diary.md") -> list[str]:
    return [one.text for one in read(text, path)]

"""A document read as the server reads it."""

from __future__ import annotations

from memdir.ingest.extractors.formats import HEAD_BYTES, Format, family_of
from memdir.ingest.sandbox import Extraction, Sandbox


def family(data: bytes, name: str) -> Format:
    found = family_of(data[:HEAD_BYTES], name)
    assert found is not None, name
    return found


def read(sandbox: Sandbox, data: bytes, name: str) -> Extraction:
    return sandbox.extract([data], family(data, name))

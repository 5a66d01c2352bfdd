"""Rich Text Format by striprtf."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from striprtf.striprtf import rtf_to_text

from memdir.ingest.extractors.output import Output


def extract(path: Path, out: Output) -> None:
    """The text; tables come out with a bar between cells."""
    out.engine = f"striprtf {version('striprtf')}"
    text: str = rtf_to_text(path.read_bytes().decode("latin-1"), errors="ignore")  # type: ignore[no-untyped-call]
    out.paragraph(text)

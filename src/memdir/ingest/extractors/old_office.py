"""Word and PowerPoint files from before 2007: no library with a fitting licence reads them."""

from __future__ import annotations

from pathlib import Path

from memdir.ingest.extractors.output import ExtractionError, Output


def extract(_path: Path, _out: Output) -> None:
    """ExtractionError, always."""
    raise ExtractionError(
        "it is in the binary format of Word or PowerPoint from before 2007, or a damaged file of that kind",
        hint="save it as .docx, .pptx or .pdf beside it",
    )

"""Rich Text Format by striprtf."""

from __future__ import annotations

import codecs
import re
from importlib.metadata import version
from pathlib import Path
from typing import Final

from striprtf.striprtf import rtf_to_text

from memdir.ingest.extractors.output import Output

_HIDDEN: Final = re.compile(r"\{\\v\b[^{}\\]*\}")
"""Text that no reader sees: names of bookmarks and entries of an index."""
_MAC_ROMAN: Final = "cp10000"
"""As RTF calls it. Python has the code page under another name."""

codecs.register(lambda name: codecs.lookup("mac_roman") if name == _MAC_ROMAN else None)


def extract(path: Path, out: Output) -> None:
    """The text; tables come out with a bar between cells."""
    out.engine = f"striprtf {version('striprtf')}"
    shown = _HIDDEN.sub("", path.read_bytes().decode("latin-1"))
    text: str = rtf_to_text(shown, errors="ignore")  # type: ignore[no-untyped-call]
    out.paragraph(text)

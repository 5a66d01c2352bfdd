"""What the documents say, and how ZIP packages are made."""

from __future__ import annotations

import io
import zipfile

PHRASE = "The heron feeds at the northern weir every Tuesday"
ROWS = (("Item", "Amount", "Paid"), ("Walnut boards", "1284.5", "TRUE"), ("Brass hinges", "12", "FALSE"))
ODT = "application/vnd.oasis.opendocument.text"


def zipped(members: dict[str, bytes], *, first: str | None = None) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        if first is not None:
            archive.writestr(zipfile.ZipInfo("mimetype"), first)
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()

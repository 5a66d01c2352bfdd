"""The names in the messages between a server, its fork server and a child."""

from __future__ import annotations

from typing import Final

REQUEST_MAX_BYTES: Final = 64 << 10
LINE_MAX_BYTES: Final = 1 << 20
"""Of one answer of a child; the text itself is in a file."""
TEXT_FILE: Final = "text.md"
SOURCE_FILE: Final = "source"

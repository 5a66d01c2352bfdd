"""Making foreign text safe and short for a terminal: names and contents of files must not be able to steer it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

_BIDI_CONTROLS: Final = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""They reorder what a person sees (CVE-2021-42574, "Trojan Source")."""

ELLIPSIS: Final = "…"


def visible(text: str, *, keep_raw_bytes: bool = False) -> str:
    r"""`text` with every control character written out: ESC becomes `\x1b`, a newline `\n`, a bidi override `\u202e`.

    Bytes that are not UTF-8 (lone surrogates, as the operating system's names have them) become `\xNN`, unless
    `keep_raw_bytes` (output to a program, which gets the same bytes back).
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_character(character, keep_raw_bytes) for character in text)


def _visible_character(character: str, keep_raw_bytes: bool) -> str:
    code = ord(character)
    if code >= 0xDC80 and code <= 0xDCFF:
        return character if keep_raw_bytes else f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or 0x7F <= code <= 0x9F:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\x{code:02x}")
    if character in _BIDI_CONTROLS or character in "\u2028\u2029" or 0xD800 <= code <= 0xDFFF:
        return f"\\u{code:04x}"
    return character


def one_line(text: str) -> str:
    """`text` on one line: runs of whitespace become one space, control characters are written out."""
    return visible(" ".join(text.split()))


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters; an ellipsis shows that something was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)].rstrip() + ELLIPSIS


def human_bytes(size_bytes: int) -> str:
    """`1.5 MiB`; whole numbers below one KiB."""
    value = float(size_bytes)
    if value < 1024:
        return f"{size_bytes} B"
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def human_duration(duration_s: float) -> str:
    """`42 s`, `3 min 20 s`, `5 h 2 min`, `3 d 4 h`."""
    whole = max(int(duration_s), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    if whole < 86_400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86_400} d {whole % 86_400 // 3600} h"


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 file`, `2 files`, `3 entries`."""
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def held_back(name: str, answer: Mapping[str, object]) -> str:
    """What a daemon's answer says of files that are missing at the server, and both ways out of it."""
    count = answer.get("held_deletions")
    held = plural(count if isinstance(count, int) else 0, "file")
    where = "at the server, which was wiped or restored, or is another one," if answer.get("other_life") else "at the server"
    command = f"memdir sync {visible(name)}"
    return (
        f"{held} missing {where} stay here; `{command} --upload-again` puts them back there, "
        f"`{command} --confirm-deletions` deletes them here"
    )


def is_terminal(stream: object) -> bool:
    """Whether a person reads `stream`. False for a closed or replaced one."""
    try:
        return bool(stream.isatty())  # type: ignore[attr-defined]
    except (AttributeError, ValueError):
        return False


def stderr_is_terminal() -> bool:
    return is_terminal(sys.stderr)

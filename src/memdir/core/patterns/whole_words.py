"""Where a text stands by itself: "Ana", and not in "banana"."""

from __future__ import annotations

import re
from typing import Final

_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that set no spaces between words, and Korean, whose particles stand at them: there, anywhere."""


def whole(text: str) -> re.Pattern[str]:
    """Finds `text` where no letter or digit goes on before or behind it; white space in it stands for any."""
    before = "" if _UNSPACED.match(text[:1]) else r"(?<!\w)" if text[:1].isalnum() else ""
    behind = "" if _UNSPACED.match(text[-1:]) else r"(?!\w)" if text[-1:].isalnum() else ""
    return re.compile(before + r"\s+".join(map(re.escape, text.split())) + behind)

"""Texts that a line must hold as whole words: "Ana", and not in "banana"."""

from __future__ import annotations

import re
from typing import Final

from memdir.core.errors import UsageError
from memdir.core.limits import CONTAINING_MAX, CONTAINING_MAX_CHARS

_UNSPACED: Final = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts that set no spaces between words, and Korean, whose particles stand at them: there, anywhere."""


def whole_words(text: str) -> re.Pattern[str]:
    """Finds `text` where no letter or digit goes on before or behind it; white space in it stands for any, at its ends for
    none."""
    text = text.strip()
    before = "" if _UNSPACED.match(text[:1]) else r"(?<!\w)" if text[:1].isalnum() else ""
    behind = "" if _UNSPACED.match(text[-1:]) else r"(?!\w)" if text[-1:].isalnum() else ""
    return re.compile(before + r"\s+".join(map(re.escape, text.split())) + behind)


def check_texts(texts: object) -> list[str]:
    """The texts that a search was told its lines must contain; UsageError for what no search can look for."""
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise UsageError("what lines must contain is a list of texts")
    if len(texts) > CONTAINING_MAX:
        raise UsageError(f"{len(texts)} texts that lines must contain", hint=f"at most {CONTAINING_MAX} are allowed")
    for text in texts:
        if not any(map(str.isalnum, text)) or len(text) > CONTAINING_MAX_CHARS:
            hint = f"it needs a letter or a digit and at most {CONTAINING_MAX_CHARS} characters; --literal finds any text"
            raise UsageError(f"cannot look for lines that contain {text[:40]!r}", hint=hint)
    return texts

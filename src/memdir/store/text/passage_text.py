"""What of a chunk is embedded and indexed, in one place: the worker and every store must agree on it."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from memdir.core.secrets import masked
from memdir.store.types import Chunk

_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_CAMEL: Final = re.compile(r"[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*")
_HUMP: Final = re.compile(r"[a-z0-9][A-Z]")
_PART: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def storable(text: str) -> str:
    """`text` without U+0000, which PostgreSQL has no place for; the same in every engine. For text that is derived or said
    beside the bytes: the bytes themselves, and the passages cut from them, are kept as they are."""
    return text.replace("\0", "\ufffd")


def embedded_text(chunk: Chunk) -> str:
    """The text that a model sees: context, then passage, secrets masked (as long as they were)."""
    return _masked(_whole_text(chunk))


@lru_cache(maxsize=512)
def _masked(text: str) -> str:
    """Remembered, because a passage is looked at some five times on its way; at most some MB."""
    return masked(text)


def _whole_text(chunk: Chunk) -> str:
    return f"{chunk.context}\n{chunk.text}" if chunk.context else chunk.text


def text_hash(chunk: Chunk) -> bytes:
    """SHA-256 of `embedded_text`; equal hashes have equal vectors."""
    return _digest(embedded_text(chunk))


def plain_hash(text: str) -> bytes:
    """`text_hash` of a passage that has this text and no context."""
    return _digest(_masked(text))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def unspaced_runs(text: str) -> list[str]:
    """Runs of scripts written without spaces between words (Chinese, Japanese, Korean, Thai, Khmer …)."""
    return _UNSPACED.findall(text)


def bigrams(run: str) -> list[str]:
    """Overlapping pairs of characters; a single character stands for itself."""
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def name_parts(text: str) -> list[str]:
    """The words inside camelCase and PascalCase names."""
    if _HUMP.search(text) is None:
        return []
    return [part for name in _CAMEL.findall(text) for part in _PART.findall(name) if len(part) > 1]

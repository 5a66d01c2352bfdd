"""Whether a prompt needs a memory, told from embeddings: a logistic model over two numbers.

The cosine of the closest memory says little by itself: small talk is about equally far from everything, and some of it is
close to something. So it is also asked how close the prompt is to what people type that needs no memory
(`everyday_prompts.txt`: small talk, general knowledge, edits that say all they need).

The weights are fitted by `scripts/fit_prompt_classifier.py` on the projects of `memdir bench agents --part prompts` that say
`half: tuned`, and mean something for the cosines of one model only. None of the texts in the file is a prompt of that bench.
"""

from __future__ import annotations

import math
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import numpy as np

from memdir.store.types import Matrix

if TYPE_CHECKING:
    from memdir.retrieval.embed.port import Embedder

NEEDED_MIN: Final = 0.5
"""Probability. Nine of ten prompts that need nothing stay below, on projects left out of the fit."""
_MODEL: Final = "all-minilm-l6-v2-"
"""What the name of the model begins with that the weights are for."""
_WEIGHTS: Final = (16.40, -6.29)
_BIAS: Final = -4.07
_NEIGHBOURS: Final = 10
"""Everyday prompts that count: the closest."""
_UNREADABLE_MIN: Final = 0.5
"""As `Doubting.doubts` says."""
_EXCERPT_CHARS: Final = 400
_EXCERPTS_MAX: Final = 6
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n\s*")
_QUESTION: Final = re.compile(r"[^.!?\n]{8,300}\?")
_ERROR: Final = re.compile(
    r"\w(?:Error|Exception)\b|\b(?i:error|fatal|panic|failed|failure|exception)\b[\w\])]*:|\bE[A-Z]{4,}\b|"
    r"\bexit (?:code|status) [1-9]|\b(?i:connection refused|permission denied|command not found|timed out|no such file)\b"
)
"""As programs write it."""


class PromptClassifier:
    """Any thread may call."""

    def __init__(self, embedder: Embedder) -> None:
        """Embeds the everyday prompts, which takes about half a second."""
        text = files("memdir.retrieval.agents").joinpath("everyday_prompts.txt").read_text(encoding="utf-8")
        self.embedder = embedder
        self._everyday = embedder.embed_passages(text.splitlines())

    @staticmethod
    def fits(embedder: Embedder | None) -> bool:
        """Whether the weights are for this model."""
        return embedder is not None and embedder.name.startswith(_MODEL)

    def can_read(self, vector: Matrix) -> bool:
        """Whether the model could read the text that `vector` is of: the language, for one."""
        from memdir.retrieval.embed.port import Doubting

        return not isinstance(self.embedder, Doubting) or bool(self.embedder.doubts(vector[np.newaxis])[0] <= _UNREADABLE_MIN)

    def features(self, vector: Matrix, best: float) -> tuple[float, float]:
        """What the model weighs. `best`: the cosine of the closest memory."""
        return best, float(np.sort(self._everyday @ vector)[-_NEIGHBOURS:].mean())

    def probability(self, vector: Matrix, best: float) -> float:
        """That the memory with the cosine `best` is needed, 0 to 1."""
        weighed = sum(weight * value for weight, value in zip(_WEIGHTS, self.features(vector, best), strict=True))
        return 1.0 / (1.0 + math.exp(-(_BIAS + weighed)))


def excerpts(prompt: str) -> list[str]:
    """What of a prompt may be its question, at most _EXCERPTS_MAX: all of it; of a long one its first and last paragraph,
    questions, and lines that tell of an error, for the question may stand anywhere around what was pasted."""
    text = prompt.strip()
    if len(text) <= _EXCERPT_CHARS:
        return [text] if text else []
    errors = [line.strip()[:_EXCERPT_CHARS] for line in text.splitlines() if _ERROR.search(line)]
    questions = [one.strip() for one in _QUESTION.findall(text)]
    paragraphs = _PARAGRAPH.split(text)
    found = [paragraphs[0][:_EXCERPT_CHARS], paragraphs[-1][-_EXCERPT_CHARS:], *questions[:1], *questions[-1:]]
    return list(dict.fromkeys([*found, *errors[:1], *errors[-1:]]))[:_EXCERPTS_MAX]

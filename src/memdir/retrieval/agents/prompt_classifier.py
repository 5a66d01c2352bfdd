"""Whether a prompt needs a memory, told from meaning: a logistic model over two numbers.

How close the best memory is says little by itself: small talk is about equally far from everything, and some of it is close to
something. So it is also asked how close the prompt is to what people type that needs no memory (`everyday_prompts.txt`: small
talk, general knowledge, edits that say all they need).

The weights are fitted by `scripts/fit_prompt_need.py` on the projects of `memdir bench agents --part prompts` that say
`half: tuned`, and mean something for the cosines of one model only. None of the texts in the file is a prompt of that bench.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Final

import numpy as np

from memdir.store.types import Matrix

if TYPE_CHECKING:
    from memdir.retrieval.embed.port import Embedder

MODEL: Final = "all-minilm-l6-v2-"
"""What the name of the model begins with that the weights are for."""
NEEDED_MIN: Final = 0.5
"""Nine of ten prompts that need nothing stay below, on projects left out of the fit."""
NEAR_BEST: Final = 0.05
"""Cosine. Memories that are as close as the best one but for this may be the one that is meant."""
GIVEN_MAX: Final = 3
PART_CHARS: Final = 400
_PARTS_MAX: Final = 6
_LIKENED: Final = 10
"""Everyday prompts that a prompt is compared with: the closest."""
_WEIGHTS: Final = (16.40, -6.29)
_BIAS: Final = -4.07
_ASKING: Final = re.compile(r"[^.!?\n]{8,300}\?")
_DOUBTED: Final = 0.5
"""As `Doubting.doubts` says."""
_TROUBLE: Final = re.compile(r"error|exception|fail|fatal|panic|warning|denied|refused|cannot|could not", re.IGNORECASE)


class PromptNeed:
    """Any thread may call, after `load`."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._everyday: Matrix = np.zeros((0, embedder.dim), dtype=np.float32)

    def load(self) -> None:
        """Embed the texts; takes about half a second."""
        text = files("memdir.retrieval.agents").joinpath("everyday_prompts.txt").read_text(encoding="utf-8")
        self._everyday = self._embedder.embed_passages(text.splitlines())

    @staticmethod
    def fits(embedder: Embedder | None) -> bool:
        """Whether the weights are for this model."""
        return embedder is not None and embedder.name.startswith(MODEL)

    def features(self, vector: Matrix, best: float) -> tuple[float, float]:
        """What the model weighs. `best`: the cosine of the closest memory."""
        return best, float(np.sort(self._everyday @ vector)[-_LIKENED:].mean())

    def doubts(self, vector: Matrix) -> bool:
        """Whether the model could not read the text."""
        from memdir.retrieval.embed.port import Doubting

        return isinstance(self._embedder, Doubting) and bool(self._embedder.doubts(vector[np.newaxis])[0] > _DOUBTED)

    def probability(self, vector: Matrix, best: float) -> float:
        """That the memory with the cosine `best` is needed, 0 to 1."""
        told = zip(_WEIGHTS, self.features(vector, best), strict=True)
        return 1.0 / (1.0 + math.exp(-(_BIAS + sum(weight * value for weight, value in told))))


def parts_of(prompt: str) -> list[str]:
    """What of a prompt may be its question, at most _PARTS_MAX: all of it; of a long one its beginning, its end, sentences that
    ask, and lines that tell of trouble, for the question may stand anywhere around what was pasted."""
    text = prompt.strip()
    if len(text) <= PART_CHARS:
        return [text] if text else []
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    trouble = [line[:PART_CHARS] for line in lines if _TROUBLE.search(line)]
    ends = [_cut(text[: PART_CHARS + 1], last=False), _cut(text[-PART_CHARS - 1 :], last=True)]
    asking = [one.strip()[-PART_CHARS:] for one in _ASKING.findall(text)]
    return list(dict.fromkeys([*ends, *asking[:1], *asking[-1:], *trouble[:1], *trouble[-1:]]))[:_PARTS_MAX]


def _cut(text: str, *, last: bool) -> str:
    """Without the word that was cut through."""
    kept = text.partition(" ")[2] if last else text.rpartition(" ")[0]
    return (kept or text).strip()


def near_best(cosines: Sequence[float]) -> int:
    """How many of some cosines, best first, are given."""
    return sum(one >= cosines[0] - NEAR_BEST for one in cosines[:GIVEN_MAX])

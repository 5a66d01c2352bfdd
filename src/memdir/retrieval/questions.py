"""A question's vectors: made once, also when memories are searched beside passages."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from memdir.core.errors import BusyError
from memdir.retrieval.embed.port import Doubting, Embedder, ModelUnavailableError
from memdir.retrieval.fuse import Scales
from memdir.store.types import Matrix

log = logging.getLogger(__name__)

REMEMBERED: Final = 8
"""Questions whose vectors are kept: those under way, as each is searched for more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`dense` None without a transformer, and while the endpoint in its place fails. `scales`: what cosines with it mean."""

    static: Matrix
    dense: Matrix | None
    scales: Scales


class Questions:
    """Any thread may ask."""

    def __init__(self, static: Embedder, dense: Embedder | None) -> None:
        self._static = static
        self._dense = dense
        self._scales = Scales(static=static.scale, dense=(dense or static).scale)
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Question] = OrderedDict()

    def made(self, text: str) -> Question:
        """The vectors of `text`. What a failing endpoint left out is asked for again the next time."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                return known
        doubt = self._dense.doubt(text) if isinstance(self._dense, Doubting) else 0.0
        fresh = Question(
            static=self._static.embed_query(text), dense=self._dense_vector(text), scales=self._scales.doubted(doubt)
        )
        if self._dense is None or fresh.dense is not None:
            with self._lock:
                self._known[text] = fresh
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return fresh

    def _dense_vector(self, text: str) -> Matrix | None:
        if self._dense is None:
            return None
        try:
            return self._dense.embed_query(text)
        except (BusyError, ModelUnavailableError) as error:
            log.warning("searching with words and static vectors only: %s", error.message)
            return None

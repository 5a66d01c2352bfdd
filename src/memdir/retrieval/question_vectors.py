"""A question's vectors: made once, also when memories are searched beside passages."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from memdir.core.errors import BusyError
from memdir.retrieval.embed.port import Doubting, Embedder, ModelUnavailableError
from memdir.store.types import Matrix

log = logging.getLogger(__name__)

REMEMBERED: Final = 256
"""Questions whose vectors are kept, 3 KB each: each is searched for more than once, and people ask again."""
BESIDE_MAX: Final = 16
"""Questions that are made at a time beside the searches that wait for them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the transformer makes of a question."""

    dense: Matrix | None
    doubt: float
    """0 to 1: how little the transformer can read of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question that was asked. All but `static` waits for the transformer, which computes without the interpreter's lock:
    whoever asks looks for words meanwhile."""

    static: Matrix
    judged: Callable[[], Judged]

    @property
    def dense(self) -> Matrix | None:
        """None without a transformer, and while the endpoint in its place fails."""
        return self.judged().dense

    @property
    def doubt(self) -> float:
        """0 to 1: how little the transformer can read of it."""
        return self.judged().doubt


class Questions:
    """Any thread may ask."""

    def __init__(self, static: Embedder, dense: Embedder | None) -> None:
        self._static = static
        self._dense = dense
        self._doubting = dense if isinstance(dense, Doubting) else None
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Judged] = OrderedDict()
        self._beside = ThreadPoolExecutor(BESIDE_MAX, thread_name_prefix="memdir-question")

    def asked(self, text: str) -> Question:
        """Begins to make the vectors of `text`."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
        judged = self._beside.submit(self._judged, text).result if known is None else lambda: known
        return Question(static=self._static.embed_query(text), judged=judged)

    def _judged(self, text: str) -> Judged:
        """What a failing endpoint left out is asked for again the next time."""
        dense = self._dense_vector(text)
        doubt = 0.0 if dense is None or self._doubting is None else float(self._doubting.doubts(dense[None])[0])
        judged = Judged(dense=dense, doubt=doubt)
        if self._dense is None or dense is not None:
            with self._lock:
                self._known[text] = judged
                while len(self._known) > REMEMBERED:
                    self._known.popitem(last=False)
        return judged

    def _dense_vector(self, text: str) -> Matrix | None:
        if self._dense is None:
            return None
        try:
            return self._dense.embed_query(text)
        except (BusyError, ModelUnavailableError) as error:
            log.warning("searching with words and static vectors only: %s", error.message)
            return None

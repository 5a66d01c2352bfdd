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
from memdir.retrieval.fuse import Scales
from memdir.store.types import Matrix

log = logging.getLogger(__name__)

REMEMBERED: Final = 256
"""Questions whose vectors are kept, 3 KB each: each is searched for more than once, and people ask again."""
BESIDE_MAX: Final = 16
"""Questions that are made at a time beside the searches that wait for them."""


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
        self._beside = ThreadPoolExecutor(BESIDE_MAX, thread_name_prefix="memdir-question")

    def begun(self, text: str) -> Callable[[], Question]:
        """Returns at once what waits for the vectors of `text`: a transformer computes without the interpreter's lock, so that
        whoever asks can look for words meanwhile."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
        if known is not None:
            return lambda: known
        return self._beside.submit(self._made, text).result

    def _made(self, text: str) -> Question:
        """What a failing endpoint left out is asked for again the next time."""
        doubt = self._dense.doubt(text) if isinstance(self._dense, Doubting) else 0.0
        dense = self._dense_vector(text)
        fresh = Question(static=self._static.embed_query(text), dense=dense, scales=self._scales.doubted(doubt))
        if self._dense is None or dense is not None:
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

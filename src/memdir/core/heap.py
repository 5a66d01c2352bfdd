"""What the C library keeps of memory that Python has given back (glibc; elsewhere nothing is done), and what the garbage
collector need not look at.

With many threads glibc keeps a heap for every few of them, each as large as it once was: 100 MiB of a server that rests.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_M_ARENA_MAX: Final = -8
"""malloc.h"""
_ARENAS: Final = 2


def few_arenas() -> None:
    """Share two heaps between all threads of this process. Before the first one starts."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)


def give_back() -> None:
    """Return what is free to the system; some ms."""
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)


@contextmanager
def frozen_imports() -> Iterator[None]:
    """What is imported inside stays as long as the process, and the garbage collector looks at it neither meanwhile nor later
    (`gc.freeze`). A server has 100,000 such objects: a sixth of a second of its start, and 60 ms of every full collection, for
    which all its threads wait. Before the first one starts."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

"""Waking those who wait for a container to change, and the threads on which blocking calls run.

A watch is taken before the state is read, so that a change between the reading and the waiting is not missed. Watchers are
bounded by the server's limit on concurrent requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, ParamSpec, TypeVar

from memdir.store.contents.durability import promising
from memdir.store.store import EVERY_CONTAINER

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 16
"""Blocking calls at a time; further ones queue (bounded by the server's limit on concurrent requests). Each thread keeps a
read connection, so the pool has a fixed size and its threads stay."""
SWITCH_INTERVAL_S: Final = 0.001
"""A request thread gets the interpreter within a millisecond even while a document is being cut into passages."""
CROWDED: Final = 3
"""Calls under way from which on background work gives way: with more than there are processors, each waits for the others, and
what is indexed meanwhile comes in small batches that cost twice as much."""


class Watch:
    """One waiter."""

    def __init__(self) -> None:
        self.event = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """Until the next change, at most `timeout_s`. Returns whether there was one."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.event.wait()
        except TimeoutError:
            return False
        self.event.clear()
        return True


class Dispatcher:
    """Lives on the event loop of the server; `notify` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watches: dict[int, set[Watch]] = {}
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="memdir-call")
        self._calls = 0
        self.closing = False

    @property
    def crowded(self) -> bool:
        """Whether so many calls are under way that background work should give way. Any thread."""
        return self._calls >= CROWDED

    def attach(self) -> None:
        """Bind to the running loop."""
        self._loop = asyncio.get_running_loop()

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """A blocking call on a thread, done for the same organisation (`store.acting`)."""
        loop = asyncio.get_running_loop()
        context = promising()
        self._calls += 1
        try:
            return await loop.run_in_executor(self._executor, lambda: context.run(call, *args, **kwargs))
        finally:
            self._calls -= 1

    @contextmanager
    def watch(self, container_id: int) -> Iterator[Watch]:
        """Wait for changes of a container inside the block."""
        watch = Watch()
        watches = self._watches.setdefault(container_id, set())
        watches.add(watch)
        if self.closing:
            watch.event.set()
        try:
            yield watch
        finally:
            watches.discard(watch)
            if not watches:
                self._watches.pop(container_id, None)

    def notify(self, container_id: int) -> None:
        """Wake those who watch a container. Any thread. Whoever begins to watch after the look here reads a later state."""
        if container_id != EVERY_CONTAINER and container_id not in self._watches:
            return  # waking the loop for nobody costs more than most commits
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        try:
            loop.call_soon_threadsafe(self._wake, container_id)
        except RuntimeError:  # the loop closed meanwhile: nobody is left to wake
            return

    def _wake(self, container_id: int) -> None:
        if container_id == EVERY_CONTAINER:
            self._wake_all()
        for watch in self._watches.get(container_id, ()):
            watch.event.set()

    def _wake_all(self) -> None:
        for watches in self._watches.values():
            for watch in watches:
                watch.event.set()

    def close(self) -> None:
        """Let every waiter answer at once with what there is. On the loop's thread."""
        self.closing = True
        self._wake_all()

    def shutdown(self) -> None:
        """End the threads, after their calls."""
        self._executor.shutdown(wait=True)

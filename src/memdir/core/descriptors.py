"""Waiting for descriptors, whatever their numbers. A server with many clients has some above 1,023, where select(2) ends."""

from __future__ import annotations

import resource
import select


def raise_descriptor_limit() -> None:
    """As many descriptors in this process as the system lets it have, instead of the few that programs with select(2) bear."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def wait_readable(*descriptors: int, timeout_s: float | None = None) -> bool:
    """Whether one of these can be read, has ended or is broken before `timeout_s` seconds are over (None: wait for ever).

    As poll(2): also a pidfd of a process that has ended, a socket with an error.
    """
    waiting = select.poll()
    for one in descriptors:
        waiting.register(one, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else timeout_s * 1000))

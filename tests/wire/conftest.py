"""The servers of `tests/server`, for what is true of every route."""

from __future__ import annotations

from tests.server.conftest import client, server, tag

__all__ = ["client", "server", "tag"]

"""The servers of `tests/server`, for what is true of every route."""

from __future__ import annotations

from tests.server.conftest import _one_set_of_models, client, server, tag

__all__ = ["_one_set_of_models", "client", "server", "tag"]

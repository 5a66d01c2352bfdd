"""The memory backend: HTTP over the store, and the worker that makes documents searchable."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memdir.core.paths import AppPaths
    from memdir.server.lifecycle import ServerOptions


def run(options: ServerOptions, paths: AppPaths | None = None) -> None:
    """Run a server in this process until SIGTERM or SIGINT. Imports the heavy parts only now."""
    from memdir.server import lifecycle

    lifecycle.run(options, paths)

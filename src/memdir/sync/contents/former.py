"""What stood at a path of the server before: the versions it keeps."""

from __future__ import annotations

from typing import Final

from memdir.api import v1
from memdir.sync.context import Context

VERSIONS_MAX: Final = 100
"""Former contents of a path, newest first, among which some are looked for."""


def former_version(ctx: Context, path: str, content_hash: str) -> v1.VersionEntry | None:
    """The newest version with these contents of what stands, or stood last, at `path`; None when none is kept. NotFoundError
    and RejectedError from a server that tells no versions; ClientError."""
    page = ctx.link.call(lambda client: client.versions(ctx.container, path, limit=VERSIONS_MAX))
    return next((version for version in page.versions if version.content_hash == content_hash), None)

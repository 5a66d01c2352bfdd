"""Which place of large contents a URL names."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from memdir.core.errors import UsageError
from memdir.store.contents.backends import Contents, DiskContents

_HINT: Final = "--blobs takes s3://bucket/prefix, file:///folder, or nothing for the server's own folder"


def open_contents(url: str | None, folder: Path) -> Contents:
    """The store that `url` names; None or empty: `folder`. UsageError for a URL of another kind."""
    if not url:
        return DiskContents(folder)
    parts = urlsplit(url)
    if parts.scheme == "s3" and parts.netloc and not parts.query and not parts.fragment:
        from memdir.store.contents.s3 import S3Contents  # boto3 is an extra

        return S3Contents.connect(parts.netloc, unquote(parts.path).strip("/"))
    if parts.scheme == "file" and not parts.netloc and parts.path.startswith("/"):
        return DiskContents(Path(unquote(parts.path)))
    raise UsageError(f"contents cannot be kept at {url!r}", hint=_HINT)

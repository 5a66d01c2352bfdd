"""Versions as HTTP knows them: `ETag`, `If-Match`, `If-None-Match` (RFC 9110, 13.1) of documents and settings.

The ETag of a document is `"REVISION.UPDATED.STATUS.PROFILE"`: a reader who holds it has content, metadata, status and the
memories (PROFILE grows when any memory of the container changes). A writer is asked less: only revision and time must still
hold, because the pipeline moves the status behind everybody's back. A revision alone (`latestRevision` of an answer) does,
too. A weak mark (`W/`, which a compressed answer carries) makes no difference here: the tag names a version of the document
and not its bytes on the wire.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from memdir.store.errors import InvalidError
from memdir.store.tree.operations import Require
from memdir.store.types import Document

_TAG: Final = re.compile(r'(?:W/)?"(\d{1,18})(?:\.(\d{1,18})(?:\.[a-z]+(?:\.\d{1,18})?)?)?"')


def tag_of(document: Document, profile_version: int | None = None) -> str:
    """The ETag of a document; with its memories, when the container's profile version is given."""
    memories = "" if profile_version is None else f".{profile_version}"
    return f'"{document.revision}.{document.updated_at_ms}.{document.status}{memories}"'


def tag_of_settings(settings: Mapping[str, Any]) -> str:
    """The ETag of a container's settings."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False)
    return f'"{hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]}"'


def required(if_match: str | None, document_id: str) -> Require | None:
    """What an If-Match header asks of a document; None when any version will do. InvalidError for what is no tag of ours."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match.strip())
    if found is None:
        raise InvalidError("If-Match must be one ETag of this document", hint='for example If-Match: "7"')
    return Require(document_id=document_id, revision=int(found[1]), updated_at_ms=None if found[2] is None else int(found[2]))


def is_known(if_none_match: str | None, tag: str) -> bool:
    """Whether the reader has this version: 304."""
    if if_none_match is None:
        return False
    known = [item.strip().removeprefix("W/") for item in if_none_match.split(",")]
    return "*" in known or tag in known

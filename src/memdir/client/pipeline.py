"""What the server says of documents that it is working on, or could not read."""

from __future__ import annotations

from typing import Any, Final

from memdir.client.errors import ServerError
from memdir.client.remote import InPipeline

_FAILED: Final = "failed"


def in_pipeline(answer: dict[str, Any]) -> InPipeline:
    """The answer of `/v3/documents/processing`. ServerError for another shape."""
    documents, total = answer.get("documents"), answer.get("totalCount")
    left = answer.get("passagesLeft")
    if not isinstance(documents, list) or not isinstance(total, int):
        raise ServerError("the server's answer about processing documents has another shape than expected")
    found = [document for document in documents if isinstance(document, dict)]
    return InPipeline(
        pending=frozenset(str(document.get("id")) for document in found if document.get("status") != _FAILED),
        failed={
            str(document.get("id")): str(document.get("errorMessage") or document.get("error") or "")
            for document in found
            if document.get("status") == _FAILED
        },
        complete=total <= len(documents),
        total=total,
        passages_left=left if isinstance(left, int) else None,
        disk_full=answer.get("diskFull") is True,
    )

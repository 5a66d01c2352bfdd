"""Work on documents as a person looks at it: what waits, runs and was given up, and trying that again."""

from __future__ import annotations

from collections.abc import Sequence

from memdir.api import v1
from memdir.core.clock import iso_ms
from memdir.server.http.access import Caller
from memdir.store.jobs.dead_letters import QueuedJob
from memdir.store.jobs.queue import INTERACTIVE
from memdir.store.types import Container


def page(caller: Caller, tag: str | None, *, failed: bool, limit: int) -> v1.JobsPage:
    """Work in one container, or in all that the key may read whole."""
    found = caller.store.dead_letters.listing(_ids(caller, tag, "read"), failed=failed, limit=limit + 1)
    return v1.JobsPage(jobs=[_entry(job) for job in found[:limit]], has_more=len(found) > limit)


def retry(caller: Caller, request: v1.RetryRequest) -> v1.RetryResult:
    """Put back what was given up. NotFoundError for a document that the key does not see."""
    letters = caller.store.dead_letters
    if request.document_id is not None:
        container, document = caller.document(request.document_id, "write")
        ids: Sequence[int] = [container.id]
        if request.container_tag is not None and container.tag != request.container_tag:
            ids = []
        count = letters.retry(ids, document_id=document.id)
    else:
        ids = _ids(caller, request.container_tag, "write")
        count = letters.retry(ids)
    if count:
        for container_id in ids:
            caller.store.notify(container_id)
    return v1.RetryResult(requeued=count)


def _ids(caller: Caller, tag: str | None, action: str) -> list[int]:
    found: Sequence[Container | None] = [caller.found(tag, action)] if tag is not None else caller.readable()
    return [c.id for c in found if c is not None and caller.key.allows(action, c.tag) and caller.key.covers("/")]


def _entry(job: QueuedJob) -> v1.JobEntry:
    return v1.JobEntry.model_validate(
        {
            "document_id": job.document_id,
            "kind": job.kind,
            "container_tag": job.container_tag,
            "path": job.path,
            "state": job.state,
            "priority": "interactive" if job.priority == INTERACTIVE else "bulk",
            "attempts": job.attempts,
            "reason": job.reason,
            "at": iso_ms(job.at_ms),
        }
    )

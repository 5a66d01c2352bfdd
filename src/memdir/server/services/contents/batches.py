"""Several documents of one request: each for itself, and many with one commit, which is one wait for the disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from memdir.api import v3
from memdir.core.errors import MemdirError
from memdir.server.errors import text_of
from memdir.server.http.access import Caller
from memdir.server.services.contents.documents import Wanted, over, prepared, refetch_page, write
from memdir.store.errors import InvalidError
from memdir.store.jobs.queue import BULK
from memdir.store.types import Document

TOGETHER_MAX: Final = 16
"""Documents of one commit: others wait some 5 ms of processor time for it."""

Numbered = list[tuple[int, v3.AddDocument]]


def add_many(caller: Caller, request: v3.AddDocuments) -> v3.AddedBatch:
    """Several texts, each for itself."""
    items: Sequence[v3.AddDocument | str] = request.documents if request.documents is not None else request.contents or []
    if not items:
        raise InvalidError("documents or contents must hold at least one item")
    found: dict[int, v3.AddedItem] = {}
    waiting: Numbered = []
    for number, item in enumerate(items):
        single = _completed(item, request)
        if waiting and not _fits(single, waiting):
            found |= _together(caller, waiting)
            waiting = []
        waiting.append((number, single))
    found |= _together(caller, waiting)
    results = [found[number] for number in range(len(items))]
    failed = sum(item.status == "error" for item in results)
    return v3.AddedBatch(results=results, success=len(results) - failed, failed=failed)


def _completed(item: v3.AddDocument | str, request: v3.AddDocuments) -> v3.AddDocument:
    """An item with what the request says for all."""
    single = v3.AddDocument(content=item) if isinstance(item, str) else item
    missing = {name: getattr(request, name) for name in ("metadata", "task_type") if getattr(single, name) is None}
    if single.tag is None:
        missing |= {"container_tag": request.container_tag, "container_tags": request.container_tags}
    return single.model_copy(update=missing)


def _fits(single: v3.AddDocument, waiting: Numbered) -> bool:
    """Whether one more can be committed with those that wait: of one container, and none that would replace another of them
    by name, since what is replaced is looked up before."""
    named = single.custom_id is not None and any(single.custom_id == other.custom_id for _, other in waiting)
    return len(waiting) < TOGETHER_MAX and single.tag == waiting[0][1].tag and not named


def _together(caller: Caller, waiting: Numbered) -> Mapping[int, v3.AddedItem]:
    """What became of each, by number."""
    results: dict[int, v3.AddedItem] = {}
    ready: dict[int, Wanted] = {}
    with ExitStack() as uploads:
        for number, request in waiting:
            try:
                upload = uploads.enter_context(caller.store.blobs.upload())
                upload.write(request.content.encode())
                ready[number] = prepared(caller, request, upload.finish(), priority=BULK, number=number)
            except MemdirError as error:
                results[number] = _refused(error)
        if any(wanted.moves for wanted in ready.values()):
            results |= {number: _alone(caller, wanted) for number, wanted in ready.items()}
        elif ready:
            container = next(iter(ready.values())).container
            outcomes = caller.store.files.apply_all(container, [over(caller, wanted) for wanted in ready.values()])
            for number, outcome in zip(ready, outcomes, strict=True):
                if isinstance(outcome, MemdirError):
                    results[number] = _refused(outcome)
                else:
                    assert outcome.document is not None
                    results[number] = _taken(caller, outcome.document)
    return results


def _alone(caller: Caller, wanted: Wanted) -> v3.AddedItem:
    try:
        return _taken(caller, write(caller, wanted.container, wanted.existing, wanted.put))
    except MemdirError as error:
        return _refused(error)


def _taken(caller: Caller, document: Document) -> v3.AddedItem:
    return v3.AddedItem(id=document.id, status="done" if refetch_page(caller, document) == "done" else "queued")


def _refused(error: MemdirError) -> v3.AddedItem:
    return v3.AddedItem(id="", status="error", error=text_of(error))

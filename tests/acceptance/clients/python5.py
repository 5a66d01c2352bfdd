"""Runs in an interpreter of its own, with the published package `supermemory` 5.x and nothing of ours: one scenario a call.

`python5.py SCENARIO URL KEY NAMESPACE`; ends with exit code 0 when everything was as its types promise.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

from supermemory import AsyncSupermemory, Supermemory
from supermemory.core.api_error import ApiError
from supermemory.errors import BadRequestError, NotFoundError, UnauthorizedError
from waiting import until

ROPES = "# Ropes\n\nThe ropes were mended by Ida in the old harbour."
ANCHOR = "# Anchor\n\nThe anchor was painted red by Jon."


class Tour:
    """One client at work in one namespace."""

    def __init__(self, url: str, key: str, namespace: str) -> None:
        self.url, self.key, self.ns = url, key, namespace
        self.client = Supermemory(api_key=key, base_url=url)

    def done(self, name: str, **options: Any) -> Any:
        def ask() -> Any:
            document = self.client.documents.get(self.ns, name, **options)
            assert document.system.status != "failed", document
            finished = document.system.status == "done" and document.system.dreaming_status == "done"
            return document if finished else None

        return until(ask, f"{name} is done")

    def refused(self, error: type[ApiError], call: Callable[..., Any], *arguments: Any, **named: Any) -> ApiError:
        try:
            call(*arguments, **named)
        except ApiError as raised:
            found = raised
        else:
            raise AssertionError(f"{call} was not refused")
        assert isinstance(found, error), found
        return found

    def scenario_documents(self) -> None:
        client, docs = self.client, self.client.documents
        metadata = {"source": "log", "pages": 3, "draft": True, "topics": ["ship", "rope"]}
        added = client.add(self.ns, content=ROPES, id="ropes", metadata=metadata, group={"crew": "a"}, task_type="superrag")
        assert added.id == "ropes", added
        found = self.done("ropes", include=["chunks", "memories"])
        assert (found.id, found.title, found.type, found.content) == ("ropes", "Ropes", "text", ROPES)
        assert found.metadata == metadata | {"crew": "a"}, found
        assert found.summary == "The ropes were mended by Ida in the old harbour."
        assert found.memories == [], found
        assert [(chunk.position, "Ida" in chunk.content) for chunk in found.chunks] == [(0, True)], found
        assert found.system.created_at <= found.system.updated_at

        # The same id again appends, and what was there before stays as a version.
        client.add(self.ns, content="Then they held.", id="ropes", metadata={"pages": 4})
        found = self.done("ropes")
        assert found.content == ROPES + "\n\nThen they held.", found
        assert (found.metadata["pages"], found.metadata["source"]) == (4, "log"), found

        # An update replaces what is sent and leaves the rest.
        assert docs.update(self.ns, "ropes", content="Short.", date="2026-01-02").id == "ropes"
        found = self.done("ropes")
        assert (found.content, found.metadata["pages"], found.metadata["date"]) == ("Short.", 4, "2026-01-02"), found
        docs.update(self.ns, "ropes", metadata={"only": "this"})
        assert docs.get(self.ns, "ropes").metadata == {"only": "this"}

        nameless = client.add(self.ns, content="Without a name.")
        assert docs.get(self.ns, nameless.id).content == "Without a name."
        gone = docs.delete(self.ns, ids=["ropes", nameless.id, "never"])
        assert (gone.count, [error.id for error in gone.errors]) == (2, ["never"]), gone
        self.refused(NotFoundError, docs.get, self.ns, "ropes")

    def scenario_batch(self) -> None:
        inputs = [{"content": f"Number {number} of the list.", "id": f"d{number}"} for number in range(25)]
        result = self.client.documents.batch_add(self.ns, documents=inputs, task_type="superrag")
        assert (result.count, result.failed, [item.id for item in result.results]) == (25, 0, [f"d{n}" for n in range(25)])
        assert result.results[0].status == "queued", result
        for number in range(25):
            self.done(f"d{number}")
        counts = self.client.content_management.post_ns_by_namespace_list_documents_memory_counts(
            self.ns, ids=["d0", "d24", "never"]
        )
        assert [(count.id, count.memory_count) for count in counts.counts] == [("d0", 0), ("d24", 0)], counts

        seen: list[str] = []
        for page in (1, 2, 3):
            listed = self.client.list(self.ns, "documents", page=page, limit=10, sort="createdAt", order="asc")
            assert (listed.pagination.total_items, listed.pagination.total_pages, listed.pagination.current_page) == (
                25,
                3,
                page,
            )
            assert (listed.chunks, listed.memories) == ([], [])
            assert all(document.content is None for document in listed.documents)
            seen += [document.id for document in listed.documents]
        assert sorted(seen) == sorted(f"d{number}" for number in range(25)), seen
        first = self.client.list(self.ns, "documents", limit=1, include={"content": True, "memoryCount": True}).documents[0]
        assert first.content.startswith("Number "), first
        assert first.system.memory_count == 0, first

        chunks = self.client.list(self.ns, "chunks", limit=200, sort="position", order="asc")
        assert (chunks.pagination.total_items, len({chunk.document_id for chunk in chunks.chunks})) == (25, 25), chunks
        assert all(chunk.content.startswith("Number ") and chunk.position == 0 for chunk in chunks.chunks)
        assert len(self.client.list(self.ns, "chunks", page=3, limit=10).chunks) == 5

    def scenario_files(self) -> None:
        docs = self.client.documents
        added = docs.upload_file(self.ns, file=("ropes.md", ROPES.encode()), metadata='{"a": 1}', group='{"crew": "b"}')
        assert self.done(added.id).content == ROPES
        same = docs.update_file(self.ns, added.id, file=("anchor.md", ANCHOR.encode()))
        found = self.done(added.id)
        assert (same.id, found.content, found.metadata) == (added.id, ANCHOR, {"a": 1, "crew": "b"}), found
        docs.update_file(self.ns, added.id, metadata='{"b": 2}')
        found = self.done(added.id)
        assert (found.content, found.metadata) == (ANCHOR, {"b": 2}), found
        docs.replace_with_file(self.ns, added.id, file=("x.md", b"third"))
        found = self.done(added.id)
        assert (found.content, found.metadata) == ("third", {}), found
        self.refused(BadRequestError, docs.upload_file, self.ns, file=("x", b"x"), metadata="no JSON")
        self.refused(NotFoundError, docs.replace_with_file, self.ns, "never", file=("x", b"x"))

    def scenario_search(self) -> None:
        client = self.client
        client.add(self.ns, content=ROPES, id="ropes", metadata={"source": "log", "priority": 3, "topics": ["ship"]})
        client.add(self.ns, content=ANCHOR, id="anchor", metadata={"source": "Mail", "priority": 1, "done": True})
        client.add(self.ns, content="I prefer tea over coffee.", id="me", metadata={"source": "me"})
        for name in ("ropes", "anchor", "me"):
            self.done(name)
        best = client.search(self.ns, query="who mended the ropes", search_mode="chunks", limit=5)
        assert "Ida" in best.results[0].chunk, best
        assert best.results[0].memory is None
        assert 0 < best.results[0].similarity <= 1
        assert best.search_time >= 0
        facts = client.search(
            self.ns, query="tea or coffee", search_mode="memories", include={"documents": True, "related": True}
        )
        assert "tea" in facts.results[0].memory, facts
        assert (facts.results[0].is_latest, facts.results[0].is_inference) == (True, False)
        assert facts.results[0].included.document.metadata == {"source": "me"}, facts
        assert facts.results[0].included.related.parents == []
        both = client.search(self.ns, query="tea", limit=50, threshold=0.0)
        assert len(both.results) == 3, both  # a memory and the passage that says it are one result
        assert both.results[0].memory == "I prefer tea over coffee.", both
        assert len(client.search(self.ns, query="tea", limit=1).results) == 1

        filters: list[tuple[dict[str, Any], set[str]]] = [
            ({"field": "source", "operator": "eq", "value": "log"}, {"ropes"}),
            ({"field": "source", "operator": "neq", "value": "log"}, {"anchor", "me"}),
            ({"field": "source", "operator": "eq", "value": "mail", "caseSensitive": False}, {"anchor"}),
            ({"field": "source", "operator": "contains", "value": "ai"}, {"anchor"}),
            ({"field": "priority", "operator": "gte", "value": 3}, {"ropes"}),
            ({"field": "priority", "operator": "lt", "value": 3}, {"anchor"}),
            ({"field": "done", "operator": "eq", "value": True}, {"anchor"}),
            ({"field": "topics", "operator": "arrayContains", "value": "ship"}, {"ropes"}),
            ({"field": "topics", "operator": "arrayNotContains", "value": "ship"}, {"anchor", "me"}),
        ]
        either = {
            "operator": "or",
            "operands": [filters[0][0], {"operator": "and", "operands": [filters[3][0], filters[6][0]]}],
        }
        for expression, wanted in [*filters, (either, {"ropes", "anchor"})]:
            listed = client.list(self.ns, "documents", filter=expression)
            assert {document.id for document in listed.documents} == wanted, expression
            found = client.search(self.ns, query="ropes anchor tea", filter=expression, search_mode="chunks", threshold=0.0)
            assert len(found.results) == len(wanted), expression
            chunks = client.list(self.ns, "chunks", filter=expression).chunks
            assert {chunk.document_id for chunk in chunks} == wanted, expression
        assert client.search("a-namespace-that-is-not-there", query="tea").results == []

    def scenario_memories(self) -> None:
        client = self.client
        client.add(self.ns, content="I prefer tea over coffee.\n\nI live in Oslo.", id="me")
        self.done("me")
        listed = until(self.two, "two memories")
        tea = next(memory for memory in listed if "tea" in memory.memory)
        assert (tea.is_latest, tea.is_forgotten, tea.is_inference, tea.version) == (True, False, False, 1), tea
        details = client.memories.get(self.ns, tea.id, include=["related", "documents"], related_limit=5)
        assert (details.memory, details.included.document.id) == (tea.memory, "me"), details
        assert (details.included.related.parents, details.included.related.children) == ([], [])

        profile = client.profile(self.ns).profile
        known = {fact.id: fact.memory for fact in [*profile.static, *profile.dynamic]}
        assert known[tea.id] == tea.memory, profile
        assert client.profiles.get_buckets(self.ns).buckets == {}
        made = client.profiles.set_buckets(self.ns, buckets={"drinks": "tea, coffee and other drinks", "places": "cities"})
        assert made.buckets == {"drinks": "tea, coffee and other drinks", "places": "cities"}
        profile = client.profile(self.ns, buckets=["drinks"]).profile
        assert [fact.id for fact in profile.buckets["drinks"]] == [tea.id], profile
        assert client.profiles.delete_buckets(self.ns, buckets=["places", "never"]).buckets.keys() == {"drinks"}

        preview = client.memories.forget_matching(self.ns, query="I prefer tea over coffee", dry_run=True)
        assert [match.id for match in preview.matches] == [tea.id], preview
        assert client.memories.get(self.ns, tea.id).is_forgotten is False
        gone = client.memories.forget_matching(self.ns, query="I prefer tea over coffee", dry_run=False)
        assert (gone.count, [match.memory for match in gone.matches]) == (1, [tea.memory]), gone
        assert [memory.id for memory in client.list(self.ns, "memories").memories] == [m.id for m in listed if m.id != tea.id]
        assert tea.id in {memory.id for memory in client.list(self.ns, "memories", include={"forgotten": True}).memories}
        other = next(memory for memory in listed if memory.id != tea.id)
        exact = client.memories.forget(self.ns, ids=[other.id, "never"])
        assert (exact.count, [error.id for error in exact.errors]) == (1, ["never"]), exact
        assert client.list(self.ns, "memories").memories == []
        self.refused(NotFoundError, client.memories.get, self.ns, "never")

    def two(self) -> Any:
        listed = self.client.list(self.ns, "memories").memories
        return listed if len(listed) == 2 else None

    def scenario_namespaces(self) -> None:
        client = self.client
        for number in range(3):
            client.add(f"{self.ns}-{number}", content="x", id="one")
        pages = [client.namespaces.list(page=page, limit=2, q=self.ns.upper() + "-") for page in (1, 2)]
        assert [space.namespace for page in pages for space in page.namespaces] == [f"{self.ns}-{n}" for n in (2, 1, 0)], pages
        assert pages[0].pagination.total_items == 3
        assert pages[0].namespaces[0].document_count == 1
        first = f"{self.ns}-0"
        assert client.namespaces.get(first).supporting_context is None
        assert client.namespaces.update(first, supporting_context="Notes of a crew.").supporting_context == "Notes of a crew."
        assert client.namespaces.get(first).supporting_context == "Notes of a crew."
        assert client.organization.get().namespace_count >= 3
        # The same id means another document in each namespace.
        client.add(first, content="y", id="one")
        assert client.documents.get(f"{self.ns}-1", "one").content == "x"
        gone = client.namespaces.delete(first)
        assert (gone.status, gone.namespace, gone.deleted_documents_count) == ("deleted", first, 1), gone
        self.refused(NotFoundError, client.namespaces.get, first)
        self.refused(NotFoundError, client.namespaces.delete, first)

    def scenario_errors(self) -> None:
        client = self.client
        stranger = Supermemory(api_key="memdir_wrong", base_url=self.url)
        self.refused(UnauthorizedError, stranger.search, self.ns, query="x")
        self.refused(BadRequestError, client.search, self.ns, query="")
        self.refused(BadRequestError, client.search, self.ns, query="x", limit=100_000)
        wrong = self.refused(
            BadRequestError, client.list, self.ns, "documents", filter={"field": "a", "operator": "like", "value": "x"}
        )
        assert "unknown operator" in wrong.body["error"], wrong
        self.refused(BadRequestError, client.list, self.ns, "documents", sort="position")
        self.refused(BadRequestError, client.add, "a namespace", content="x")
        self.refused(BadRequestError, client.namespaces.delete, self.ns, move_to="other")
        self.refused(NotFoundError, client.documents.update, self.ns, "never", content="x")
        options = {"max_retries": 0}
        for call in (
            lambda: client.connectors.list_all(request_options=options),
            lambda: client.connectors.list(self.ns, request_options=options),
            lambda: client.connectors.get(self.ns, "c", request_options=options),
            lambda: client.connectors.sync(self.ns, "c", request_options=options),
            lambda: client.connectors.delete(self.ns, "c", request_options=options),
            lambda: client.organization.update(organizational_context="x", request_options=options),
        ):
            refusal = self.refused(ApiError, call)
            assert (refusal.status_code, len(refusal.body["error"]) > 20) == (501, True), refusal

    def scenario_together(self) -> None:
        async def several() -> None:
            client = AsyncSupermemory(api_key=self.key, base_url=self.url)
            await asyncio.gather(*(client.add(self.ns, content=f"Text {number}.", id=f"t{number}") for number in range(20)))
            await asyncio.gather(*(client.add(self.ns, content=f"part {number}", id="long") for number in range(8)))
            listed = await client.list(self.ns, "documents", limit=100)
            assert listed.pagination.total_items == 21, listed
            long = await client.documents.get(self.ns, "long")
            assert sorted(long.content.split("\n\n")) == [f"part {number}" for number in range(8)], long

        asyncio.run(several())


scenario, *place = sys.argv[1:]
getattr(Tour(*place), f"scenario_{scenario}")()

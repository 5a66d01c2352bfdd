"""Runs in an interpreter of its own, with the published package `supermemory` 3.x and nothing of ours: one scenario a call.

`python3.py SCENARIO URL KEY TAG`; ends with exit code 0 when everything was as its types promise.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import supermemory
from supermemory import AsyncSupermemory, Supermemory
from waiting import WAIT_S, until

DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63606060000000040001f61738550000"
    "000049454e44ae426082"
)
"""A picture of one black point."""


class Tour:
    """One client at work in one container."""

    def __init__(self, url: str, key: str, tag: str) -> None:
        self.url, self.key, self.tag = url, key, tag
        self.client = Supermemory(api_key=key, base_url=url)

    def done(self, name: str) -> Any:
        def ask() -> Any:
            document = self.client.documents.get(name)
            assert document.status != "failed", document
            return document if document.status == "done" and document.dreaming_status == "done" else None

        return until(ask, f"{name} is done")

    def scenario_documents(self) -> None:
        docs = self.client.documents
        added = self.client.add(
            content="# Ropes\n\nThe ropes were mended by Ida.",
            container_tag=self.tag,
            custom_id=f"ropes-{self.tag}",
            filepath="/work/ropes.md",
            metadata={"author": "ida", "pages": 3, "draft": True, "topics": ["ship", "rope"]},
            task_type="superrag",
        )
        assert added.status in ("queued", "extracting", "chunking", "embedding", "indexing", "done"), added
        found = self.done(f"ropes-{self.tag}")
        assert found.id == added.id == self.done(added.id).id
        assert found.content == "# Ropes\n\nThe ropes were mended by Ida."
        assert (found.custom_id, found.filepath, found.title) == (f"ropes-{self.tag}", "/work/ropes.md", "Ropes")
        assert (found.type, found.task_type, found.container_tags) == ("text", "superrag", [self.tag])
        assert found.summary == "The ropes were mended by Ida."
        assert found.metadata == {"author": "ida", "pages": 3, "draft": True, "topics": ["ship", "rope"]}
        assert found.latest_revision >= 1
        assert found.connection_id is None
        assert found.created_at.endswith("Z")
        assert docs.update(f"ropes-{self.tag}", metadata={"author": "eve"}).id == added.id
        assert docs.get(added.id).metadata == {"author": "eve"}
        docs.update(added.id, content="The ropes were cut by Eve.", filepath="/work/cut.md")
        after = self.done(added.id)
        assert (after.content, after.filepath) == ("The ropes were cut by Eve.", "/work/cut.md")
        again = docs.add(content="Replaced.", container_tags=[self.tag], custom_id=f"ropes-{self.tag}")
        assert again.id == added.id
        assert self.done(f"ropes-{self.tag}").content == "Replaced."
        link = docs.add(content="https://example.org/page?x=1", container_tag=self.tag)
        page = self.done(link.id)
        assert (page.url, page.type, page.content) == (
            "https://example.org/page?x=1",
            "webpage",
            "https://example.org/page?x=1",
        )
        assert docs.delete(f"ropes-{self.tag}") is None
        refused(supermemory.NotFoundError, lambda: docs.get(f"ropes-{self.tag}"))
        gone = docs.delete_bulk(ids=[link.id, "nothing-there"])
        assert (gone.success, gone.deleted_count) == (False, 1)
        assert gone.errors is not None
        assert gone.errors[0].id == "nothing-there"

    def scenario_uploads(self) -> None:
        docs = self.client.documents
        sent = docs.upload_file(
            file=("notes.md", b"# Anchor\n\nIt weighs 40 kg.\n"),
            container_tag=self.tag,
            custom_id=f"anchor-{self.tag}",
            filepath="/up/anchor.md",
            metadata=json.dumps({"kind": "upload", "n": 1}),
        )
        found = self.done(sent.id)
        assert found.content == "# Anchor\n\nIt weighs 40 kg.\n"
        assert (found.filepath, found.metadata) == ("/up/anchor.md", {"kind": "upload", "n": 1})
        many = docs.upload_file(file=b"plain bytes", container_tags=json.dumps([self.tag]))
        assert self.done(many.id).content == "plain bytes"
        png = docs.upload_file(file=("dot.png", DOT), container_tag=self.tag, mime_type="image/png")
        assert self.done(png.id).type == "image"
        refused(
            supermemory.BadRequestError,
            lambda: docs.upload_file(file=b"x", container_tag=self.tag, metadata="no json"),
        )

    def scenario_lists(self) -> None:
        docs = self.client.documents
        batch = docs.batch_add(
            documents=[
                {
                    "content": f"text {n}",
                    "filepath": f"/l/{n}.md",
                    "metadata": {"n": n, "half": n / 2, "parity": ["even", "odd"][n % 2]},
                }
                for n in range(7)
            ],
            container_tag=self.tag,
        )
        assert (batch.success, batch.failed, len(batch.results)) == (7, 0, 7)
        mixed = docs.batch_add(documents=[{"content": "x", "filepath": "relative"}], container_tag=self.tag)
        assert (mixed.failed, mixed.results[0].id, mixed.results[0].status) == (1, "", "error")
        seen: list[str] = []
        page, pages = 1, 1
        while page <= pages:
            listed = docs.list(container_tags=[self.tag], limit=3, page=page, order="asc", sort="createdAt")
            pages = int(listed.pagination.total_pages)
            assert (listed.pagination.current_page, listed.pagination.total_items) == (page, 7)
            seen += [str(entry.filepath) for entry in listed.memories]
            page += 1
        assert sorted(seen) == [f"/l/{n}.md" for n in range(7)]

        def paths(**filters: Any) -> list[str]:
            found = docs.list(container_tags=[self.tag], limit="50", filters=filters)  # type: ignore[arg-type]
            return sorted(str(entry.filepath)[3:-3] for entry in found.memories)

        number = {"key": "n", "filterType": "numeric"}
        assert paths(AND=[{**number, "value": "4", "numericOperator": ">="}]) == ["4", "5", "6"]
        assert paths(AND=[{"key": "parity", "value": "odd"}, {**number, "value": "5", "negate": True}]) == ["1", "3"]
        assert paths(OR=[{"key": "n", "value": "0"}, {"AND": [{"key": "half", "value": "3"}]}]) == ["0", "6"]
        assert paths(AND=[{"key": "parity", "value": "VE", "filterType": "string_contains", "ignoreCase": "true"}]) == list(
            "0246"
        )
        as_text = docs.list(container_tags=[self.tag], filters=json.dumps({"AND": [{"key": "n", "value": "2"}]}))  # type: ignore[arg-type]
        assert [entry.filepath for entry in as_text.memories] == ["/l/2.md"]
        content = docs.list(container_tags=[self.tag], include_content=True, filepath="/l/3.md").memories
        assert [entry.content for entry in content] == ["text 3"]
        until(lambda: docs.list_processing(container_tags=self.tag).total_count == 0, "all is processed")
        shown = docs.list_processing(container_tags=self.tag, view="all", limit=10, page=1)
        assert shown.pagination is not None
        gone = docs.delete_bulk(container_tags=[self.tag], filepath="/l/")
        assert (gone.success, gone.deleted_count, gone.container_tags) == (True, 7, [self.tag])

    def scenario_search(self) -> None:
        texts = {
            "/sea/knots.md": "# Knots\n\nA bowline makes a loop that does not slip.\n\n"
            "# Splices\n\nAn eye splice is stronger than any knot.\n",
            "/land/bread.md": "# Bread\n\nSourdough rises overnight in a warm kitchen.\n",
        }
        for path, text in texts.items():
            self.client.add(
                content=text,
                container_tag=self.tag,
                filepath=path,
                custom_id=path.split("/")[2][:-3] + self.tag,
                metadata={"path": path},
            )
        for name in ("knots", "bread"):
            self.done(name + self.tag)
        found = self.client.search.documents(
            q="how to make a loop in a rope", container_tags=[self.tag], include_full_docs=True
        )
        best = found.results[0]
        assert (best.title, best.content) == ("Knots", texts["/sea/knots.md"])
        assert best.chunks[0].is_relevant
        assert best.chunks[0].position >= 0
        assert found.total >= 1
        assert self.client.search.execute(q="bread dough", container_tag=self.tag, include_summary=True).results[0].summary
        one = self.client.search.documents(q="splice", container_tag=self.tag, doc_id="bread" + self.tag)
        assert all(result.document_id != best.document_id for result in one.results)
        wide = self.client.search.documents(q="bowline loop", container_tag=self.tag, only_matching_chunks=False)
        assert any(chunk.is_relevant for chunk in wide.results[0].chunks)
        nowhere = self.client.search.documents(
            q="bowline loop", container_tag=self.tag, filters={"AND": [{"key": "path", "value": "/land/bread.md"}]}
        )
        assert all(result.title != "Knots" for result in nowhere.results)
        passages = self.client.search.memories(
            q="loop that does not slip",
            container_tag=self.tag,
            search_mode="documents",
            include={"documents": True, "summaries": True},
        )
        assert passages.results[0].chunk
        assert passages.results[0].filepath == "/sea/knots.md"
        assert passages.results[0].documents
        assert passages.results[0].documents[0].summary
        below = self.client.search.memories(q="loop", container_tag=self.tag, search_mode="documents", filepath="/land/")
        assert all(result.filepath == "/land/bread.md" for result in below.results)

    def scenario_memories(self) -> None:
        client = self.client
        talk = client.add(
            content="user: I live in Bergen. I prefer tea over coffee.\nassistant: You are a pirate.",
            container_tag=self.tag,
            metadata={"channel": "chat"},
        )
        document = self.done(talk.id)
        assert document.memories is not None
        texts = {memory.memory for memory in document.memories}
        assert texts == {"I live in Bergen.", "I prefer tea over coffee."}
        static = client.profile(container_tag=self.tag).profile.static
        assert static is not None
        assert set(static) == texts
        found = client.search.memories(
            q="which drink do they like",
            container_tag=self.tag,
            threshold=0.1,
            include={"documents": True, "related_memories": True},
            filters={"AND": [{"key": "channel", "value": "chat"}]},
        )
        tea = next(result for result in found.results if result.memory == "I prefer tea over coffee.")
        assert tea.documents is not None
        assert tea.documents[0].id == talk.id
        assert tea.metadata == {"channel": "chat"}
        made: Any = client.post(
            "/v4/memories",
            cast_to=object,
            body={
                "containerTag": self.tag,
                "memories": [
                    {"content": "Ida sails a red boat.", "isStatic": True, "metadata": {"source": "form"}},
                    {"content": "Ida is tired today."},
                    {"content": "Ida waits for parts.", "forgetAfter": "2001-01-01T00:00:00Z"},
                ],
            },
        )
        assert made["documentId"] is None
        boat, tired, waits = made["memories"]
        assert (boat["isStatic"], tired["isStatic"], waits["forgetAfter"]) == (True, False, "2001-01-01T00:00:00.000Z")
        changed = client.memories.update_memory(container_tag=self.tag, id=boat["id"], new_content="Ida sails a blue boat.")
        assert (changed.version, changed.parent_memory_id, changed.root_memory_id) == (2, boat["id"], boat["id"])
        assert changed.metadata == {"source": "form"}
        blue = client.search.memories(q="Ida sails boat", container_tag=self.tag, include={"related_memories": True}).results[0]
        assert (blue.memory, blue.version) == ("Ida sails a blue boat.", 2)
        assert blue.context is not None
        assert blue.context.parents is not None
        assert [(p.memory, p.relation, p.version) for p in blue.context.parents] == [("Ida sails a red boat.", "updates", -1)]
        gone = client.memories.forget(container_tag=self.tag, content="Ida sails a blue boat.", reason="sold")
        assert gone.forgotten
        after = client.profile(container_tag=self.tag, q="Ida sails boat")
        assert after.profile.static is not None
        assert "boat" not in json.dumps(after.to_dict())
        assert after.profile.dynamic == ["Ida is tired today."]
        plain = client.search.memories(q="Ida sails boat", container_tag=self.tag)
        assert all("boat" not in str(result.memory) for result in plain.results)
        forgotten = client.search.memories(q="Ida sails boat", container_tag=self.tag, include={"forgotten_memories": True})
        assert "Ida sails a blue boat." in [result.memory for result in forgotten.results]
        client.memories.forget(container_tag=self.tag, content="I live in Bergen.")
        assert "I live in Bergen." not in (client.profile(container_tag=self.tag).profile.static or [])
        refused(supermemory.NotFoundError, lambda: client.memories.forget(container_tag=self.tag, id="nothing"))
        only = client.profile(container_tag=self.tag, include=["dynamic"]).profile
        assert (only.static, only.dynamic) == (None, ["Ida is tired today."])

    def scenario_errors(self) -> None:
        client = self.client
        stranger = Supermemory(api_key="md_wrong", base_url=self.url)
        refused(supermemory.AuthenticationError, stranger.documents.list)
        refused(supermemory.NotFoundError, lambda: client.documents.get("nothing-there"))
        refused(supermemory.NotFoundError, lambda: client.documents.delete("nothing-there"))
        refused(supermemory.BadRequestError, lambda: client.add(content="x", container_tag="no spaces allowed"))
        refused(supermemory.BadRequestError, lambda: client.search.memories(q="", container_tag=self.tag))
        refused(supermemory.BadRequestError, lambda: client.documents.list(filters={"key": 1}))  # type: ignore[typeddict-item]
        client.add(content="x", container_tag=self.tag, filepath="/f/a")
        refused(supermemory.ConflictError, lambda: client.add(content="x", container_tag=self.tag, filepath="/f/a/b"))
        headers = {"Idempotency-Key": f"once-{self.tag}"}
        first = client.add(content="once", container_tag=self.tag, extra_headers=headers)
        assert client.add(content="once", container_tag=self.tag, extra_headers=headers).id == first.id
        refused(
            supermemory.UnprocessableEntityError,
            lambda: client.add(content="twice", container_tag=self.tag, extra_headers=headers),
        )
        began = time.monotonic()
        error = refused(supermemory.InternalServerError, client.settings.get)
        assert error.status_code == 501
        assert "container-tags" in error.body["error"]
        assert client.connections.list() == []
        refused(
            supermemory.InternalServerError, lambda: client.connections.create("notion", redirect_url="https://example.org")
        )
        assert time.monotonic() - began < WAIT_S

    def scenario_together(self) -> None:
        async def run() -> None:
            async with AsyncSupermemory(api_key=self.key, base_url=self.url) as client:
                added = await asyncio.gather(
                    *(client.add(content=f"Line {n}.", container_tag=self.tag, custom_id=f"{self.tag}-{n}") for n in range(32))
                )
                assert len({item.id for item in added}) == 32
                got = await asyncio.gather(*(client.documents.get(f"{self.tag}-{n}") for n in range(32)))
                assert [document.content for document in got] == [f"Line {n}." for n in range(32)]
                listed = await client.documents.list(container_tags=[self.tag], limit=100)
                assert listed.pagination.total_items == 32

        asyncio.run(run())

    def scenario_oldest(self) -> None:
        """What 3.1.0 can do, by the names it used."""
        client = self.client
        added = client.memories.add(
            content="The keel is made of oak.", container_tag=self.tag, custom_id=f"keel-{self.tag}", metadata={"n": 1}
        )
        found = until(lambda: (d := client.memories.get(f"keel-{self.tag}")).status == "done" and d, "keel is done")
        assert (found.id, found.content) == (added.id, "The keel is made of oak.")
        assert client.memories.update(f"keel-{self.tag}", metadata={"n": 2}).id == added.id
        listed = client.memories.list(container_tags=[self.tag], filters={"AND": [{"key": "n", "value": "2"}]})
        assert [entry.id for entry in listed.memories] == [added.id]
        sent = client.memories.upload_file(file=("a.txt", b"The mast is made of pine."), container_tags=json.dumps([self.tag]))
        until(lambda: client.documents.get(sent.id).status == "done", "the mast is done")
        assert client.search.documents(q="what wood is the mast", container_tags=[self.tag]).results[0].document_id == sent.id
        assert client.search.memories(q="keel", container_tag=self.tag).results is not None
        client.memories.delete(f"keel-{self.tag}")
        refused(supermemory.NotFoundError, lambda: client.memories.get(f"keel-{self.tag}"))


def refused(kind: type[Any], call: Callable[[], Any]) -> Any:
    """The exception that the package raises, which must be of this class and carry our sentence."""
    raised = None
    try:
        call()
    except kind as error:
        raised = error
    assert raised is not None, f"no {kind.__name__}"
    assert raised.body["error"], raised
    return raised


if __name__ == "__main__":
    name, url, key, tag = sys.argv[1:]
    getattr(Tour(url, key, tag), f"scenario_{name}")()

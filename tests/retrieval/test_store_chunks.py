"""The contract of passages, their words and their vectors, over every store."""

from __future__ import annotations

import numpy as np
import pytest

from memdir.ingest.chunker import chunk
from memdir.ingest.text import decode
from memdir.retrieval.embed import StaticEmbedder
from memdir.retrieval.words import prepare
from memdir.store.text.passage_text import embedded_text, text_hash
from memdir.store.types import Chosen, Scope
from tests.retrieval.conftest import World

PARAGRAPHS = [
    f"## Part {n}\n\n" + f"Paragraph number {n} talks about topic {'abcdefghij'[n]} at some length. " * 6 for n in range(8)
]
MODEL = "dense-test"


def whole(container_id: int = 1) -> Scope:
    return Scope(container_id=container_id)


def found(world: World, text: str, scope: Scope | None = None) -> set[str]:
    """Paths that hold any of the words."""
    hits = world.words.search(scope or whole(), prepare(text).phrases, 100)
    return {stored.path or "" for stored in world.chunks.chunks([chunk_id for chunk_id, _ in hits]).values()}


def embedded(world: World, model: str, scope: Scope | None = None, *, dim: int = 256) -> set[str]:
    """Paths of the passages in scope that have a vector of `model`."""
    near = world.chunks.nearest(scope or whole(), np.zeros(dim, dtype=np.float32), model=model, limit=1000)
    assert near.counted == len(near.ids)
    return {stored.path or "" for stored in world.chunks.chunks(near.ids.tolist()).values()}


def test_a_chunk_comes_back_as_it_was_put(world: World, static: StaticEmbedder) -> None:
    data = "# Café\n\nGrüße — 東京\n"
    document = world.put("/a.md", data, static)
    text = decode(data.encode())
    assert text is not None
    stored = world.chunks.document_chunks(document.id)
    assert [item.chunk for item in stored] == list(chunk(text, "/a.md"))
    assert stored[0].path == "/a.md"
    assert stored[0].revision == 1


@pytest.mark.parametrize(
    "query",
    ["resume", "RÉSUMÉ", "running", "東京", "京都", "本", "parse", "file", "ภาษา", "서울"],
)
def test_words_are_found_across_accents_stems_and_scripts(world: World, static: StaticEmbedder, query: str) -> None:
    world.put("/a.txt", "Mon résumé; he runs daily. 東京都と京都で本を買う parseConfigFile ภาษาไทย 서울에서", static)
    world.put("/b.txt", "nothing of the kind", static)
    assert found(world, query) == {"/a.txt"}


def test_scope_is_a_subtree_and_not_a_prefix_of_letters(world: World, static: StaticEmbedder) -> None:
    for path in ("/a/x.md", "/a/b/y.md", "/ab/z.md", "/a.md", "/a-b/w.md", "/a%/v.md", "/a_/u.md", "/A/t.md"):
        world.put(path, "walnut", static)
    world.put("/a/x.md", "walnut", static, container_id=2)
    for folder in ("/a", "/a/"):
        assert found(world, "walnut", Scope(container_id=1, folder=folder)) == {"/a/x.md", "/a/b/y.md"}
    assert found(world, "walnut", Scope(container_id=1, folder="/a%")) == {"/a%/v.md"}
    assert found(world, "walnut", Scope(container_id=1, folder="/a/x.md", exact=True)) == {"/a/x.md"}
    assert found(world, "walnut", Scope(container_id=1, folder="/a", exact=True)) == set()
    assert embedded(world, static.name, Scope(container_id=1, folder="/a")) == {"/a/x.md", "/a/b/y.md"}
    assert embedded(world, static.name, Scope(container_id=1, folder="/a.md", exact=True)) == {"/a.md"}
    assert embedded(world, static.name, Scope(container_id=1, folder="/none")) == set()


def test_only_chosen_documents_are_found(world: World, static: StaticEmbedder) -> None:
    for number in range(40):
        world.put(f"/a/{number}-walnut.md", "walnut walnut walnut", static)
    world.put("/b/one-walnut.md", "a text with many other words and one walnut", static)
    world.put("/a/two-walnut.md", "a text with two words", static)
    some = frozenset({"d1/b/one-walnut.md", "d1/a/two-walnut.md", "d2/a/two-walnut.md", "gone"})
    others = frozenset(f"d1/a/{number}-walnut.md" for number in range(40))
    for chosen in (Chosen(ids=some), Chosen(ids=others, but=True)):
        scope = Scope(container_id=1, chosen=chosen)
        assert found(world, "walnut", scope) == {"/b/one-walnut.md"}
        assert embedded(world, static.name, scope) == {"/b/one-walnut.md", "/a/two-walnut.md"}
        named = world.chunks.named(scope, {"walnut"}, model=static.name, limit=2)
        assert {stored.path for stored in world.chunks.chunks([chunk_id for chunk_id, _ in named]).values()} == {
            "/b/one-walnut.md",
            "/a/two-walnut.md",
        }
        below = Scope(container_id=1, folder="/a", chosen=chosen)
        assert found(world, "walnut", below) == set()
        assert embedded(world, static.name, below) == {"/a/two-walnut.md"}
    nothing = Scope(container_id=1, chosen=Chosen(ids=frozenset()))
    assert found(world, "walnut", nothing) == embedded(world, static.name, nothing) == set()


def test_the_scope_is_applied_before_the_cut(world: World, static: StaticEmbedder) -> None:
    for number in range(40):
        world.put(f"/many/{number}.md", "walnut walnut walnut", static)
    world.put("/few/one.md", "a text with many other words and one walnut", static)
    hits = world.words.search(Scope(container_id=1, folder="/few"), ["walnut"], 1)
    assert len(hits) == 1


def test_an_edit_keeps_the_ids_and_vectors_of_what_did_not_change(world: World, static: StaticEmbedder) -> None:
    document = world.put("/a.md", "\n\n".join(["# Report", *PARAGRAPHS]), static)
    before = world.chunks.document_chunks(document.id)
    ids = [item.id for item in before]
    assert len(ids) >= 8
    vectors = np.eye(len(ids), 16, dtype=np.float32)
    assert world.chunks.add_vectors(ids, model=MODEL, vectors=vectors, lines=[b"l"] * len(ids)) == len(ids)
    changed = ["# Report\n\nA new line above all others.", *PARAGRAPHS]
    changed[5] = "## Part 4\n\nSomething else entirely stands here now, long enough to be on its own. " * 3
    world.put("/a.md", "\n\n".join(changed), static)
    after = world.chunks.document_chunks(document.id)
    kept = {item.id for item in after} & set(ids)
    assert len(kept) >= 5
    missing = {item.id for item in world.chunks.missing_vectors(model=MODEL, limit=100)}
    assert missing == {item.id for item in after} - kept
    text = "\n\n".join(changed).encode()
    for item in after:
        assert text[item.chunk.start_byte : item.chunk.end_byte].decode() == item.chunk.text
        assert item.revision == 2
    assert found(world, "topic e") == {"/a.md"}


def test_the_same_text_in_another_document_takes_over_its_vectors(world: World, static: StaticEmbedder) -> None:
    first = world.put("/a.md", PARAGRAPHS[0], static)
    stored = world.chunks.document_chunks(first.id)
    vector = np.full((len(stored), 8), 0.25, dtype=np.float32)
    world.chunks.add_vectors([item.id for item in stored], model=MODEL, vectors=vector, lines=[b"lines"] * len(stored))
    second = world.put("/b.md", PARAGRAPHS[0], static)
    assert list(world.chunks.missing_vectors(model=MODEL, limit=10)) == []
    copies = [item.id for item in world.chunks.document_chunks(second.id)]
    assert world.chunks.line_vectors(copies, model=MODEL) == dict.fromkeys(copies, b"lines")
    digest = text_hash(stored[0].chunk)
    known = world.chunks.vectors_by_text([digest, b"x" * 32], model=MODEL)
    assert np.frombuffer(known[digest], dtype=np.float32).tolist() == [0.25] * 8
    assert list(known) == [digest]
    assert world.chunks.vectors_by_text([digest], model="unknown") == {}


def test_chunks_of_an_older_revision_are_not_put_over_newer_ones(world: World, static: StaticEmbedder) -> None:
    old = world.put("/a.md", "old words", static)
    world.put("/a.md", "new words", static)
    text = decode(b"old words")
    assert text is not None
    chunks = chunk(text, "/a.md")
    vectors = static.embed_passages([embedded_text(item) for item in chunks])
    assert world.chunks.replace_chunks(old, chunks, model=static.name, vectors=vectors) == ()
    assert found(world, "new") == {"/a.md"}
    assert found(world, "old") == set()


def test_vectors_that_come_late_for_deleted_chunks_are_passed_over(world: World, static: StaticEmbedder) -> None:
    document = world.put("/a.md", "some words", static)
    (stored,) = world.chunks.document_chunks(document.id)
    world.delete("/a.md")
    world.put("/b.md", "other words", static)
    assert world.chunks.add_vectors([stored.id], model=MODEL, vectors=np.ones((1, 4), dtype=np.float32)) == 0
    assert embedded(world, MODEL, dim=4) == set()


def test_a_move_changes_the_scope_and_embeds_nothing(world: World, static: StaticEmbedder) -> None:
    world.put("/old/a.md", "walnut", static)
    world.put("/old/b.md", "walnut", static)
    assert embedded(world, static.name) == {"/old/a.md", "/old/b.md"}
    world.move("/old/a.md", "/new/a.md")
    assert found(world, "walnut", Scope(container_id=1, folder="/new")) == {"/new/a.md"}
    assert embedded(world, static.name) == {"/new/a.md", "/old/b.md"}


def test_a_delete_leaves_nothing_behind(world: World, static: StaticEmbedder) -> None:
    world.put("/a.md", "the zanzibar codeword", static)
    world.put("/b.md", "an innocent line", static)
    assert embedded(world, static.name) == {"/a.md", "/b.md"}
    world.delete("/a.md")
    assert found(world, "zanzibar") == set()
    assert embedded(world, static.name) == {"/b.md"}
    for table in ("chunk", "chunk_vector"):
        row = world.db.one(f"select count(*) from {table}")
        assert row == (1,)


def test_containers_do_not_see_each_other(world: World, static: StaticEmbedder) -> None:
    world.put("/a.md", "walnut", static)
    world.put("/a.md", "walnut", static, container_id=2)
    assert len(world.words.search(whole(1), ["walnut"], 10)) == 1
    query = static.embed_query("walnut")
    near = {number: world.chunks.nearest(whole(number), query, model=static.name, limit=10) for number in (1, 2)}
    mine, other = (set(near[number].ids.tolist()) for number in (1, 2))
    assert (len(mine), len(other)) == (1, 1)
    assert mine != other
    assert np.isnan(world.chunks.cosines(1, list(other), query, model=static.name)).all()
    named = [world.chunks.named(whole(number), ["a"], model=static.name, limit=9) for number in (1, 2)]
    assert named == [[], []], "a word of one letter is no name"


def test_a_document_that_changes_its_container_takes_its_passages_along(world: World, static: StaticEmbedder) -> None:
    document = world.put("/walnut.md", "walnut and almond", static)
    world.put("/walnut.md", "hazel", static, container_id=2)
    world.sql("delete from document where container_id = 2")
    query = static.embed_query("walnut")

    def held(container_id: int) -> tuple[set[str], int, int]:
        scope = whole(container_id)
        near = world.chunks.nearest(scope, query, model=static.name, limit=9)
        named = world.chunks.named(scope, ["walnut"], model=static.name, limit=9)
        return found(world, "almonds", scope), len(near.ids), len(named)

    assert (held(1), held(2)) == (({"/walnut.md"}, 1, 1), (set(), 0, 0))
    world.sql("update document set container_id = 2 where id = ?", document.id)
    assert (held(1), held(2)) == ((set(), 0, 0), ({"/walnut.md"}, 1, 1))


def test_wrong_shapes_are_refused(world: World, static: StaticEmbedder) -> None:
    document = world.document("/a.md", b"x")
    with pytest.raises(ValueError, match="0 chunks but 2 vectors"):
        world.chunks.replace_chunks(document, [], model=static.name, vectors=np.zeros((2, 4), dtype=np.float32))
    with pytest.raises(ValueError, match="1 chunks but 0 vectors"):
        world.chunks.add_vectors([1], model=MODEL, vectors=np.zeros((0, 4), dtype=np.float32))

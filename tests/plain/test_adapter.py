"""What a plain server is told and what is made of what it tells: renames, foreign documents, contents, search."""

from __future__ import annotations

import pytest

from memdir.api import v1
from memdir.client.errors import RejectedError
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.plain.marks import Face, Marks, marks_of
from memdir.sync.plain.searching import find
from memdir.sync.plain.touched import Touched
from tests.plain.conftest import PlainMount, settled
from tests.plain.double import PlainServer

pytestmark = pytest.mark.promise("sync.plain")


def test_a_rename_that_breaks_off_in_the_middle_is_finished_later(
    mount: PlainMount, other: PlainMount, server: PlainServer
) -> None:
    mount.mkdir("/d")
    for number in range(6):
        mount.write(f"/d/{number}", b"%d" % number)
    settled(mount, other)
    server.requests.clear()
    server.fault("PATCH", "/v3/documents/", status=503, times=0)
    mount.mv("/d", "/e")
    patches = 0

    def third(method: str, _path: str) -> None:
        nonlocal patches
        patches += method == "PATCH"
        if patches == 3:
            server.fault("PATCH", "/v3/documents/", status=None)
        else:
            server.between = third

    server.between = third
    settled(mount, other)
    assert patches == 3, "it was broken off in the middle"
    assert sorted(other.files()) == [f"/e/{number}" for number in range(6)]
    assert sorted(other.files().values()) == [b"%d" % number for number in range(6)]
    server.settle()
    assert server.paths() == [f"/e/{number}" for number in range(6)]


def test_a_folder_is_renamed_document_by_document_and_nothing_is_uploaded_again(
    mount: PlainMount, other: PlainMount, server: PlainServer
) -> None:
    mount.mkdir("/d")
    for number in range(6):
        mount.write(f"/d/{number}", b"%d" % number)
    settled(mount, other)
    ids = {one.id for one in server.documents.values()}
    server.requests.clear()
    mount.mv("/d", "/e")
    mount.write("/e/3", b"edited")
    settled(mount, other)
    assert other.files() == {f"/e/{number}": b"edited" if number == 3 else b"%d" % number for number in range(6)}
    assert {one.id for one in server.documents.values()} == ids
    assert not any(request.startswith("POST /v3/documents") and not request.endswith("/list") for request in server.requests)


def test_documents_of_others_are_shown_when_they_have_a_place(mount: PlainMount, server: PlainServer) -> None:
    server.put("/note.md", "written by an API client")
    server.put_file("/picture.png", b"\x89PNG\xff")
    server.put("relative/path", "has no place")
    server.put("/a/../b", "has none either")
    nowhere = server.put("/x", "without a path")
    server.documents[nowhere].filepath = None
    settled(mount)
    assert mount.files() == {"/note.md": b"written by an API client", "/picture.png": b"\x89PNG\xff"}
    mount.write("/note.md", b"changed here\n")
    settled(mount)
    [note] = server.at("/note.md")
    assert note.content == "changed here"


def test_a_change_by_an_api_client_is_seen_although_our_metadata_stay(
    mount: PlainMount, other: PlainMount, server: PlainServer
) -> None:
    mount.write("/a.md", b"ours\n")
    settled(mount, other)
    server.put("/a.md", "theirs")
    settled(mount, other)
    assert mount.read("/a.md") == other.read("/a.md") == b"theirs"


def test_metadata_of_others_survive_our_changes(mount: PlainMount, server: PlainServer) -> None:
    server.put("/a.md", "text", metadata={"topic": "tea", "memdir_hash": "not a hash"})
    settled(mount)
    mount.write("/a.md", b"more\n")
    settled(mount)
    [kept] = server.at("/a.md")
    assert kept.metadata["topic"] == "tea"
    assert all(isinstance(value, (str, int, float, bool)) for value in kept.metadata.values())


def test_bytes_that_the_server_does_not_give_back_stay_where_they_are_and_say_why(
    mount: PlainMount, other: PlainMount, server: PlainServer
) -> None:
    server.gives_originals = False
    mount.write("/a.bin", b"\xff\xfe")
    settled(mount)
    other.clock.advance(5)
    other.sync()
    [row] = other.engine.parked_rows(5)
    assert "no original" in row.error
    assert mount.read("/a.bin") == b"\xff\xfe"
    assert server.paths() == ["/a.bin"]
    server.gives_originals = True
    other.engine.retry(None)
    settled(mount, other)


def test_contents_leave_the_cache_only_when_the_server_gives_them_back(tmp_path, server: PlainServer) -> None:  # type: ignore[no-untyped-def]
    one = PlainMount(tmp_path / "lazy", server.client, keeping=KeepingPolicy(cache_bytes=0, prefetch_bytes=0))
    server.gives_originals = False
    one.write("/a.bin", b"\xff" * 100)
    one.write("/b.md", b"text\n")
    one.sync()
    while one.engine.keeper.work_once():
        one.clock.advance(3)
    facts = {path: one.fs.fact(path) for path in ("/a.bin", "/b.md")}
    assert facts["/a.bin"] is not None
    assert facts["/a.bin"].absent_hash is None
    assert facts["/b.md"] is not None
    assert facts["/b.md"].absent_hash is not None
    assert one.read("/b.md") == b"text\n"
    one.close()


def test_names_come_first_and_contents_when_they_are_read(tmp_path, mount: PlainMount, server: PlainServer) -> None:  # type: ignore[no-untyped-def]
    for number in range(5):
        mount.write(f"/{number}.md", b"text %d\n" % number)
    mount.sync()
    lazy = PlainMount(tmp_path / "lazy", server.client, keeping=KeepingPolicy(prefetch_bytes=0))
    server.requests.clear()
    lazy.sync()
    assert lazy.fs.absent_totals().files == 5
    assert sum(request.startswith("GET /v3/documents/") for request in server.requests) <= 2, "no contents were asked for"
    assert lazy.read("/3.md") == b"text 3\n"
    server.put("/4.md", "edited by others, our metadata stayed")
    assert lazy.read("/3.md") == b"text 3\n"
    settled(lazy, mount)
    assert lazy.read("/4.md") == b"edited by others, our metadata stayed"
    lazy.close()


def test_search_answers_with_lines_of_the_file_here(mount: PlainMount, server: PlainServer) -> None:
    mount.write("/trip.md", b"# Trip\n\nWe take the\nnight train to Vienna.\n")
    mount.write("/sub.md", b"other\n")
    settled(mount)
    [trip], [sub] = server.at("/trip.md"), server.at("/sub.md")
    server.hits = [
        {"id": "c1", "chunk": "We take the night train to Vienna.", "similarity": 0.9, "filepath": "/trip.md"},
        {"id": "m1", "memory": "The user likes trains", "similarity": 0.7, "documents": [{"id": trip.id}]},
        {"id": "m2", "memory": "from a document without a place", "similarity": 0.6},
        {"id": "c2", "chunk": "gone", "similarity": 0.5, "filepath": "/gone.md"},
    ]
    request = v1.SearchRequest(container_tag="c", q="train", limit=5)
    answer = mount.engine.link.call(lambda client: client.search(request))
    first, second = answer.results
    assert (first.path, first.start_line, first.end_line, first.kind) == ("/trip.md", 3, 4, "chunk")
    assert first.text == "We take the\nnight train to Vienna."
    assert (second.path, second.kind, second.text) == ("/trip.md", "memory", "The user likes trains")
    assert answer.pending == []
    assert sub.status == "done"
    profile = mount.engine.link.call(lambda client: client.profile("c"))
    assert profile.static == ("likes tea",)
    assert mount.engine.link.call(lambda client: client.processing_count("c")) == 0


@pytest.mark.parametrize(
    ("passage", "lines"),
    [("two\nthree", (2, 3)), ("  three ", (3, 3)), ("heading\n\nfour is here and long", (4, 4)), ("nowhere", None)],
)
def test_a_passage_is_found_whatever_became_of_its_white_space(passage: str, lines: tuple[int, int] | None) -> None:
    found = find(passage, b"one\ntwo\nthree\nfour is here and long\n")
    assert (None if found is None else (found.start_line, found.end_line)) == lines


@pytest.mark.parametrize(
    "content", [b"a\r\nb\r\n", b"  \n a \n", "ä\u2028b\n".encode(), b"x" * 100, b" " * 300 + b"a", b"", b"\n", b"\xff"]
)
def test_marks_give_back_what_a_server_made_of_a_text(content: bytes) -> None:
    import hashlib

    face = Face(
        kind="file", content_hash=hashlib.sha256(content).hexdigest(), size_bytes=len(content), mode=0o644, mtime_ns=1 << 62
    )
    marks, text = marks_of(face, content, key="k")
    again = Marks.read(marks.write({"beside": 1}))
    assert again == marks
    if marks.how != "upload":
        assert marks.restored(text.strip().replace("\r\n", "\n")) == content
        assert not marks.is_edited(text.strip())
        assert marks.is_edited(text + " more")


def test_what_was_asked_before_our_own_change_ended_is_not_believed() -> None:
    touched = Touched()
    before = touched.now()
    with touched.changing(["a"]):
        during = touched.now()
        assert touched.is_stale("a", during)
        assert not touched.is_quiet_since(before)
    assert touched.is_stale("a", before)
    assert touched.is_stale("a", during)
    assert not touched.is_stale("b", before)
    assert not touched.is_stale("a", touched.now())


def test_a_listing_that_was_under_way_while_we_wrote_does_not_bring_the_old_contents_back(
    mount: PlainMount, server: PlainServer
) -> None:
    server.slow = 0
    mount.write("/a", b"old")
    mount.sync()
    remote, asked_at = mount.remote(), mount.records.touched.now()
    page = remote._reader._documents.page(1, sort="updatedAt", order="desc")
    mount.write("/a", b"new")
    mount.sync()
    for document in page.documents:
        remote._reader.observer.take(document, asked_at)
    known = mount.records.at("/a")
    assert known is not None
    assert known.face is not None
    assert known.face.size_bytes == 3
    settled(mount)
    assert mount.read("/a") == b"new"


def test_an_address_alone_is_never_sent_as_text(mount: PlainMount, server: PlainServer) -> None:
    mount.write("/link.url", b"https://example.com/private?token=1\n")
    settled(mount)
    assert "POST /v3/documents/file" in server.requests
    [kept] = server.at("/link.url")
    assert kept.raw == b"https://example.com/private?token=1\n"


def test_an_original_on_another_host_is_asked_for_without_the_key_and_never_in_our_own_network(server: PlainServer) -> None:
    from memdir.sync.plain.wire import Documents, read

    documents = Documents(server.client(), "c")
    made = server.put_file("/a.bin", b"\xff")
    server.gives_originals = False
    wire = server._wire(server.documents[made], whole=True)
    for url in (
        "http://127.0.0.1/x",
        "https://10.0.0.1/x",
        "https://localhost/x",
        "https://db.internal/x",
        "file:///etc/passwd",
    ):
        with pytest.raises(RejectedError), documents.original(read(wire | {"url": url})):
            pass

"""A container as a plain archive: there and back, with the programs that people have, and against people who mean harm."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import stat
import struct
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.server.archive import reading
from memdir.server.archive.members import Format
from memdir.server.archive.reading import survey
from memdir.server.errors import TooLargeError
from memdir.store.errors import InvalidError
from memdir.store.store import Store
from memdir.store.tree.exports import HOLD_MS
from memdir.store.tree.operations import Delete
from memdir.store.types import Container
from tests.server.conftest import AnyStore, Putting

FORMATS: tuple[Format, ...] = ("tar", "tar.gz", "zip")
Tree = list[dict[str, Any]]


def put(client: httpx.Client, tag: str, path: str, content: bytes = b"", **params: Any) -> None:
    params = {"containerTag": tag, **params}
    answer = client.put(f"/v1/files{quote(path)}", params=params, content=content)
    assert answer.status_code < 300, answer.text


def exported(client: httpx.Client, tag: str, form: str = "tar", **params: str) -> bytes:
    answer = client.get("/v1/export", params={"containerTag": tag, "format": form, **params})
    assert answer.status_code == 200, answer.text
    return answer.content


def imported(client: httpx.Client, tag: str, archive: bytes, **params: str) -> httpx.Response:
    return client.post("/v1/import", params={"containerTag": tag, **params}, content=archive)


def taken(client: httpx.Client, tag: str, archive: bytes, **params: str) -> dict[str, Any]:
    answer = imported(client, tag, archive, **params)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return {name: result[name] for name in ("created", "replaced", "unchanged", "skipped", "failedCount")}


def counts(**given: int) -> dict[str, int]:
    return {"created": 0, "replaced": 0, "unchanged": 0, "skipped": 0, "failedCount": 0} | given


def tree(client: httpx.Client, tag: str, *, dates: bool = True) -> Tree:
    """Everything that stands in a container, with its bytes."""
    found: Tree = []
    after = ""
    while True:
        page = client.get("/v1/files", params={"containerTag": tag, "after": after, "limit": 500}).json()
        for entry in page["entries"]:
            content = b""
            if entry["kind"] != "dir":
                content = client.get(f"/v1/files{quote(entry['path'])}", params={"containerTag": tag}).content
            kept = ("path", "kind", "contentHash", "mode") + (("mtimeNs",) if dates else ())
            found.append({name: entry[name] for name in kept} | {"content": content})
        after = page["nextAfter"]
        if after is None:
            return found


def strange_tree(client: httpx.Client, tag: str, seed: int) -> None:
    """Names, sizes, modes, times and kinds of all sorts."""
    chance = random.Random(seed)
    names = [
        "a.md",
        "ü ß.txt",
        " leading",
        "日本.md",
        "-x",
        "a\\b",
        "new\nline",
        "'q\"",
        "n" * 200,
        "🙂",
        "x.tar.gz",
        "~",
        ".h",
    ]
    for _ in range(60):
        folder = "".join(f"/{chance.choice(['d', 'é', 'deep' * 12, 'x y'])}" for _ in range(chance.randrange(4)))
        path = f"{folder}/{chance.choice(names)}"
        mtime_ns = chance.choice([0, 1, -1_500_000_000, 1_700_000_000_123_456_789, 1 << 62, chance.getrandbits(60)])
        params: dict[str, Any] = {"mode": chance.choice([0o644, 0o755, 0, 0o7777]), "mtimeNs": mtime_ns}
        kind = chance.choice(["file"] * 4 + ["dir", "symlink"])
        content = {
            "file": chance.randbytes(chance.choice([0, 1, 511, 512, 513, 5000, 300_000])),
            "dir": b"",
            "symlink": chance.choice(["a.md", "d/ü", "x" * 300]).encode(),
        }[kind]
        client.put(f"/v1/files{quote(path)}", params={"containerTag": tag, "kind": kind, **params}, content=content)


@pytest.mark.promise("api.export")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_a_container_goes_out_and_comes_back_byte_for_byte(client: httpx.Client, tag: str, form: Format, seed: int) -> None:
    strange_tree(client, tag, seed)
    before = tree(client, tag)
    archive = exported(client, tag, form)
    assert exported(client, tag, form) == archive
    result = taken(client, f"{tag}-2", archive, links="all")
    assert result == counts(created=len(before))
    after = tree(client, f"{tag}-2")
    if form == "zip":  # whole seconds, and no dates before 1901 or after 2038
        for entry in before + after:
            del entry["mtimeNs"]
    assert after == before
    again = taken(client, f"{tag}-2", archive, links="all", merge="skip")
    assert again == counts(unchanged=len(before))


@pytest.mark.promise("api.export")
def test_names_metadata_settings_and_documents_without_a_place_come_along(client: httpx.Client, tag: str) -> None:
    placed = {"content": "one", "containerTag": tag, "filepath": "/a.md", "customId": f"a-{tag}", "metadata": {"k": [1, "ü"]}}
    placed["taskType"] = "superrag"
    loose = {"content": "two\n", "containerTag": tag, "customId": f"b-{tag}", "metadata": {"n": 1.5}}
    for body in (placed, loose, {"content": "three", "containerTag": tag}):
        assert client.post("/v3/documents", json=body).status_code == 200
    client.patch(f"/v3/container-tags/{tag}", json={"memoryFilesystemPaths": ["/x/"], "versionsMaxCount": 7})
    said = [
        {"content": "Ida mends ropes.", "isStatic": True, "metadata": {"of": "ida"}},
        {"content": "Jon paints.", "isStatic": False},
    ]
    assert client.post("/v4/memories", json={"containerTag": tag, "memories": said}).status_code == 201
    archive = exported(client, tag)
    # Custom ids belong to a container; the same ones may be used in another.
    client.delete(f"/v3/container-tags/{tag}")
    assert taken(client, tag, archive) == counts(created=3)
    back = client.post("/v3/documents/list", json={"containerTags": [tag], "includeContent": True}).json()["memories"]
    assert sorted((d["content"], d["filepath"], d["customId"], str(d["metadata"])) for d in back) == [
        ("one", "/a.md", f"a-{tag}", "{'k': [1, 'ü']}"),
        ("three", None, None, "{}"),
        ("two\n", None, f"b-{tag}", "{'n': 1.5}"),
    ]
    assert sorted(d["taskType"] for d in back) == ["memory", "memory", "superrag"]
    entries = client.post("/v4/memories/list", json={"containerTags": [tag]}).json()["memoryEntries"]
    assert sorted((e["memory"], e["isStatic"], str(e["metadata"])) for e in entries) == [
        ("Ida mends ropes.", True, "{'of': 'ida'}"),
        ("Jon paints.", False, "{}"),
    ]
    settings = client.get(f"/v3/container-tags/{tag}").json()
    assert (settings["memoryFilesystemPaths"], settings["versionsMaxCount"]) == (["/x/"], 7)
    assert taken(client, tag, archive, merge="replace") == counts(unchanged=3)


def test_a_folder_alone_can_be_exported(client: httpx.Client, tag: str) -> None:
    for path in ("/d/a", "/d/e/b", "/dx", "/c"):
        put(client, tag, path, path.encode())
    taken(client, f"{tag}-2", exported(client, tag, prefix="/d"))
    assert [entry["path"] for entry in tree(client, f"{tag}-2")] == ["/d/a", "/d/e/b"]


def test_an_export_is_one_moment_whatever_happens_meanwhile(client: httpx.Client, tag: str) -> None:
    """Replaced, moved and deleted for good while the archive is being sent: none of it is in it."""
    contents = {f"/{number}": os.urandom(700_000) for number in range(30)}
    for path, content in contents.items():
        put(client, tag, path, content)
    with client.stream("GET", "/v1/export", params={"containerTag": tag}) as answer:
        pieces = answer.iter_raw(64 * 1024)
        got = [next(pieces)]
        for number, path in enumerate(contents):
            if number % 3 == 0:
                put(client, tag, path, b"new")
            client.delete(f"/v1/files{path}", params={"containerTag": tag, "purge": "true"})
        got += pieces
    with tarfile.open(fileobj=io.BytesIO(b"".join(got))) as archive:
        found = {f"/{info.name}": archive.extractfile(info).read() for info in archive if not info.name.startswith(".memdir/")}  # type: ignore[union-attr]
    assert found == contents


def test_the_sidecar_gives_way_to_a_folder_of_that_name(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/.memdir/container.json", b"mine")
    put(client, tag, "/.memdir-1", b"mine too")
    archive = exported(client, tag)
    taken(client, f"{tag}-2", archive)
    assert tree(client, f"{tag}-2") == tree(client, tag)


# with tar and zip


def folder_of(tmp_path: Path) -> Path:
    """A folder as people have them."""
    folder = tmp_path / "folder"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "a.md").write_bytes(b"# a\n\x00\xff")
    (folder / "ü ß.txt").write_text("umlaut")
    (folder / "sub" / ("long" * 24)).write_bytes(b"x" * 100_000)
    (folder / "sub" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "sub" / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("sub/run.sh")
    os.utime(folder / "a.md", ns=(0, 1_700_000_000_000_000_000))
    return folder


def listing(folder: Path) -> dict[str, tuple[str, int, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = stat.S_IMODE(path.lstat().st_mode)
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = ("symlink", 0, os.readlink(path).encode())
        elif path.is_dir():
            found[name] = ("dir", mode, b"")
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found


PACKERS: dict[str, Callable[[Path, Path], list[str]]] = {
    "tar": lambda folder, file: ["tar", "-C", str(folder), "-cf", str(file), "."],
    "tar --format=gnu": lambda folder, file: ["tar", "--format=gnu", "-C", str(folder), "-cf", str(file), "."],
    "tar --format=ustar": lambda folder, file: ["tar", "--format=ustar", "-C", str(folder), "-cf", str(file), "."],
    "tar -z": lambda folder, file: ["tar", "-C", str(folder), "-czf", str(file), "."],
    "zip": lambda folder, file: ["sh", "-c", f"cd '{folder}' && zip -qry '{file}' ."],
}


def tool(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed here")


@pytest.mark.parametrize("packer", PACKERS)
def test_what_tar_and_zip_pack_is_taken_over(client: httpx.Client, tag: str, tmp_path: Path, packer: str) -> None:
    tool(packer.partition(" ")[0])
    folder = folder_of(tmp_path)
    file = tmp_path / "archive.zip"
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    subprocess.run(PACKERS[packer](folder, file), check=True, capture_output=True, env=environment)
    taken(client, tag, file.read_bytes())
    found = {e["path"][1:]: (e["kind"], 0 if e["kind"] == "symlink" else e["mode"], e["content"]) for e in tree(client, tag)}
    assert found == listing(folder)
    entry = next(e for e in tree(client, tag) if e["path"] == "/a.md")
    assert entry["mtimeNs"] == 1_700_000_000_000_000_000


@pytest.mark.parametrize("form", FORMATS)
def test_tar_and_unzip_unpack_what_is_exported(client: httpx.Client, tag: str, tmp_path: Path, form: Format) -> None:
    program = "unzip" if form == "zip" else "tar"
    tool(program)
    put(client, tag, "/a.md", b"# a\n\x00\xff", mode=0o600, mtimeNs=1_700_000_000_987_654_321)
    put(client, tag, "/d/ü ß/x.sh", b"#!/bin/sh\n" * 50_000, mode=0o755)
    put(client, tag, "/d/empty", kind="dir", mode=0o755)
    put(client, tag, "/link", b"d/x", kind="symlink", mode=0o777)
    put(client, tag, f"/{'long' * 60}/{'n' * 250}", b"")
    file, target = tmp_path / "archive", tmp_path / "out"
    file.write_bytes(exported(client, tag, form))
    target.mkdir()
    command = ["unzip", "-q", str(file), "-d", str(target)] if form == "zip" else ["tar", "-C", str(target), "-xpf", str(file)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | {"LC_ALL": "C.UTF-8"})
    assert (done.returncode, done.stderr) == (0, "")
    found = listing(target)
    assert found["a.md"] == ("file", 0o600, b"# a\n\x00\xff")
    assert found["d/ü ß/x.sh"] == ("file", 0o755, b"#!/bin/sh\n" * 50_000)
    assert found["d/empty"][0] == "dir"
    assert found["link"] == ("symlink", 0, b"d/x")
    assert found[f"{'long' * 60}/{'n' * 250}"][2] == b""
    exact = 1_700_000_000_987_654_321
    assert (target / "a.md").stat().st_mtime_ns == (exact // 10**9 * 10**9 if form == "zip" else exact)
    assert ".memdir/documents.jsonl" in found


# merging


def test_the_merge_policy_decides_about_what_stands_there(client: httpx.Client, tag: str) -> None:
    put(client, f"{tag}-src", "/a", b"new")
    put(client, f"{tag}-src", "/b", b"same")
    put(client, f"{tag}-src", "/c", b"more")
    archive = exported(client, f"{tag}-src")
    put(client, tag, "/a", b"old")
    put(client, tag, "/b", b"same")
    refused = imported(client, tag, archive)
    assert refused.status_code == 409
    assert "'/a'" in refused.json()["error"]
    assert [e["path"] for e in tree(client, tag)] == ["/a", "/b"]
    assert taken(client, tag, archive, merge="skip") == counts(created=1, unchanged=1, skipped=1)
    assert [e["content"] for e in tree(client, tag)] == [b"old", b"same", b"more"]
    assert taken(client, tag, archive, merge="replace") == counts(replaced=1, unchanged=2)
    assert [e["content"] for e in tree(client, tag)] == [b"new", b"same", b"more"]
    versions = client.get("/v1/versions", params={"containerTag": tag, "path": "/a"}).json()["versions"]
    assert len(versions) == 1, "what an import replaces can be restored"


def test_a_folder_where_the_archive_has_a_file_is_reported_and_the_rest_is_taken(client: httpx.Client, tag: str) -> None:
    put(client, f"{tag}-src", "/a", b"file")
    put(client, f"{tag}-src", "/b", b"file")
    put(client, tag, "/a/x", b"below")
    answer = imported(client, tag, exported(client, f"{tag}-src"), merge="replace").json()
    assert (answer["created"], answer["failedCount"], answer["failed"][0]["path"]) == (1, 1, "/a")
    assert [e["path"] for e in tree(client, tag)] == ["/a/x", "/b"]


# against harm


def tar_of(*entries: tarfile.TarInfo | tuple[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=form) as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry, io.BytesIO(b"x" * entry.size) if entry.isreg() else None)
            else:
                info = tarfile.TarInfo(entry[0])
                info.size = len(entry[1])
                archive.addfile(info, io.BytesIO(entry[1]))
    return target.getvalue()


def special(name: str, kind: bytes, linkname: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = linkname
    return info


def zip_of(*entries: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return target.getvalue()


def zip_link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


GOOD = ("good.md", b"good")
NAMES = ["../a", "d/../../a", "/etc/passwd", "d/./a", "d//a", "..", "a\0b", "n" * 256, "/".join("d" * 200)]
HOSTILE: dict[str, bytes] = {
    **{f"tar {name[:20]!r}": tar_of(GOOD, (name, b"x")) for name in NAMES if "\0" not in name},
    **{f"zip {name[:20]!r}": zip_of(GOOD, (name, b"x")) for name in NAMES if "\0" not in name},
    "zip with NUL": zip_of(GOOD, ("aXb", b"x")).replace(b"aXb", b"a\0b"),
    "a name twice": tar_of(GOOD, ("a", b"1"), ("./a", b"2")),
    "a file below a file": tar_of(GOOD, ("a", b"1"), ("a/b", b"2")),
    "a file above a file": tar_of(GOOD, ("a/b", b"2"), ("a", b"1")),
    "a file below a symlink": tar_of(GOOD, special("a", tarfile.SYMTYPE, "d"), ("a/b", b"2")),
    "a symlink out": tar_of(GOOD, special("a", tarfile.SYMTYPE, "../x")),
    "a deep symlink out": tar_of(GOOD, special("d/a", tarfile.SYMTYPE, "e/../../../x")),
    "an absolute symlink": tar_of(GOOD, special("a", tarfile.SYMTYPE, "/etc/passwd")),
    "a symlink out in a zip": zip_of(GOOD, (zip_link("a"), b"/etc/passwd")),
    "a symlink to nothing": zip_of(GOOD, (zip_link("a"), b"")),
    "a hard link": tar_of(GOOD, special("a", tarfile.LNKTYPE, "good.md")),
    "a device": tar_of(GOOD, special("a", tarfile.CHRTYPE)),
    "a FIFO": tar_of(GOOD, special("a", tarfile.FIFOTYPE)),
    "no archive": b"plain text, nothing else" * 100,
    "nothing": b"",
    "half a gzip": gzip.compress(tar_of(GOOD, ("a", os.urandom(100_000))))[:-5000],
    "a gzip of nothing": gzip.compress(b""),
    "a cut tar": tar_of(GOOD, ("a", b"x" * 5000))[:4000],
    "a tar without an end": tar_of(GOOD)[:1024],
    "a cut zip": zip_of(GOOD, ("a", os.urandom(10_000)))[:-30],
    "a zip with wrong bytes": zip_of((zipfile.ZipInfo("a"), b"correct content")).replace(b"correct", b"another"),
    "a broken header": tar_of(GOOD, ("a", b"x"))[:1024] + b"\xff" * 512 + tar_of(("b", b"x")),
    "a negative size": tar_of(GOOD, ("a", b"x"))[: 1024 + 124] + b"\xff" * 12 + tar_of(GOOD, ("a", b"x"))[1024 + 136 :],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_archive_that_means_harm_is_refused_as_a_whole(client: httpx.Client, tag: str, name: str) -> None:
    answer = imported(client, tag, HOSTILE[name])
    assert answer.status_code == 400, answer.text
    assert client.get(f"/v3/container-tags/{tag}").status_code == 404, "not even the container was made"


def test_links_that_lead_out_are_taken_as_they_are_when_asked_to(client: httpx.Client, tag: str) -> None:
    assert taken(client, tag, HOSTILE["an absolute symlink"], links="all") == counts(created=2)
    assert tree(client, tag, dates=False)[0]["content"] == b"/etc/passwd"


def bomb(kind: str) -> bytes:
    """Small files that say they are large, or become large."""
    zeros = b"\0" * (300 * 1024 * 1024)
    if kind == "gzip":
        info = tarfile.TarInfo("zeros")
        info.size = len(zeros)
        return gzip.compress(info.tobuf() + zeros + b"\0" * 1024)
    if kind == "pax header":
        info = special("./PaxHeaders/x", tarfile.XHDTYPE)
        info.size = len(zeros)
        return gzip.compress(info.tobuf(tarfile.USTAR_FORMAT) + zeros + b"\0" * 1024)
    if kind == "zip":
        return zip_of(("zeros", zeros))
    if kind == "zip that lies":
        raw = zip_of(("zeros", zeros))
        return raw.replace(struct.pack("<L", len(zeros)), struct.pack("<L", 10))
    if kind == "many":
        end = struct.pack("<4sHHHHLLH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, 1 << 31, 0, 0)
        locator = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 1 << 31, 1 << 31, 1 << 31, 0)
        return zip_of(GOOD) + locator + struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1) + end
    info = tarfile.TarInfo("sparse")  # GNU: a file of a terabyte, all hole
    info.size = 0
    info.pax_headers = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.size": str(1 << 40),
        "GNU.sparse.map": "0,0",
    }
    return info.tobuf(tarfile.PAX_FORMAT) + b"\0" * 1024


@pytest.mark.parametrize("kind", ["gzip", "pax header", "zip", "zip that lies", "many", "sparse"])
def test_a_bomb_is_refused_before_it_goes_off(client: httpx.Client, tag: str, kind: str) -> None:
    archive = bomb(kind)
    assert len(archive) < 2 * 1024 * 1024
    answer = imported(client, tag, archive)
    assert answer.status_code in (400, 413), answer.text
    assert client.get(f"/v3/container-tags/{tag}").status_code == 404


def test_numbers_of_entries_and_bytes_of_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = io.BytesIO(tar_of(*[(f"{number:040}", b"") for number in range(50)]))
    with closing(survey(many, "tar")) as found:
        assert len(found.paths) == 50
    monkeypatch.setattr(reading, "NAMES_MAX_BYTES", 50 * 40 - 1)
    with pytest.raises(TooLargeError):
        survey(many, "tar")
    monkeypatch.undo()
    monkeypatch.setattr(reading, "ENTRIES_MAX", 49)
    with pytest.raises(TooLargeError):
        survey(many, "tar")


@pytest.mark.parametrize("seed", range(30))
def test_random_damage_is_an_error_of_the_archive_or_harmless(seed: int) -> None:
    chance = random.Random(seed)
    originals = [
        tar_of(GOOD, ("d/ü", b"x" * 3000), special("l", tarfile.SYMTYPE, "d"), form=chance.choice([0, 1, 2])),
        zip_of(GOOD, ("d/ü", b"x" * 3000), (zip_link("l"), b"d")),
    ]
    originals.append(gzip.compress(originals[0]))
    for original in originals:
        for _ in range(40):
            raw = bytearray(original)
            for _ in range(chance.randrange(1, 6)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            file = io.BytesIO(bytes(raw))
            try:
                survey(file, reading.format_of(file)).close()
            except (InvalidError, TooLargeError):
                continue


@pytest.mark.parametrize(
    ("params", "status"),
    [({"format": "rar"}, 400), ({"prefix": "../x"}, 400), ({"containerTag": "no-such-container"}, 404), ({}, 200)],
)
def test_a_bad_question_for_an_export_is_refused(client: httpx.Client, tag: str, params: dict[str, str], status: int) -> None:
    put(client, tag, "/a", b"x")
    assert client.get("/v1/export", params={"containerTag": tag, **params}).status_code == status


@pytest.mark.parametrize("params", [{"merge": "maybe"}, {"links": "some"}, {"containerTag": "a/b"}])
def test_a_bad_question_for_an_import_is_refused(client: httpx.Client, tag: str, params: dict[str, str]) -> None:
    assert imported(client, tag, tar_of(GOOD), **params).status_code == 400


# what is held


def blobs(store: AnyStore) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in store.db.all("select hash, ref_count from blob"))


def test_an_export_holds_what_it_reads_and_lets_it_go(store: AnyStore, container: Container, put: Putting) -> None:
    for path in ("/a", "/b", "/d/a"):
        document = put(path, path.encode()[:1]).document
    assert document is not None
    before = blobs(store)
    with store.exports.begin(container) as held:
        assert (held.seq, held.count) == (3, 3)
        store.files.apply(container, Delete(path="/d", recursive=True, purge=True))
        store.files.delete_container(container)
        assert [store.blobs.content(entry["contentHash"]) for entry in held.entries()] == [b"/"] * 3
    assert before
    assert blobs(store) == []


def test_what_a_dead_export_held_is_let_go_in_time(
    store: Store, container: Container, put: Putting, clock: FakeClock, open_store: Any
) -> None:
    put("/a", b"x")
    held = store.exports.begin(container)
    store.files.apply(container, Delete(path="/a", purge=True))
    assert store.exports.release_stale() == 0
    clock.advance(HOLD_MS / 1000 + 1)
    assert store.exports.release_stale() == 1
    assert blobs(store) == []  # type: ignore[arg-type]
    held.__exit__(None, None, None)
    assert blobs(store) == []  # type: ignore[arg-type]

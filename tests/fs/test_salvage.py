"""A database file that the disk damaged: what can be read comes back, what cannot is said, and nothing is made up."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import Finding, check, repair
from memdir.fs.cache.pages import Cell, PageError, PageFile
from memdir.fs.cache.tables import PAGE_BYTES
from memdir.fs.types import ROOT_INO, IntentKind

from .conftest import Factory, crashed_copy
from .contract import CHUNK, ME, make, text

FILES = 700
Damage = Callable[[Path], None]


def content_of(number: int) -> bytes:
    """Small, large (several chunks with overflow pages), empty."""
    if number % 100 == 7:
        return random.Random(number).randbytes(3 * CHUNK + number)
    return b"" if number % 50 == 3 else b"%d " % number * (1 + number % 400)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed cache with every kind of row, large enough that every table has a tree of several pages."""
    folder = tmp_path_factory.mktemp("original") / "cache"
    with SqliteFs.open(folder) as fs:
        folders = [fs.mkdir(ROOT_INO, b"d%d" % number, 0o750, ME).ino for number in range(7)]
        for number in range(FILES):
            inode = make(fs, b"file %d with a name of some length" % number, content_of(number), folders[number % 7])
            if number % 3 == 0:
                fs.setxattr(inode.ino, b"user.note", b"attribute %d" % number * 10)
        fs.symlink(ROOT_INO, b"link", b"d0/target", ME)
        for number in range(50):
            fs.unlink(folders[0], b"file %d with a name of some length" % (number * 7))
    return folder


@pytest.fixture
def damaged(original: Path, tmp_path: Path) -> Callable[[Damage], Path]:
    def copy(damage: Damage) -> Path:
        folder = tmp_path / "cache"
        folder.mkdir(mode=0o700)
        for path in original.iterdir():
            if path.is_file():
                (folder / path.name).write_bytes(path.read_bytes())
        damage(folder / "cache.db")
        return folder

    return copy


def overwrite(path: Path, at: int, data: bytes) -> None:
    with open(path, "r+b") as handle:
        handle.seek(at)
        handle.write(data)


def expected() -> dict[bytes, bytes]:
    gone = {number * 7 for number in range(50)}
    return {b"file %d with a name of some length" % number: content_of(number) for number in range(FILES) if number not in gone}


def stored(folder: Path) -> dict[bytes, bytes]:
    """Every file by its name, wherever it stands now."""
    found = {}
    fs = SqliteFs.open(folder)
    stack = [ROOT_INO]
    while stack:
        for entry in fs.readdir(stack.pop()):
            if entry.inode.is_dir:
                stack.append(entry.inode.ino)
            elif entry.inode.is_file:
                found[entry.name] = text(fs, entry.inode.ino)
    fs.close()
    return found


def assert_nothing_made_up(folder: Path, findings: list[Finding]) -> dict[bytes, bytes]:
    """Every file that is there has its bytes, or zeros where a loss was said; names in lost+found have bytes of some file."""
    want, have = expected(), stored(folder)
    said = [finding.detail for finding in findings if finding.kind in ("lost", "orphan", "dangling-name", "dangling-folder")]
    for name, data in have.items():
        whole = want.get(name)
        if whole is None:
            assert name.startswith(b"#") or name == b"file 0 with a name of some length", name
        elif data != whole:
            assert said, name
            assert len(data) == len(whole) or any("attributes are lost" in text for text in said)
            assert all(byte in (0, there) for byte, there in zip(data, whole, strict=False)), name
    if len(have) < len(want):
        assert said
    return have


@pytest.mark.promise("fsck.salvage")
@pytest.mark.parametrize(
    ("at", "size"), [(0, 100), (0, 16), (16, 84), (0, 200)], ids=["header", "magic", "sizes", "header and tree"]
)
def test_a_destroyed_header_costs_nothing(damaged: Callable[[Damage], Path], at: int, size: int) -> None:
    folder = damaged(lambda path: overwrite(path, at, b"\0" * size))
    assert [finding.kind for finding in check(folder)] == ["database"]
    findings = repair(folder)
    assert check(folder) == []
    assert stored(folder).items() >= expected().items()
    [kept] = folder.glob("damaged-*-cache.db")
    assert kept.name in next(finding.detail for finding in findings if finding.kind == "salvaged")


@pytest.mark.promise("fsck.salvage")
@pytest.mark.parametrize("seed", range(12))
def test_damaged_pages_cost_what_stood_on_them_and_nothing_else(damaged: Callable[[Damage], Path], seed: int) -> None:
    damage_pages(damaged, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(12, 200))
def test_more_damaged_pages(damaged: Callable[[Damage], Path], seed: int) -> None:
    damage_pages(damaged, seed)


def damage_pages(damaged: Callable[[Damage], Path], seed: int) -> None:
    """Zeros, garbage or another page in a few places. Pages of pure contents get garbage only: SQLite keeps no checksums, so
    nobody can see it when they are still linked as they were."""
    rng = random.Random(seed)

    def damage(path: Path) -> None:
        whole = path.read_bytes()
        with PageFile(path, page_bytes=PAGE_BYTES) as pages:
            trees = [number for number in range(1, pages.page_count + 1) if pages.kind(number)]
            rest = sorted(set(range(1, pages.page_count + 1)) - {*trees})
        for _ in range(rng.randrange(1, 4)):
            number, other = rng.choice(trees if rng.random() < 0.8 else rest), rng.choice(trees)
            garbage = rng.randbytes(PAGE_BYTES)
            page = rng.choice((b"\0" * PAGE_BYTES, garbage, whole[(other - 1) * PAGE_BYTES :][:PAGE_BYTES]))
            overwrite(path, (number - 1) * PAGE_BYTES, page if number in trees else garbage)

    folder = damaged(damage)
    findings = repair(folder)
    assert check(folder) == [], findings
    assert_nothing_made_up(folder, findings)


@pytest.mark.promise("fsck.salvage")
@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_of_a_file_that_was_cut_off_the_rest_is_saved(damaged: Callable[[Damage], Path], share: float) -> None:
    folder = damaged(lambda path: os.truncate(path, int(path.stat().st_size * share)))
    findings = repair(folder)
    assert check(folder) == []
    have = assert_nothing_made_up(folder, findings)
    if share > 0.5:
        want = expected()
        assert sum(have.get(name) == data for name, data in want.items()) > len(want) // 2


@pytest.mark.promise("fsck.salvage")
def test_names_come_back_from_the_index_when_the_lists_are_gone(damaged: Callable[[Damage], Path]) -> None:
    folder = damaged(lambda path: destroy_tree(path, "dentry"))
    findings = repair(folder)
    assert check(folder) == []
    assert any("names were read from the index" in finding.detail for finding in findings)
    assert stored(folder).items() >= expected().items()


@pytest.mark.promise("fsck.salvage")
def test_contents_come_back_without_their_inodes(damaged: Callable[[Damage], Path]) -> None:
    folder = damaged(lambda path: destroy_tree(path, "inode"))
    findings = repair(folder)
    assert check(folder) == []
    have = assert_nothing_made_up(folder, findings)
    want = {name: data for name, data in expected().items() if data}
    assert have.items() >= want.items()
    assert any("attributes are lost" in finding.detail for finding in findings)


def test_lost_intents_are_made_up_for_by_comparing_every_path(damaged: Callable[[Damage], Path]) -> None:
    folder = damaged(lambda path: destroy_tree(path, "intent"))
    repair(folder)
    fs = SqliteFs.open(folder)
    puts = [intent.path for intent in fs.intents(0, 10_000) if intent.kind is IntentKind.PUT]
    fs.close()
    assert len(puts) >= FILES - 50


def destroy_tree(path: Path, table: str) -> None:
    """Zeros over every page of a table, its root included."""
    connection = apsw.Connection(str(path))
    ((root,),) = connection.execute("select rootpage from sqlite_schema where name = ?", (table,))
    connection.close()
    with PageFile(path, page_bytes=PAGE_BYTES) as pages:
        numbers, stack = set(), [root]
        while stack:
            numbers.add(number := stack.pop())
            if pages.kind(number) in (2, 5):
                stack.extend(pages.children(number))
    for number in numbers:
        overwrite(path, (number - 1) * PAGE_BYTES, b"\0" * PAGE_BYTES)


@pytest.mark.promise("fsck.salvage")
def test_the_write_ahead_log_counts_as_part_of_the_file(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    for number in range(40):
        make(fs, b"f%d" % number, b"%d" % number * 100)
    fs.flush()
    folder = tmp_path / "crashed"
    crashed_copy(fs, folder)
    assert (folder / "cache.db-wal").stat().st_size > PAGE_BYTES
    for journal in folder.glob("journal-*"):
        journal.unlink()
    with PageFile(folder / "cache.db", page_bytes=PAGE_BYTES) as pages:
        rows = [cell for number in range(1, pages.page_count + 1) if pages.kind(number) for cell in pages.cells(number)]
    names = {cell.values[1] for cell in rows if isinstance(cell, Cell) and len(cell.values) == 4 and cell.rowid is None}
    assert names >= {b"f%d" % number for number in range(40)}
    assert not any(isinstance(cell, PageError) for cell in rows)


def test_a_salvage_that_was_cut_off_begins_again(damaged: Callable[[Damage], Path]) -> None:
    folder = damaged(lambda path: overwrite(path, 0, b"\0" * 100))
    (folder / "salvaged.db").write_bytes(b"half")
    (folder / "salvaged.db-wal").write_bytes(b"half")
    (folder / "damaged-20260101-000000-cache.db-wal").write_bytes(b"")
    repair(folder)
    assert check(folder) == []
    assert stored(folder).items() >= expected().items()
    assert not (folder / "salvaged.db").exists()


@pytest.mark.parametrize("seed", range(40))
def test_garbage_is_never_read_as_anything_but_garbage(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "cache.db"
    page = bytearray(rng.randbytes(PAGE_BYTES * 3))
    page[PAGE_BYTES] = rng.choice((0x0D, 0x0A, 0x02, 0x05))
    page[PAGE_BYTES + 3 : PAGE_BYTES + 5] = b"\0\x10"
    path.write_bytes(bytes(page))
    with PageFile(path, page_bytes=PAGE_BYTES) as pages:
        for number in range(1, 4):
            for read in (pages.cells, pages.children):
                try:
                    list(read(number))
                except PageError:
                    continue
        pages.free_pages()

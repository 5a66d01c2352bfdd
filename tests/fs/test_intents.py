"""What the sync engine hears of, on every filesystem."""

from __future__ import annotations

import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.fs.localonly import LocalOnlyRules, is_left_behind, is_local_only
from memdir.fs.memory import MemoryFs
from memdir.fs.types import RENAME_EXCHANGE, ROOT_INO, AttrChange, IntentKind

from .conftest import AnyFs, Factory
from .contract import ME, make

PUT, DELETE, MOVE = IntentKind.PUT, IntentKind.DELETE, IntentKind.MOVE


class Reader:
    """Reads what is new, as (kind, path) or (kind, path, source)."""

    def __init__(self, fs: AnyFs) -> None:
        self._fs = fs
        self.seq = 0

    def __call__(self) -> list[tuple[object, ...]]:
        found = self._fs.intents(self.seq, 10_000)
        assert [intent.seq for intent in found] == sorted({intent.seq for intent in found})
        if found:
            self.seq = found[-1].seq
        return [(i.kind, i.path) if i.source is None else (i.kind, i.path, i.source) for i in found]


@pytest.fixture
def news(fs: AnyFs) -> Reader:
    return Reader(fs)


def test_creating_and_writing_is_one_put(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a", b"1")
    for number in range(50):
        fs.write(inode.ino, number, b"x")
    fs.setattr(inode.ino, AttrChange(mode=0o600))
    assert news() == [(PUT, "/a")]
    assert news() == []


def test_a_change_after_reading_is_told_again(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a")
    news()
    fs.write(inode.ino, 0, b"x")
    assert news() == [(PUT, "/a")]
    fs.setattr(inode.ino, AttrChange(size=0))
    assert news() == [(PUT, "/a")]
    fs.fallocate(inode.ino, 0, 10, 0)
    assert news() == [(PUT, "/a")]
    fs.setattr(inode.ino, AttrChange(mode=0o600))
    assert news() == [(PUT, "/a")]


def test_what_the_server_does_not_know_of_tells_nothing(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a", b"x")
    news()
    fs.setattr(inode.ino, AttrChange(mtime_ns=5))
    fs.setattr(inode.ino, AttrChange(uid=5))
    fs.setxattr(inode.ino, b"user.x", b"1")
    fs.write(inode.ino, 0, b"")
    assert news() == []


def test_the_newest_word_about_a_path_counts(fs: AnyFs, news: Reader) -> None:
    make(fs, b"a", b"1")
    fs.unlink(ROOT_INO, b"a")
    assert news() == [(DELETE, "/a")]
    fs.mkdir(ROOT_INO, b"a", 0o755, ME)
    fs.rmdir(ROOT_INO, b"a")
    fs.symlink(ROOT_INO, b"a", b"t", ME)
    assert news() == [(PUT, "/a")]


def test_folders_and_symlinks_are_told(fs: AnyFs, news: Reader) -> None:
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    fs.symlink(folder.ino, b"s", b"t", ME)
    fs.setattr(folder.ino, AttrChange(mode=0o700))
    assert news() == [(PUT, "/d"), (PUT, "/d/s")]
    fs.unlink(folder.ino, b"s")
    fs.rmdir(ROOT_INO, b"d")
    assert news() == [(DELETE, "/d/s"), (DELETE, "/d")]


def test_a_rename_is_a_move_and_a_barrier(fs: AnyFs, news: Reader) -> None:
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    inode = make(fs, b"a", b"1", folder.ino)
    fs.rename(ROOT_INO, b"d", ROOT_INO, b"e")
    fs.write(inode.ino, 0, b"2")
    assert news() == [(PUT, "/d"), (PUT, "/d/a"), (MOVE, "/e", "/d"), (PUT, "/e/a")]
    make(fs, b"b")
    fs.rename(ROOT_INO, b"b", folder.ino, b"a")
    assert news() == [(PUT, "/b"), (MOVE, "/e/a", "/b")]


def test_writes_behind_a_move_are_not_taken_for_older_ones(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a", b"1")
    fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
    other = make(fs, b"a", b"2")
    fs.write(inode.ino, 0, b"3")
    fs.write(other.ino, 0, b"4")
    assert news() == [(PUT, "/a"), (MOVE, "/b", "/a"), (PUT, "/a"), (PUT, "/b")]


def test_a_moved_folder_is_known_by_its_new_path_below_it(fs: AnyFs, news: Reader) -> None:
    outer = fs.mkdir(ROOT_INO, b"outer", 0o755, ME)
    inner = fs.mkdir(outer.ino, b"inner", 0o755, ME)
    file = make(fs, b"file", b"1", inner.ino)
    other = fs.mkdir(ROOT_INO, b"other", 0o755, ME)
    make(fs, b"file", b"2", other.ino)
    news()
    fs.rename(ROOT_INO, b"outer", ROOT_INO, b"moved")
    fs.write(file.ino, 0, b"x")
    make(fs, b"new", b"", inner.ino)
    assert news() == [(MOVE, "/moved", "/outer"), (PUT, "/moved/inner/file"), (PUT, "/moved/inner/new")]
    fs.rename(ROOT_INO, b"moved", ROOT_INO, b"other", RENAME_EXCHANGE)
    news()
    fs.write(file.ino, 0, b"y")
    assert news() == [(PUT, "/other/inner/file")]
    fs.rename(ROOT_INO, b"other", ROOT_INO, b"outer~")
    news()
    fs.write(file.ino, 0, b"z")
    assert news() == []
    fs.rename(ROOT_INO, b"outer~", ROOT_INO, b"outer")
    news()
    fs.unlink(inner.ino, b"new")
    assert news() == [(DELETE, "/outer/inner/new")]


def test_a_folder_that_takes_the_place_of_another_has_its_own_path(fs: AnyFs, news: Reader) -> None:
    first = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    make(fs, b"a", b"", first.ino)
    fs.rename(ROOT_INO, b"d", ROOT_INO, b"e")
    second = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    news()
    make(fs, b"b", b"", first.ino)
    make(fs, b"b", b"", second.ino)
    assert news() == [(PUT, "/e/b"), (PUT, "/d/b")]


def test_a_very_deep_folder_has_a_path(fs: AnyFs, news: Reader) -> None:
    folder = ROOT_INO
    for _ in range(1200):  # past PATH_MAX and past the recursion limit, as a chain of mkdirat makes it
        folder = fs.mkdir(folder, b"deep", 0o755, ME).ino
    news()
    make(fs, b"file", b"", folder)
    assert news() == [(PUT, "/deep" * 1200 + "/file")]


def test_a_write_to_a_linked_file_names_every_path(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a", b"1")
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    news()
    fs.link(inode.ino, folder.ino, b"b")
    assert news() == [(PUT, "/d/b")]
    fs.write(inode.ino, 0, b"2")
    assert sorted(news(), key=str) == [(PUT, "/a"), (PUT, "/d/b")]
    fs.write(inode.ino, 0, b"2")
    fs.link(inode.ino, ROOT_INO, b"c")
    fs.write(inode.ino, 0, b"3")
    assert {path for _, path in news()} == {"/a", "/d/b", "/c"}


def test_an_unlinked_file_is_not_told(fs: AnyFs, news: Reader) -> None:
    inode = make(fs, b"a", b"1")
    fs.retain(inode.ino)
    fs.unlink(ROOT_INO, b"a")
    news()
    fs.write(inode.ino, 0, b"2")
    assert news() == []
    fs.forget(inode.ino, 1)


def test_special_files_are_never_told(fs: AnyFs, news: Reader) -> None:
    inode = fs.create(ROOT_INO, b"socket", stat.S_IFSOCK | 0o600, ME)
    fs.setattr(inode.ino, AttrChange(mode=0o644))
    fs.rename(ROOT_INO, b"socket", ROOT_INO, b"plug")
    fs.unlink(ROOT_INO, b"plug")
    assert news() == []
    make(fs, b"a")
    fs.create(ROOT_INO, b"socket", stat.S_IFSOCK | 0o600, ME)
    news()
    fs.rename(ROOT_INO, b"socket", ROOT_INO, b"a")
    assert news() == [(DELETE, "/a")]


def test_an_exchange_names_every_path_below_both_places(fs: AnyFs, news: Reader) -> None:
    one = fs.mkdir(ROOT_INO, b"1", 0o755, ME)
    make(fs, b"x", parent=one.ino)
    make(fs, b"y", parent=one.ino)
    two = fs.mkdir(ROOT_INO, b"2", 0o755, ME)
    make(fs, b"x", parent=two.ino)
    news()
    fs.rename(ROOT_INO, b"1", ROOT_INO, b"2", RENAME_EXCHANGE)
    assert sorted(news(), key=str) == sorted(
        [(DELETE, "/1/y"), (PUT, "/1"), (PUT, "/1/x"), (PUT, "/2"), (PUT, "/2/x"), (PUT, "/2/y")], key=str
    )


class TestLocalOnly:
    def test_an_editors_save_is_a_put_of_the_real_path(self, fs: AnyFs, news: Reader) -> None:
        inode = make(fs, b"notes.md", b"old")
        news()
        make(fs, b".notes.md.swp", b"swap")
        make(fs, b"4913")
        fs.unlink(ROOT_INO, b"4913")
        fs.rename(ROOT_INO, b"notes.md", ROOT_INO, b"notes.md~")
        make(fs, b"notes.md", b"new")
        fs.unlink(ROOT_INO, b"notes.md~")
        fs.unlink(ROOT_INO, b".notes.md.swp")
        assert news() == [(PUT, "/notes.md")]
        make(fs, b".goutputstream-XYZ", b"newer")
        fs.rename(ROOT_INO, b".goutputstream-XYZ", ROOT_INO, b"notes.md")
        assert news() == [(PUT, "/notes.md")]
        assert inode.nlink == 0

    def test_everything_below_a_local_folder_stays(self, fs: AnyFs, news: Reader) -> None:
        trash = fs.mkdir(ROOT_INO, b".Trash-1000", 0o700, ME)
        files = fs.mkdir(trash.ino, b"files", 0o700, ME)
        make(fs, b"a", b"1", files.ino)
        assert news() == []
        fs.rename(trash.ino, b"files", ROOT_INO, b"back")
        assert news() == [(PUT, "/back"), (PUT, "/back/a")]
        fs.rename(ROOT_INO, b"back", trash.ino, b"files")
        assert news() == [(DELETE, "/back/a"), (DELETE, "/back")]

    def test_the_ignore_file_adds_names(self, fs: AnyFs, news: Reader) -> None:
        make(fs, b".memdirignore", b"# mine\nbuild/\n*.log\n!keep.log\n")
        make(fs, b"x.log", b"1")
        make(fs, b"keep.log", b"1")
        build = fs.mkdir(ROOT_INO, b"build", 0o755, ME)
        make(fs, b"deep.md", b"1", build.ino)
        assert news() == [(PUT, "/.memdirignore"), (PUT, "/keep.log")]
        assert fs.is_local_only("/build/deep.md")
        assert fs.is_local_only("/build")
        assert not fs.is_local_only("/keep.log")

    def test_a_pattern_that_goes_frees_what_it_named(self, fs: AnyFs, news: Reader) -> None:
        rules = make(fs, b".memdirignore", b"*.log\n")
        make(fs, b"x.log", b"1")
        make(fs, b"y.txt", b"1")
        news()
        fs.setattr(rules.ino, AttrChange(size=0))
        assert news() == [(PUT, "/.memdirignore"), (PUT, "/x.log")]
        fs.write(rules.ino, 0, b"*.txt\n")
        fs.write(fs.lookup(ROOT_INO, b"y.txt").ino, 0, b"2")
        assert news() == [(PUT, "/.memdirignore")]
        fs.unlink(ROOT_INO, b".memdirignore")
        assert news() == [(DELETE, "/.memdirignore"), (PUT, "/y.txt")]

    def test_a_moved_folder_meets_other_patterns(self, fs: AnyFs, news: Reader) -> None:
        make(fs, b".memdirignore", b"/a/secret*\n/b/draft*\n")
        folder = fs.mkdir(ROOT_INO, b"a", 0o755, ME)
        make(fs, b"secret", parent=folder.ino)
        make(fs, b"draft", parent=folder.ino)
        news()
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
        told = news()
        assert told[0] == (MOVE, "/b", "/a")
        assert sorted(told[1:], key=str) == [(DELETE, "/b/draft"), (PUT, "/b/secret")]

    @pytest.mark.parametrize(
        "path", ["/.DS_Store", "/d/._x", "/.Trash-0/a", "/.fuse_hidden0001", "/.a.md.swp", "/a.swx", "/b~", "/4913", "/.#lock"]
    )
    def test_names_left_behind(self, path: str) -> None:
        assert is_local_only(path)
        assert any(map(is_left_behind, path.encode().split(b"/")))

    @pytest.mark.parametrize("path", ["/a", "/.hidden", "/a.swap", "/~a", "/49130", "/#a", "/.Trash", "/a~b", "/DS_Store"])
    def test_names_that_only_look_like_it(self, path: str) -> None:
        assert not is_local_only(path)
        assert not any(map(is_left_behind, path.encode().split(b"/")))

    @settings(max_examples=500)
    @given(name=st.text(st.sampled_from(".~#_-4913swpxSTaü\n"), min_size=1, max_size=8))
    def test_a_name_and_a_path_are_judged_alike(self, name: str) -> None:
        judged = is_left_behind(name.encode())
        assert is_local_only(f"/{name}") is is_local_only(f"/a/{name}/b") is judged

    def test_a_broken_pattern_spoils_nothing(self) -> None:
        rules = LocalOnlyRules("!\n\\\n[\n*.log\n   \n")
        assert rules.matches("/a.log")
        assert not rules.matches("/a.md")


class TestDurably:
    def test_intents_survive_a_reopen_until_they_are_acknowledged(self, opened: Factory) -> None:
        fs = opened()
        make(fs, b"a")
        make(fs, b"\xff")
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
        before = fs.intents(0, 100)
        fs.acknowledge(before[0].seq)
        fs.close()
        fs = opened()
        assert list(fs.intents(0, 100)) == list(before[1:])
        fs.acknowledge(before[-1].seq)
        make(fs, b"c")
        fs.close()
        (last,) = opened().intents(0, 100)
        assert (last.path, last.seq > before[-1].seq) == ("/c", True)

    def test_a_mount_without_sync_is_named_as_a_whole_later(self, opened: Factory) -> None:
        fs = opened(sync=False)
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        make(fs, b"a", b"1", folder.ino)
        make(fs, b"x~")
        assert fs.intents(0, 10) == []
        fs.close()
        fs = opened(sync=False)
        fs.close()
        fs = opened()
        news = Reader(fs)
        assert news() == [(PUT, "/d"), (PUT, "/d/a")]
        fs.close()
        fs = opened()
        fs.acknowledge(100)
        fs.close()
        assert opened().intents(0, 10) == []


def test_listeners_hear_of_every_recorded_intent(fs: AnyFs) -> None:
    heard: list[int] = []
    fs.listen(lambda: heard.append(1))
    inode = make(fs, b"a")
    assert len(heard) == 1
    fs.write(inode.ino, 0, b"1")
    assert len(heard) == 1  # said already
    fs.unlink(ROOT_INO, b"a")
    assert len(heard) == 2


def test_without_sync_nothing_is_recorded() -> None:
    fs = MemoryFs(sync=False)
    make(fs, b"a", b"1")
    assert fs.intents(0, 10) == []

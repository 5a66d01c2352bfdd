"""`.memdirignore` against git itself: the same patterns, the same verdicts."""

from __future__ import annotations

import logging
import random
import subprocess
import time
from pathlib import Path

import pytest

from memdir.core.gitignore import PATTERN_MAX_BYTES, PATTERNS_MAX, GitIgnore
from memdir.core.ignore_rules import IGNORE_FILE_MAX_BYTES
from memdir.fs.localonly import LocalOnlyRules
from memdir.fs.types import ROOT_INO, AttrChange, IntentKind

from .conftest import Factory
from .contract import ME, make

CASES = [
    ("*.log", ["a.log", "d/a.log", "a.log/x", "a.logs"]),
    ("/a.txt", ["a.txt", "d/a.txt"]),
    ("d/a.txt", ["d/a.txt", "e/d/a.txt"]),
    ("build/", ["build/", "build", "build/x", "d/build/", "d/build/x", "d/build"]),
    ("*.log\n!keep.log", ["keep.log", "x.log", "d/keep.log"]),
    ("build/\n!build/keep", ["build/keep", "build/x"]),
    ("build/*\n!build/keep", ["build/keep", "build/x", "build/"]),
    ("/*\n!/keep/", ["keep/", "keep/a", "x", "x/y"]),
    ("/*\n!/keep\n/keep/*\n!/keep/me", ["keep/me", "keep/you", "other"]),
    ("**/foo", ["foo", "a/foo", "a/b/foo", "foo/x"]),
    ("foo/**", ["foo/", "foo", "foo/a", "foo/a/b", "x/foo/a"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b", "ab", "x/a/b"]),
    ("a/**b", ["a/xb", "a/x/b", "a/b"]),
    ("**", ["a", "a/b"]),
    ("**/", ["a", "a/", "a/b"]),
    ("a**b", ["ab", "axb", "a/b"]),
    ("foo ", ["foo", "foo "]),
    ("foo\\ ", ["foo", "foo "]),
    ("foo\\  ", ["foo ", "foo  "]),
    ("foo\t", ["foo", "foo\t"]),
    ("#foo", ["#foo", "foo"]),
    ("\\#foo", ["#foo"]),
    (" #foo", [" #foo", "#foo"]),
    ("\\!foo", ["!foo", "foo"]),
    ("!foo", ["foo"]),
    ("a?c", ["abc", "a/c", "ac"]),
    ("[ab]c", ["ac", "bc", "cc"]),
    ("[!a]c", ["ac", "bc"]),
    ("[^a]c", ["ac", "bc"]),
    ("[a-c]x", ["bx", "dx"]),
    ("[]]x", ["]x"]),
    ("[a", ["[a", "a"]),
    ("a\\*b", ["a*b", "axb"]),
    ("\\", ["\\"]),
    ("a\\", ["a", "a\\"]),
    ("*", ["a", "d/a", ".hidden"]),
    ("/", ["a"]),
    ("//a", ["a"]),
    ("a//b", ["a/b"]),
    ("./a", ["a"]),
    ("../a", ["a"]),
    ("a/", ["a", "a/", "a/b", "b/a/"]),
    ("/a/", ["a/", "b/a/"]),
    ("*/a", ["a", "b/a", "c/b/a"]),
    ("d/*", ["d/a", "d/a/b", "x/d/a"]),
    ("*.txt\r", ["a.txt", "a.txt\r"]),
    ("\ufeff*.bom", ["a.bom"]),
    ("\xfcmlaut", ["\xfcmlaut", "d/\xfcmlaut"]),
    ("a\x0bb", ["a\x0bb", "b"]),
    ("a\u2028b", ["a\u2028b", "b"]),
    ("a\x0cb", ["a\x0cb", "b"]),
    (".*", [".x", "a", "d/.y"]),
    ("*.[oa]", ["x.o", "x.a", "x.c"]),
    ("[[:digit:]]x", ["1x", "ax"]),
    ("doc/**/*.md", ["doc/a.md", "doc/x/a.md", "a.md"]),
    ("!*.md\n*.md", ["a.md"]),
    ("*.md\n!*.md\n/x.md", ["a.md", "x.md"]),
    ("a/b/\n!a/b/c", ["a/b/c", "a/b/"]),
    ("**/a/**", ["a/", "a/x", "b/a/x", "b/a/"]),
    ("a/*/c", ["a/b/c", "a/b/d/c"]),
    ("a*/", ["ab/", "ab", "ab/c"]),
    ("FOO", ["foo", "FOO"]),
    ("{a,b}", ["a", "{a,b}"]),
    ("a.txt   \n!b", ["a.txt"]),
    ("\n\n  \nx", ["x", "  "]),
    ("dir/\n!dir/", ["dir/", "dir/x"]),
    ("a\\/b", ["a/b"]),
    ("**/**/x", ["x", "a/x"]),
    ("x/**/", ["x/a/", "x/a", "x/a/b"]),
    ("/**/x", ["x", "a/x"]),
    ("***/x", ["x", "a/x"]),
]
"""Pattern files, and paths below them; a slash at the end makes a folder."""

NAMES = ("a", "b", "ab", "ba", "a b", "a.b", "[a", "a*", "!a", "#a", "-", "A", "a\\b", "\u00e4")


class Repository:
    """A work tree in which git is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        subprocess.run(["git", "init", "-q", str(folder)], check=True)

    def add(self, path: str) -> None:
        place = self.folder / path
        if path.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()

    def ignored(self, patterns: bytes, paths: list[str]) -> set[str]:
        """`git check-ignore` in one question."""
        (self.folder / ".gitignore").write_bytes(patterns)
        asked = "\0".join(path.rstrip("/") for path in paths) + "\0"
        command = ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin", "-z"]
        done = subprocess.run(command, cwd=self.folder, input=asked.encode(), capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        found = {name.decode() for name in done.stdout.split(b"\0") if name}
        return {path for path in paths if path.rstrip("/") in found}


def ours(patterns: bytes, paths: list[str]) -> set[str]:
    rules = GitIgnore(patterns)
    return {path for path in paths if rules.ignores(path.rstrip("/").encode(), is_dir=path.endswith("/"))}


@pytest.mark.promise("ignore.as-git")
@pytest.mark.parametrize(("patterns", "paths"), CASES, ids=[repr(case[0]) for case in CASES])
def test_each_pattern_means_what_it_means_to_git(tmp_path: Path, patterns: str, paths: list[str]) -> None:
    for number, path in enumerate(paths):  # one by one: a path can be a file in one case and a folder in the next
        repository = Repository(tmp_path / f"{number}")
        repository.add(path)
        assert ours(patterns.encode(), [path]) == repository.ignored(patterns.encode(), [path]), path


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> tuple[Repository, list[str]]:
    """Odd names, three folders deep."""
    repository = Repository(tmp_path_factory.mktemp("git") / "tree")
    rng = random.Random(5)
    paths = {f"{name}/" for name in NAMES[:6]}
    for _ in range(60):
        folder = "/".join(rng.choice(NAMES[:6]) for _ in range(rng.randrange(1, 4)))
        paths |= {folder + "/", f"{folder}/{rng.choice(NAMES[6:])}"}
    paths |= set(NAMES[6:])
    for path in sorted(paths):
        repository.add(path)
    return repository, sorted(paths)


def random_patterns(rng: random.Random) -> bytes:
    pieces = [
        "a",
        "b",
        "*",
        "**",
        "?",
        "/",
        "/",
        "[ab]",
        "[!a]",
        "[^b-z]",
        "!",
        "\\",
        " ",
        "#",
        ".",
        "-",
        "[",
        "]",
        "\u00e4",
        "[[:alpha:]]",
    ]
    lines = ["".join(rng.choice(pieces) for _ in range(rng.randrange(1, 7))) for _ in range(rng.randrange(1, 4))]
    return "\n".join(lines).encode()


def compare(tree: tuple[Repository, list[str]], seeds: range) -> None:
    repository, paths = tree
    for seed in seeds:
        patterns = random_patterns(random.Random(seed))
        assert ours(patterns, paths) == repository.ignored(patterns, paths), patterns


@pytest.mark.promise("ignore.as-git")
def test_random_patterns_mean_what_they_mean_to_git(tree: tuple[Repository, list[str]]) -> None:
    compare(tree, range(150))


@pytest.mark.long
def test_many_random_patterns(tree: tuple[Repository, list[str]]) -> None:
    compare(tree, range(150, 5000))


@pytest.mark.promise("ignore.bounded")
@pytest.mark.parametrize(
    "pattern", ["*a" * 200 + "b", "**/a/" * 200 + "b", "[a-z]*" * 300 + "0", "a*/" * 50 + "**/" * 50 + "z"]
)
def test_no_pattern_is_slow(pattern: str) -> None:
    rules = GitIgnore(pattern.encode())
    before_s = time.thread_time()
    for path in ("a" * 250, "/".join(["a"] * 1500), "/".join(["a" * 100] * 40)):
        assert not rules.ignores(path.encode(), is_dir=False)
    assert time.thread_time() - before_s < 5


@pytest.mark.promise("ignore.bounded")
def test_what_cannot_match_is_said_and_the_rest_counts() -> None:
    rules = GitIgnore(b"[open\nback\\\n[[:nothing:]]\n" + b"x" * (PATTERN_MAX_BYTES + 1) + b"\n*.log\n")
    assert [problem.split(":")[0] for problem in rules.problems] == [
        f"line {number} matches nothing" for number in (1, 2, 3, 4)
    ]
    assert rules.ignores(b"a.log", is_dir=False)
    many = GitIgnore(b"".join(b"f%d\n" % number for number in range(PATTERNS_MAX + 10)))
    assert len(many.patterns) == PATTERNS_MAX
    assert f"line {PATTERNS_MAX + 1} and everything behind it is left out" in many.problems[0]
    assert LocalOnlyRules("[open\n").problems
    assert not LocalOnlyRules("# nothing\n\n").has_patterns


@pytest.mark.promise("ignore.at-once")
def test_a_changed_file_counts_from_the_next_operation_on(opened: Factory, caplog: pytest.LogCaptureFixture) -> None:
    fs = opened()
    rules = make(fs, b".memdirignore", b"*.tmp\n")
    make(fs, b"a.tmp", b"stays here")
    assert fs.is_local_only("/a.tmp")
    with caplog.at_level(logging.WARNING):
        fs.setattr(rules.ino, AttrChange(size=0))
        fs.write(rules.ino, 0, b"*.log\n[open\n")
        make(fs, b"b.log", b"stays here too")
    assert not fs.is_local_only("/a.tmp")
    assert fs.is_local_only("/b.log")
    told = {intent.path for intent in fs.intents(0, 100) if intent.kind is IntentKind.PUT}
    assert "/a.tmp" in told
    assert "/b.log" not in told
    assert ".memdirignore: line 2 matches nothing: a [ without its ]" in caplog.text
    fs.unlink(ROOT_INO, b".memdirignore")
    assert not fs.is_local_only("/b.log")


@pytest.mark.promise("ignore.bounded")
def test_a_file_that_is_too_long_counts_up_to_its_bound(opened: Factory, caplog: pytest.LogCaptureFixture) -> None:
    fs = opened()
    with caplog.at_level(logging.WARNING):
        make(fs, b".memdirignore", b"*.tmp\n" + b"#" * IGNORE_FILE_MAX_BYTES + b"\n*.log\n")
        assert fs.is_local_only("/a.tmp")
    assert not fs.is_local_only("/a.log")
    assert f"only the first {IGNORE_FILE_MAX_BYTES} count" in caplog.text
    fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    assert not fs.is_local_only("/d")

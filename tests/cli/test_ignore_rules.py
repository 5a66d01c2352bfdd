"""What `.gitignore` files and `.memdirignore` leave out of an import; the expectations are git's."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.daemon.ignore_rules import rules_at_root, rules_below


def ignored(root: Path, path: str) -> bool:
    """Walk down as an import does: nothing below an ignored folder can come back."""
    rules = rules_at_root(root)
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        is_dir = depth < len(parts) or (root / here).is_dir()
        if rules.reason(here, is_dir=is_dir) is not None:
            return True
        if is_dir:
            rules = rules_below(rules, root / here, here)
    return False


def write(root: Path, path: str, text: str = "x") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


def test_it_decides_as_git_does(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "*.log\n!keep.log\nbuild/\n/top.txt\ndoc/**/draft\n# comment\n\n\\#hash\nspace\\ \n*.tmp  \n")
    write(tmp_path, "sub/.gitignore", "!wanted.log\nlocal.md\n*.txt\n!special.txt\n")
    write(tmp_path, "sub/deep/.gitignore", "special.txt\n")
    paths = [
        "a.log", "keep.log", "sub/wanted.log", "sub/other.log", "build/x", "sub/build/y", "top.txt", "sub/top.txt",
        "doc/a/b/draft", "doc/draft", "draft", "#hash", "sub/local.md", "local.md", "sub/special.txt", "sub/deep/special.txt",
        "sub/deep/wanted.log", "x.tmp", "normal.md", "sub/normal.md", "build.md", "space ", "space",
    ]  # fmt: skip
    for path in paths:
        write(tmp_path, path)
    subprocess.run(["git", "init", "-q", tmp_path], check=True, timeout=60)
    asked = subprocess.run(
        ["git", "-C", tmp_path, "check-ignore", "-z", "--no-index", "--stdin"],
        input="\0".join(paths).encode(), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    by_git = set(asked.stdout.decode().rstrip("\0").split("\0"))
    assert {path for path in paths if ignored(tmp_path, path)} == by_git
    assert by_git


def test_the_reason_names_the_file_and_the_pattern(tmp_path: Path) -> None:
    write(tmp_path, "sub/.gitignore", "*.bak\n")
    rules = rules_below(rules_at_root(tmp_path), tmp_path / "sub", "sub")
    assert rules.reason("sub/a.bak", is_dir=False) == "sub/.gitignore: *.bak"
    assert rules.reason("sub/a.md", is_dir=False) is None


def test_memdirignore_has_the_last_word(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "*.csv\n")
    write(tmp_path, ".memdirignore", "!numbers.csv\nprivate/\n")
    assert not ignored(tmp_path, "numbers.csv")
    assert ignored(tmp_path, "other.csv")
    write(tmp_path, "private/diary.md")
    assert ignored(tmp_path, "private/diary.md")


def test_a_memdirignore_below_the_root_is_an_ordinary_file(tmp_path: Path) -> None:
    write(tmp_path, "sub/.memdirignore", "*\n")
    assert not ignored(tmp_path, "sub/a.md")


def test_a_folder_without_ignore_files_ignores_nothing(tmp_path: Path) -> None:
    assert not ignored(tmp_path, "a/b/c.log")


def test_an_ignore_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere", "*\n")
    (tmp_path / ".gitignore").symlink_to("elsewhere")
    assert not ignored(tmp_path, "a.md")


def test_an_ignore_file_too_long_to_be_one_stops_the_import(tmp_path: Path) -> None:
    write(tmp_path, ".memdirignore", "x\n" * 600_000)
    with pytest.raises(UsageError, match="longer than"):
        rules_at_root(tmp_path)


def test_odd_lines_do_not_hurt(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbf*.log\r\n!\n/\n\xff\xfe*.bin\n[bad\n")
    assert ignored(tmp_path, "a.log")
    assert not ignored(tmp_path, "a.md")

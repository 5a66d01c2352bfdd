"""Literal and regular expression search beside the real grep."""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.core.errors import UsageError
from memdir.core.patterns.matcher import Matcher, Pattern
from memdir.retrieval.trigrams.index import TrigramIndex
from memdir.retrieval.trigrams.needs import needs_of

UTF8 = {"LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
C = {"LC_ALL": "C", "PATH": os.environ["PATH"]}


def grep(folder: Path, pattern: Pattern, environment: dict[str, str]) -> set[tuple[str, int]] | None:
    """Files and lines that the real grep finds; None for a pattern it refuses."""
    flags = (
        "-rna" + ("E" if pattern.regex else "F") + ("i" if pattern.ignore_case else "") + ("w" if pattern.whole_words else "")
    )
    command = ["grep", "--binary-files=text", "-Z", flags, "-e", pattern.text, "."]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode == 2:
        return None
    found = set()
    for line in done.stdout.split(b"\n"):
        name, nul, rest = line.partition(b"\0")
        if nul:
            found.add((os.fsdecode(name)[2:], int(rest.partition(b":")[0])))
    return found


def ours(folder: Path, pattern: Pattern) -> set[tuple[str, int]]:
    matcher = Matcher(pattern)
    return {(path.name, line.number) for path in sorted(folder.iterdir()) for line in matcher.lines(path.read_bytes())}


WORDS = [
    "foo",
    "foobar",
    "Foo",
    "bar",
    "FOO_bar",
    "été",
    "ÉTÉ",
    "naïve",
    "straße",
    "x1",
    "a.b",
    "(a)",
    "[x]",
    "日本",
    "kind",
    "\u212ax",
    "so",
    "\u017fo",
    "-",
    "$5",
    "^",
    "\t",
    "",
    "aaa",
    "abab",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Valid UTF-8 of all kinds: long and empty files, CRLF, no last line end."""
    folder = tmp_path_factory.mktemp("corpus")
    rng = random.Random(6)
    for number in range(40):
        lines = [" ".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(rng.randrange(12))]
        end = rng.choice(["\n", "\r\n", "\n"])
        text = end.join(lines) + rng.choice(["", end, "\n\n"])
        (folder / f"f{number:02}").write_bytes(text.encode())
    return folder


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is no UTF-8."""
    folder = tmp_path_factory.mktemp("wild")
    rng = random.Random(7)
    for number in range(20):
        words = [rng.choice(WORDS).encode(rng.choice(["latin-1", "utf-8", "utf-16-le"]), "replace") for _ in range(30)]
        data = b"".join(word + rng.choice([b" ", b"\n", b"\xff", b"\r\n"]) for word in words).replace(b"\0", b"") + b"\xe9"
        (folder / f"w{number:02}").write_bytes(data)
    return folder


PATTERNS = [
    "foo", "foo|bar", "^foo", "bar$", "f.o", "fo+", "(ab)+", "(ab){2}", "a{2,}", "a{,2}b", "[fF]oo", "[^f]oo",
    "[[:upper:]]oo", "[[:alpha:]]+1", "[[:digit:]]", "[]x]", "[^]x]", "\\bfoo\\b", "\\<foo", "bar\\>", "\\w+_bar",
    "\\W", "\\s", "\\S+ \\S+ foo", "^$", "^", "$", "a\\.b", "\\(a\\)", "\\$5", "[a-c]+", "été|naïve", "stra.e", "日本",
    "日.", "x{1", "a{b", "()", "(|foo)bar", "foo|", "f(o|x)o(bar)?", "[[:space:]]foo", "[[:punct:]]",
    "(foo|Foo)(bar|_bar)", "[a\\]", "kind", "so", ".*foo.*bar", "(a|b|ab)*aaa", "\\Boo", "oo\\B",
]  # fmt: skip


@pytest.mark.parametrize("text", PATTERNS)
def test_the_lines_are_those_of_the_real_grep(text: str, corpus: Path, wild: Path) -> None:
    options = itertools.product((True, False), (False, True), (False, True))
    # All eight kinds are met, a few with each pattern: every one costs two processes.
    chosen = itertools.islice(options, PATTERNS.index(text) % 3, None, 3)
    for regex, ignore_case, whole_words in chosen:
        pattern = Pattern(text=text, regex=regex, ignore_case=ignore_case, whole_words=whole_words)
        for folder, environment in ((corpus, UTF8), (wild, C)):
            expected = grep(folder, pattern, environment)
            if expected is not None:
                assert ours(folder, pattern) == expected, (pattern, folder)


# --- the index -----------------------------------------------------------------------------------------------------------


def candidates(index: TrigramIndex, pattern: Pattern) -> set[bytes]:
    return index.view.candidates(needs_of(Matcher(pattern).tree, ignore_case=pattern.ignore_case))


ALPHABET = st.sampled_from(
    ["a", "b", "A", "k", "\u212a", "s", "\u017f", "é", "É", "日", " ", "\n", "\r\n", ".", "\xff", "I", "ı"]
)
TEXTS = st.lists(st.lists(ALPHABET, max_size=30).map("".join), min_size=1, max_size=8)
REGEXES = st.recursive(
    st.sampled_from(["a", "b", "ab", "abb", "k", "s", "é", "日", ".", "[ab]", "[^a]", "[[:alpha:]]", "^", "$", "\\.", "i"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,1}"])).map(lambda pair: f"({pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


def check_none_missed(index_folder: Path, texts: list[str], encoding: str, pattern: Pattern) -> None:
    index = TrigramIndex(index_folder)
    contents = {
        hashlib.sha256(data).digest(): data
        for data in (text.encode("latin-1" if "\xff" in text and text.isascii() else "utf-8", "replace") for text in texts)
    }
    index.add(contents.items())
    matcher = Matcher(pattern)
    matching = {digest for digest, data in contents.items() if matcher.matches(data)}
    assert matching <= candidates(index, pattern)


CASES = {
    "texts": TEXTS, "encoding": st.sampled_from(["utf-8", "latin-1", "utf-16-le"]), "regex": REGEXES,
    "ignore_case": st.booleans(), "whole_words": st.booleans(),
}  # fmt: skip


def never_left_out(texts: list[str], encoding: str, regex: str, ignore_case: bool, whole_words: bool) -> None:
    pattern = Pattern(text=regex, regex=True, ignore_case=ignore_case, whole_words=whole_words)
    with tempfile.TemporaryDirectory() as folder:
        check_none_missed(Path(folder) / "index", texts, encoding, pattern)


@pytest.mark.promise("retrieval.literal-index")
@settings(max_examples=40, deadline=None)
@given(**CASES)
def test_no_file_that_matches_is_ever_left_out(**case: Any) -> None:
    never_left_out(**case)


@pytest.mark.long
@settings(max_examples=3000, deadline=None)
@given(**CASES)
def test_no_file_that_matches_is_left_out_of_many(**case: Any) -> None:
    never_left_out(**case)


def filled(folder: Path, count: int = 100) -> tuple[TrigramIndex, dict[bytes, bytes]]:
    contents = {}
    for number in range(count):
        data = f"file {number} has the word w{number:04}x and common text\n".encode()
        contents[hashlib.sha256(data).digest()] = data
    index = TrigramIndex(folder / "index")
    for start in range(0, count, 7):
        index.add(list(contents.items())[start : start + 7])
    return index, contents


def test_a_rare_word_leaves_one_file_and_a_common_one_all(tmp_path: Path) -> None:
    index, contents = filled(tmp_path)
    assert [contents[digest] for digest in candidates(index, Pattern(text="w0042x"))] == [
        b"file 42 has the word w0042x and common text\n"
    ]
    assert candidates(index, Pattern(text="common")) == set(contents)
    assert candidates(index, Pattern(text="never there")) == set()
    assert candidates(index, Pattern(text="ab")) == set(contents)
    both = candidates(index, Pattern(text="w000(1|2)x", regex=True))
    assert {contents[digest][5:6] for digest in both} == {b"1", b"2"}


def test_the_index_outlives_its_process_and_knows_the_same(tmp_path: Path) -> None:
    index, contents = filled(tmp_path)
    again = TrigramIndex(tmp_path / "index")
    assert again.view.known == index.view.known == frozenset(contents)
    assert candidates(again, Pattern(text="w0042x")) == candidates(index, Pattern(text="w0042x"))


def test_segments_become_one_only_while_one_of_them_is_made_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdir.retrieval.trigrams.index.SEGMENT_POSTING_BYTES", 200_000)
    index, chance = TrigramIndex(tmp_path), random.Random(7)
    added = {}
    for number in range(60):
        data = chance.randbytes(chance.choice((100, 4_000, 60_000))) + f"\nneedle{number} ".encode()
        added[hashlib.sha256(data).digest()] = data
        index.add([(hashlib.sha256(data).digest(), data)])
    assert index.view.known == set(added)
    assert len(index.view.segments) < 45, "small ones became one"
    assert max(segment.posting_bytes for segment in index.view.segments) <= 200_000
    found = candidates(index, Pattern(text="needle17 "))
    assert [data for digest, data in added.items() if b"needle17 " in data] == [added[digest] for digest in found]


def test_what_is_not_wanted_any_more_leaves_nothing_behind(tmp_path: Path) -> None:
    index, contents = filled(tmp_path)
    gone = next(digest for digest, data in contents.items() if b"w0042x" in data)
    assert index.keep(lambda digest: digest != gone) == 1
    assert candidates(index, Pattern(text="w0042x")) == set()
    assert index.view.known == frozenset(contents) - {gone}
    assert all(gone not in path.read_bytes() for path in (tmp_path / "index").iterdir())
    assert index.keep(lambda digest: False) == len(contents) - 1
    assert [path.name for path in (tmp_path / "index").iterdir()] == ["index.json"]


@pytest.mark.parametrize("damage", ["cut", "changed", "deleted", "list", "left over"])
def test_a_damaged_file_is_left_out_and_its_contents_are_read_again(tmp_path: Path, damage: str) -> None:
    _, contents = filled(tmp_path)
    folder = tmp_path / "index"
    path = max(folder.glob("*.tri"))
    data = path.read_bytes()
    if damage == "cut":
        path.write_bytes(data[:-9])
    elif damage == "changed":
        path.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    elif damage == "deleted":
        path.unlink()
    elif damage == "list":
        (folder / "index.json").write_text("{}")
    else:
        (folder / "00000099-0.part").write_bytes(data[:100])
    again = TrigramIndex(folder)
    if damage == "left over":
        assert again.view.known == frozenset(contents)
        assert not list(folder.glob("*.part"))
    else:
        assert again.view.known < frozenset(contents)
    again.add(contents.items())
    assert again.view.known == frozenset(contents)
    assert candidates(again, Pattern(text="common")) == set(contents)


def test_noise_is_always_read(tmp_path: Path) -> None:
    index = TrigramIndex(tmp_path / "index")
    noise = random.Random(1).randbytes(400_000)
    index.add([(hashlib.sha256(noise).digest(), noise)])
    assert candidates(index, Pattern(text="whatever")) == {hashlib.sha256(noise).digest()}
    assert sum(path.stat().st_size for path in (tmp_path / "index").iterdir()) < 1000


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("a(b", "without its )"),
        ("[a", "without its ]"),
        ("(a)\\1", "back-references"),
        ("a{3,2}", "ends before"),
        ("a{2000}", "more than 1000"),
        ("[[:nope:]]", "names no class"),
        ("[:alpha:]", "[[:alpha:]]"),
        ("\\d", "\\d means nothing"),
        ("a\\", "backslash"),
        ("((a{1000}){1000}){1000}", "cannot be searched"),
        ("\\<.", "use \\b"),
    ],
)
def test_what_cannot_be_searched_is_an_error_that_says_why(pattern: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        Matcher(Pattern(text=pattern, regex=True))
    assert what in f"{caught.value.message} {caught.value.hint}"


def test_a_pattern_that_makes_others_hang_takes_no_time() -> None:
    matcher = Matcher(Pattern(text="(a*)*b|(a|aa)+$x", regex=True))
    assert not matcher.matches(b"a" * 1_000_000)

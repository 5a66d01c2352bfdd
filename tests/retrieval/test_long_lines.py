"""Nothing that reads what people write backtracks for ever: lines that nobody expects, of everything that regular expressions
like to try again and again."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from memdir.core.secrets import masked
from memdir.ingest.chunker import cut
from memdir.ingest.extractors.formats import HEAD_BYTES, family_of
from memdir.ingest.text import decode
from memdir.memory.extract import extract
from memdir.memory.guard import is_instruction
from memdir.memory.markup import as_markdown
from memdir.retrieval.agents.relevance import is_filler
from memdir.retrieval.agents.terms import asked
from memdir.retrieval.agents.updates import relation
from memdir.retrieval.statements import statements_of
from memdir.retrieval.units import units_of
from memdir.store.text.analysis import index_terms
from memdir.store.text.mentions import mentions
from memdir.store.text.wrapping import by_sentence, unwrapped

CHARS = 20_000
PROCESSOR_S = 3.0
"""Some hundred times what any of these takes."""
ATOMS = (
    " ", "\t", "a", "A", "1", "#", "-", "*", "=", "_", ".", ",", ":", "/", '"', "(", "[", "{", "<", "|", "@", " a", "a.", "a,",
    "a_", "a@", "<a ", "aA", "A1", " \n", "\n", "I ", "is ", "and ", "http://a", "[00:00] ", "A b: ", "- ", "> ", "\\", "`",
    "Ana and ", "key: ", "a=b; ", "<!--a-->", "<!DOCTYPE a [", "/**/", ")](", "aAa", "Àaa", "Aaa Bbb ", "`a` ", "\\a{",
    "a\n==\n\n",
)  # fmt: skip
BEGINNINGS = ("", "# a", "- I live in ", 'title: "')
SUFFIXES = ("md", "rst", "tex", "org", "txt", "eml", "csv", "json", "yaml", "py", "sh", "vtt", "ini")


def _cut(suffix: str) -> Callable[[str], object]:
    def reads(text: str) -> None:
        decoded = decode(text.encode())
        assert decoded is not None
        cut(decoded, f"/x.{suffix}")

    return reads


def _facts(text: str) -> None:
    for said in (text, f"- {text[:900]}", f"Slept well. {text[:900]}."):
        for path in ("/memory/me.md", "/memory/2026-11-28.md"):
            extract(said, path, byte_at=int)


READERS: dict[str, Callable[[str], object]] = {
    "kinds": lambda text: family_of(text.encode()[:HEAD_BYTES], "a"),
    "statements": lambda text: statements_of(text, units_of(text)),
    "facts": _facts, "secrets": masked, "lines": units_of, "words": index_terms, "mentions": mentions,
    "pages": unwrapped, "sentences": by_sentence, "prompts": asked, "fillers": is_filler, "orders": is_instruction,
    "updates": lambda text: relation(text, f"{text} not"),
    **{f"passages of {suffix}": _cut(suffix) for suffix in SUFFIXES},
}  # fmt: skip


@pytest.fixture
def bounded() -> Iterator[Callable[[], None]]:
    """To be called before each piece of work; one that takes PROCESSOR_S of this process's own time fails."""

    def over(_number: int, _frame: object) -> None:
        raise AssertionError(f"it takes more than {PROCESSOR_S} s of processor time")

    def start() -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, PROCESSOR_S)

    before = signal.signal(signal.SIGVTALRM, over)
    yield start
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def read_lines(reader: str, bounded: Callable[[], None], every: int) -> None:
    for begun, beginning in enumerate(BEGINNINGS):
        for atom in ATOMS[begun % every :: every]:
            bounded()
            READERS[reader](f"{beginning}{atom * (CHARS // len(atom))}x\n")


@pytest.mark.parametrize("reader", READERS)
def test_a_line_of_twenty_thousand_characters_is_read_like_any_other(reader: str, bounded: Callable[[], None]) -> None:
    """Each of the atoms behind one beginning."""
    read_lines(reader, bounded, len(BEGINNINGS))


@pytest.mark.long
@pytest.mark.parametrize("reader", READERS)
def test_such_a_line_is_read_whatever_it_begins_with(reader: str, bounded: Callable[[], None]) -> None:
    read_lines(reader, bounded, 1)


@pytest.mark.parametrize("opening", ["<!-- a ", "<!--", "%%a ", "%%\nx\n", ":a:\n", ":a:\nx\n", "- a:: ", "/a "])
def test_what_is_opened_again_and_again_and_never_closed_is_read_once(opening: str, bounded: Callable[[], None]) -> None:
    bounded()
    as_markdown(f"<!-- a -->{opening * (400_000 // len(opening))}", is_org=True)

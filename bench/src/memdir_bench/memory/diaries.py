"""Four diaries of some 75 entries each, in English, German, Spanish and French, written by hand in four styles, with what is
worth remembering marked line by line. Rules were made with the English, German and Spanish ones in sight, after they had been
measured once (`docs/memory.md` has both)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from memdir.memory.extract import extract
from memdir_bench.memory.judging import DAY_MS, Store, bytes_before, shown
from memdir_bench.memory.made_up_lives import Truth

LANGUAGES: Final = ("english", "german", "spanish", "french")
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}$")
_VALUE: Final = re.compile(r" \{(?P<who>\w+)\.(?P<attribute>[\w ]+)=(?P<value>[^}]+)\}$")


@dataclass(slots=True)
class Entry:
    """Of one day: sentences, those worth remembering, and those that state a value that a later one takes the place of."""

    day: str
    sentences: list[str] = field(default_factory=list)
    worth: list[str] = field(default_factory=list)
    values: list[tuple[Truth, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join(self.sentences) + "\n"

    @property
    def path(self) -> str:
        return f"/memory/diary/{self.day}.md"


def diary(language: str) -> list[Entry]:
    """The entries, the first day first."""
    entries: list[Entry] = []
    for line in files("memdir_bench.memory").joinpath("diaries", f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if _DAY.match(line):
            entries.append(Entry(line))
        elif line and not line.startswith("#"):
            _add(entries[-1], line)
    return entries


def _add(entry: Entry, line: str) -> None:
    found = _VALUE.search(line)
    sentence = (line if found is None else line[: found.start()]).removeprefix("+ ")
    entry.sentences.append(sentence)
    if line.startswith("+"):
        entry.worth.append(sentence)
    if found is not None:
        entry.values.append((Truth(attribute=found["attribute"], who=found["who"], value=found["value"]), sentence))


@dataclass(frozen=True, slots=True)
class Remembered:
    """Facts, those of a marked sentence; marked sentences, those of which there is a fact."""

    facts: int
    right: int
    worth: int
    found: int


def remembered(entries: Sequence[Entry]) -> Remembered:
    """What is remembered of each entry by itself, against its marks."""
    facts = right = found = 0
    for entry in entries:
        marked = list(_places(entry))
        lasting = [one for one in extract(entry.text, entry.path, byte_at=bytes_before(entry.text)) if not one.is_passing]
        spans = [(one.start_byte, one.end_byte) for one in lasting]
        facts += len(spans)
        right += sum(any(start >= begin and end <= stop for begin, stop in marked) for start, end in spans)
        found += sum(any(start >= begin and end <= stop for start, end in spans) for begin, stop in marked)
    return Remembered(facts, right, sum(len(entry.worth) for entry in entries), found)


def _places(entry: Entry) -> Iterator[tuple[int, int]]:
    """Bytes from and to of the marked sentences."""
    at = 0
    for sentence in entry.sentences:
        end = at + len(sentence.encode())
        if sentence in entry.worth:
            yield at, end
        at = end + 1


@dataclass(slots=True)
class Kept:
    """Attributes whose value changed: those of which the profile says the last value and none before; those of which it says
    both; facts whose source is gone."""

    changed: int = 0
    up_to_date: int = 0
    contradictions: int = 0
    stale: int = 0


def kept(entries: Sequence[Entry]) -> Kept:
    """What the profile says after the whole diary, and after every second entry was taken out again."""
    store = Store()
    for number, entry in enumerate(entries):
        store.write(entry.path, entry.text, now_ms=(20_000 + number) * DAY_MS)
    now_ms = (20_000 + len(entries)) * DAY_MS
    stated: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in entries:
        for truth, sentence in entry.values:
            stated.setdefault((truth.who, truth.attribute), []).append((truth.value, sentence))
    score = Kept()
    said = {one.text for one in shown(store, now_ms)}
    for values in stated.values():
        last = values[-1][0]
        if all(value == last for value, _ in values):
            continue
        now = any(_is_of(one, sentence) for one in said for value, sentence in values if value == last)
        before = any(_is_of(one, sentence) for one in said for value, sentence in values if value != last)
        score.changed += 1
        score.up_to_date += now and not before
        score.contradictions += now and before
    gone = [sentence for entry in entries[::2] for sentence in entry.sentences]
    for entry in entries[::2]:
        store.write(entry.path, "", now_ms=now_ms)
    score.stale = sum(any(_is_of(one.text, sentence) for sentence in gone) for one in shown(store, now_ms))
    return score


def _is_of(fact: str, sentence: str) -> bool:
    """Whether a fact is one that a sentence says."""
    return fact.rstrip(".!") in sentence or sentence.rstrip(".!") in fact

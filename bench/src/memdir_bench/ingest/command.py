"""Documents written by other libraries than those that read them: what is found again, and what it costs."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import html
import importlib.resources
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, Final

from memdir.core.errors import UsageError
from memdir.ingest.extractors.formats import HEAD_BYTES, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Extraction, Sandbox
from memdir_bench.figures import Figure, machine, percentile
from memdir_bench.ingest import documents, hostile, printed_tables
from memdir_bench.report import reported

_NEEDED: Final = ("reportlab", "docx", "xlsxwriter", "espeakng_loader")
_PROSE_SENTENCES: Final = 120
_COUNT, _QUICK_COUNT = 8, 2
_PAGES, _QUICK_PAGES = 8, 1
_MIXED, _QUICK_MIXED = 100, 12
_MANUALS: Final = 40
_VOICES: Final = ("en-us", "en-us+f2", "en-us+m3", "en-us+f4", "en-us+m7")
_NOISE_DB: Final = 20.0
_WORD: Final = re.compile(r"\w+")


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when it could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """All figures. UsageError when a library is missing that writes the documents."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"{', '.join(missing)} cannot be imported", hint="pip install 'memdir-bench[ingest]'")
    sentences = _sentences()
    sandbox = Sandbox()
    try:
        figures = [
            *_born_digital(sandbox, sentences, _QUICK_COUNT if args.quick else _COUNT),
            *_tables(sandbox, sentences, _QUICK_COUNT if args.quick else _COUNT),
            *printed_tables.figures(lambda data, name: _read(sandbox, data, name).text, 3 if args.quick else _MANUALS),
            *_mail(sandbox, sentences),
            *_printed(sandbox, sentences, _QUICK_PAGES if args.quick else _PAGES),
            *_spoken(sandbox, sentences, 1 if args.quick else len(_VOICES)),
            *_mixed(sandbox, sentences, _QUICK_MIXED if args.quick else _MIXED),
            *_bombs(sandbox),
        ]
    finally:
        sandbox.close()
    return {"machine": machine(), "figures": [figure.as_json() for figure in figures], "failed": {}}


def _sentences() -> list[str]:
    """Plain English of several subjects: the memories of the agents' bench."""
    folder = importlib.resources.files("memdir_bench.agents") / "projects"
    found = []
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".txt"):
            for line in entry.read_text(encoding="utf-8").splitlines():
                said = re.match(r"m\d+ (?:\[[^\]]*\] )?(.+)", line)
                if said:
                    found.append(said[1])
    return found


def _read(sandbox: Sandbox, data: bytes, name: str) -> Extraction:
    found = family_of(data[:HEAD_BYTES], name)
    assert found is not None, name
    return sandbox.extract([data], found)


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> float:
    """The share of what is wanted that is found in its order (longest matching blocks)."""
    blocks = difflib.SequenceMatcher(None, wanted, found, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / max(len(wanted), 1)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


_WRITERS: Final[dict[str, Callable[[Sequence[str]], bytes]]] = {
    "pdf": documents.pdf_of,
    "docx": documents.docx_of,
    "pptx": documents.pptx_of,
    "odt": documents.odt_of,
    "epub": documents.epub_of,
    "html": lambda paragraphs: documents.page_of("".join(f"<p>{html.escape(one)}</p>" for one in paragraphs)),
    "rtf": documents.rtf_of,
}


def _born_digital(sandbox: Sandbox, sentences: Sequence[str], count: int) -> Iterable[Figure]:
    for kind, write in _WRITERS.items():
        shares, seconds, peaks = [], [], []
        for number in range(count):
            chosen = random.Random(number).sample(list(sentences), _PROSE_SENTENCES)  # noqa: S311  no secret
            data = write(chosen)
            began_s = time.monotonic()
            found = _read(sandbox, data, f"a.{kind}")
            seconds.append(time.monotonic() - began_s)
            peaks.append(found.peak_bytes / (1 << 20))
            shares.append(_in_order(_words(" ".join(chosen)), _words(found.text)))
        yield Figure(
            name=f"{kind}.words_in_order", value=min(shares), unit="share", samples=count, goal=0.995, better="higher",
            note=f"the worst of {count} documents of {_PROSE_SENTENCES} sentences",
        )  # fmt: skip
        yield Figure(name=f"{kind}.seconds", value=percentile(seconds, 0.5), unit="s", samples=count)
        yield Figure(name=f"{kind}.peak_memory", value=max(peaks), unit="MiB", samples=count, goal=512)


def _tables(sandbox: Sandbox, sentences: Sequence[str], count: int) -> Iterable[Figure]:
    for kind, write in (("xlsx", documents.xlsx_of), ("docx", documents.docx_table_of), ("odt", documents.odt_table_of)):
        kept = total = 0
        for number in range(count):
            generator = random.Random(number)  # noqa: S311  no secret
            rows = [
                (generator.choice(sentences)[:60], str(generator.randrange(10**6)), f"{generator.random():.4f}")
                for _ in range(200)
            ]
            lines = _read(sandbox, write(rows), f"a.{kind}").text.split("\n")
            cells = [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
            found = {tuple(row[-3:]) for row in cells}
            kept += sum(tuple(" ".join(cell.split()) for cell in row) in found for row in rows)
            total += len(rows)
        yield Figure(name=f"{kind}.rows_kept", value=kept / total, unit="share", samples=total, goal=1.0, better="higher")


def _mail(sandbox: Sandbox, sentences: Sequence[str]) -> Iterable[Figure]:
    count = min(len(sentences), 200)
    box = b"".join(
        b"From ana@example.org Wed Nov 25 10:30:00 2026\n" + documents.mail(f"Message {number}") + b"\n"
        for number in range(count)
    )
    text = _read(sandbox, box, "inbox.mbox").text
    whole = re.findall(
        r"^## Message \d+\n\n- From: Ana Ruiz <ana@example\.org>\n.*\n- Date: 2026-11-25 10:30 \+0100$", text, re.M
    )
    yield Figure(name="mbox.messages", value=len(whole) / count, unit="share", samples=count, goal=1.0, better="higher")


def _printed(sandbox: Sandbox, sentences: Sequence[str], count: int) -> Iterable[Figure]:
    shares, seconds, engine = [], [], ""
    for number in range(count):
        lines = [one[:80] for one in random.Random(number).sample(list(sentences), 30)]  # noqa: S311  no secret
        data = documents.page(lines)
        began_s = time.monotonic()
        try:
            found = _read(sandbox, data, "a.png")
        except ExtractionError as error:
            raise UsageError(error.reason, hint=error.hint) from error
        seconds.append(time.monotonic() - began_s)
        engine = found.engine
        shares.append(_in_order("".join("".join(lines).split()), "".join(found.text.split())))
    yield Figure(
        name="printed.characters", value=sum(shares) / count, unit="share", samples=count, goal=0.97, better="higher",
        note=f"pages of 30 lines at 150 dpi, by {engine}",
    )  # fmt: skip
    yield Figure(name="printed.seconds", value=percentile(seconds, 0.5), unit="s", samples=count)


def _spoken(sandbox: Sandbox, sentences: Sequence[str], voices: int) -> Iterable[Figure]:
    wrong = total = 0
    spent_s = heard_s = 0.0
    for number, voice in enumerate(_VOICES[:voices]):
        text = " ".join(random.Random(number).sample(list(sentences), 8))  # noqa: S311  no secret
        data = _noisy(documents.speech(text, voice=voice), number)
        began_s = time.monotonic()
        try:
            found = _read(sandbox, data, "a.wav")
        except ExtractionError as error:
            raise UsageError(error.reason, hint=error.hint) from error
        spent_s += time.monotonic() - began_s
        heard_s += len(data) / 2 / 22_050
        said = _words(re.sub(r"^\[[\d:]+\]", "", found.text, flags=re.M))
        wrong += _edits(_words(text), said)
        total += len(_words(text))
    note = f"espeak-ng, {voices} voices, noise {_NOISE_DB:g} dB below; names and identifiers count"
    yield Figure(name="spoken.word_error_rate", value=wrong / total, unit="share", samples=total, note=note)
    yield Figure(name="spoken.real_time", value=spent_s / heard_s, unit="ratio", samples=voices)


def _noisy(data: bytes, seed: int) -> bytes:
    import io
    import wave

    import numpy as np

    with wave.open(io.BytesIO(data)) as opened:
        rate, samples = opened.getframerate(), np.frombuffer(opened.readframes(opened.getnframes()), dtype=np.int16)
    loudness = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    noise = np.random.default_rng(seed).normal(0, loudness / 10 ** (_NOISE_DB / 20), samples.size)
    return documents.wav(np.clip(samples + noise, -32768, 32767).astype(np.int16).tobytes(), rate=rate)


def _edits(wanted: Sequence[str], found: Sequence[str]) -> int:
    """Levenshtein distance in words."""
    row = list(range(len(found) + 1))
    for at, word in enumerate(wanted, start=1):
        before, row[0] = row[0], at
        for column, other in enumerate(found, start=1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (word != other))
    return row[-1]


def _mixed(sandbox: Sandbox, sentences: Sequence[str], count: int) -> Iterable[Figure]:
    kinds = ("docx", "pptx", "odt", "pdf")
    made = [
        (kind, _WRITERS[kind](random.Random(number).sample(list(sentences), 40)))  # noqa: S311  no secret
        for number, kind in zip(range(count), kinds * count, strict=False)
    ]
    began_s = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: _read(sandbox, one[1], f"a.{one[0]}"), made))
    spent_s = time.monotonic() - began_s
    goal = 60.0 if count == _MIXED else None
    yield Figure(
        name="mixed.seconds", value=spent_s, unit="s", samples=count, goal=goal, note=f"{count} documents, two at a time"
    )


def _bombs(sandbox: Sandbox) -> Iterable[Figure]:
    slowest = 0.0
    made = hostile.bombs()
    for name, make in made.items():
        data = make()
        began_s = time.monotonic()
        with contextlib.suppress(ExtractionError):  # refused: that is what it is for
            _read(sandbox, data, name)
        slowest = max(slowest, time.monotonic() - began_s)
    yield Figure(name="bombs.slowest", value=slowest, unit="s", samples=len(made), goal=10.0)

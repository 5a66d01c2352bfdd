"""Search among what people wrote: the documentation that came with this machine's packages, posted to a server and searched.

No word is made up: READMEs, manuals, changelogs and HTML pages below /usr/share/doc, in pieces of 60 to 200 words, each once,
and notes about a person, which become memories. Every mode of a search is timed while the server reads the documents and when
it rests, with what the server holds in memory and how fast it read, beside the transformer alone on the same passages.
"""

from __future__ import annotations

import gzip
import html
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from memdir_bench.figures import Figure, percentile
from memdir_bench.posix.clocks import resident_mib
from memdir_bench.scale.goals import figure
from memdir_bench.server.fixtures import fixture
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

DOCUMENTATION: Final = Path("/usr/share/doc")
WORDS: Final = (60, 200)
"""Of one document."""
TAG: Final = "prose"
MODES: Final = ("documents", "memories", "hybrid")
LIMITS: Final = (10, 40)
PERSONS: Final = ("Ada", "Bela", "Chidi", "Dora", "Emre", "Fumiko", "Goran", "Hana")
FACTS: Final = (
    "prefers tea",
    "lives in Porto",
    "works at a bakery",
    "is allergic to nuts",
    "speaks Finnish",
    "plays the cello",
)
_BATCH: Final = 100
_FILE_MAX_BYTES: Final = 2_000_000
_SAMPLE: Final = 300
"""Passages that the transformer reads alone."""
_READ_LIMIT_S: Final = 4 * 3600.0
_SUFFIXES: Final = ("", ".txt", ".md", ".rst", ".html", ".htm", ".Debian")
_MARKUP: Final = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]+>", re.DOTALL | re.IGNORECASE)


def documents(root: Path, count: int) -> list[str]:
    """`count` pieces in a random order that is always the same. BenchError when there are not so many here."""
    found = list(dict.fromkeys(pieces(root)))
    if len(found) < count:
        raise BenchError(
            f"{root} has prose for {len(found):,} documents only",
            hint="install documentation, such as linux-doc, python3-doc and debian-handbook, or ask for fewer",
        )
    random.Random(7).shuffle(found)  # noqa: S311  an order, not a secret
    return found[:count]


def pieces(root: Path) -> Iterator[str]:
    """Of 60 words or more, at most 200, in order of the files' names."""
    for path in sorted(root.rglob("*")):
        packed = path.suffix == ".gz"
        suffix = path.with_suffix("").suffix if packed else path.suffix
        if suffix not in _SUFFIXES or path.name == "copyright" or path.is_symlink() or not path.is_file():
            continue
        with gzip.open(path) if packed else path.open("rb") as file:
            try:
                text = file.read(_FILE_MAX_BYTES).decode("utf-8")
            except (OSError, EOFError, UnicodeDecodeError):
                continue  # no text, or cut in the middle of a character
        if suffix in (".html", ".htm"):
            text = html.unescape(_MARKUP.sub(" ", text))
        words: list[str] = []
        for paragraph in re.split(r"\n\s*\n", text):
            own = paragraph.split()
            words += own if len(own) >= 15 else []
            if len(words) >= WORDS[0]:
                yield " ".join(words[: WORDS[1]])
                words = []


def figures(
    sizes: Sequence[int], *, root: Path = DOCUMENTATION, requests: int = 60, parent: Path | None = None
) -> Iterator[Figure]:
    """Of a server for each size."""
    texts = documents(root, max(sizes))
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="memdir-bench-prose-", dir=parent) as folder:
            yield from _at_size(Path(folder), texts[:size], requests)


def _at_size(folder: Path, texts: Sequence[str], requests: int) -> Iterator[Figure]:
    name = f"prose.{len(texts)}"
    rng = random.Random(3)  # noqa: S311
    questions = [" ".join(rng.choice(texts).split()[5 : 5 + rng.randint(3, 9)]) for _ in range(requests)]
    notes = [f"{person} {fact} (note {number})." for number in range(5) for person in PERSONS for fact in FACTS]
    with fixture(folder) as one, one.client() as client:
        began = time.perf_counter()
        for first in range(0, len(texts), _BATCH):
            _post(client, texts[first : first + _BATCH])
        _post(client, notes)
        progress(f"{name}: searching while it reads …")
        yield from _searches(client, f"{name}.reading", questions, limits=LIMITS[:1])
        while _left(client):
            if time.perf_counter() - began > _READ_LIMIT_S:
                raise BenchError(f"{len(texts):,} documents were not read in {_READ_LIMIT_S / 3600:g} h")
            time.sleep(1.0)
        took_s = time.perf_counter() - began
        progress(f"{name}: searching while it rests …")
        one.rested_s()
        yield from _searches(client, f"{name}.idle", questions, limits=LIMITS)
        pid = one.servers[0].process.pid
        yield figure(f"{name}.server_resident", resident_mib(pid), "MiB", note="at rest, after all searches")
        yield figure(f"{name}.read_rate", len(texts) / took_s, "1/s", better="higher", note="documents, from the first post on")
        yield figure(f"{name}.memories", _memories(client), "memories", note=f"of {len(notes)} notes and all documents")
    alone = _alone(texts)
    yield figure(f"{name}.model_rate", alone, "1/s", better="higher", note="the transformer alone, on two threads")
    yield figure(
        f"{name}.read_share", len(texts) / took_s / alone, "ratio", better="higher", note="of what the transformer does"
    )


def _post(client: httpx.Client, texts: Sequence[str]) -> None:
    answer = client.post("/v3/documents/batch", json={"containerTag": TAG, "contents": list(texts)})
    if answer.status_code != 200 or answer.json()["failed"]:
        raise BenchError(f"a batch was answered {answer.status_code}: {answer.text[:300]}")


def _left(client: httpx.Client) -> int:
    return int(client.get("/v3/documents/processing", params={"containerTag": TAG}).json()["totalCount"])


def _memories(client: httpx.Client) -> int:
    answer = client.post("/v4/memories/list", json={"containerTags": [TAG], "limit": 1}).json()
    return int(answer["pagination"]["totalItems"])


def _searches(client: httpx.Client, name: str, questions: Sequence[str], *, limits: Sequence[int]) -> Iterator[Figure]:
    for mode in MODES:
        for limit in limits:
            times = [_search(client, {"q": question, "searchMode": mode, "limit": limit}) for question in questions]
            for share in (50, 95):
                yield figure(f"{name}_{mode}_{limit}_p{share}", percentile(times, share / 100), "ms", samples=len(times))


def _search(client: httpx.Client, body: dict[str, Any]) -> float:
    began = time.perf_counter()
    answer = client.post("/v4/search", json={"containerTag": TAG} | body)
    took_ms = (time.perf_counter() - began) * 1000
    if answer.status_code != 200:
        raise BenchError(f"a search was answered {answer.status_code}: {answer.text[:300]}")
    return took_ms


def _alone(texts: Sequence[str]) -> float:
    from memdir.core.paths import app_paths
    from memdir.retrieval.embed import MiniLmEmbedder

    model = MiniLmEmbedder(app_paths().models_dir)
    model.embed_passages(list(texts[:20]))
    began = time.perf_counter()
    model.embed_passages(list(texts[:_SAMPLE]))
    return len(texts[:_SAMPLE]) / (time.perf_counter() - began)

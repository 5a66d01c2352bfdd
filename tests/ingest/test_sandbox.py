"""Every kind of file is read; what is made to do harm does none, and the next file is read as before."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memdir.ingest.extractors.formats import HEAD_BYTES, Format, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Limits, Sandbox, parent
from memdir.ingest.sandbox.confinement import landlock_version
from memdir_bench.ingest import conversations, documents, phrases
from memdir_bench.ingest.documents import KINDS, Kind
from memdir_bench.ingest.hostile import billion_laughs, bombs, huge_png
from memdir_bench.ingest.phrases import PHRASE
from tests.acceptance.driver import eventually

from .reading import read

WITH_SCAN_LATER = [pytest.param(kind, marks=[pytest.mark.long] * (kind.name == "scan.pdf"), id=kind.name) for kind in KINDS]
"""Recognising a page takes seconds each time: again and again in the long lane."""


@pytest.mark.promise("extract.kinds")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_is_read(sandbox: Sandbox, kind: Kind) -> None:
    data = kind.make()
    found = read(sandbox, data, kind.name)
    assert found.kind == kind.sibling
    assert PHRASE in " ".join(found.text.split())
    if kind.place is not None:
        assert f"## {kind.place}\n" in found.text.split(PHRASE.split()[1])[0]


@pytest.mark.parametrize("kind", WITH_SCAN_LATER)
def test_a_kind_is_known_by_what_is_in_the_file(sandbox: Sandbox, kind: Kind) -> None:
    assert read(sandbox, kind.make(), "misnamed.xyz").kind == kind.sibling or kind.name.endswith((".eml", ".html"))


@pytest.mark.parametrize("make", [documents.docx, documents.odt, documents.xlsx], ids=["docx", "odt", "xlsx"])
def test_tables_of_office_files_are_kept_cell_by_cell(sandbox: Sandbox, make: object) -> None:
    assert callable(make)
    text = read(sandbox, make(), "table").text
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    for row in phrases.ROWS:
        assert any(list(row) == cells[-3:] for cells in rows), (row, rows)


def test_a_row_of_a_sheet_has_its_number(sandbox: Sandbox) -> None:
    assert "| 3 | Brass hinges | 12 | FALSE |" in read(sandbox, documents.xlsx(), "a").text


def test_speakers_notes_and_titles_are_told(sandbox: Sandbox) -> None:
    assert "Mention the ice of 1963" in read(sandbox, documents.pptx(), "a").text
    assert read(sandbox, documents.pdf(), "a").title == "Birds of the river"
    assert read(sandbox, documents.pdf(), "a").facts["pages"] == 2
    page = read(sandbox, documents.html(), "a.html")
    assert (page.title, page.facts["language"]) == ("Birds of the river", "en")
    assert "Home of the nav" not in page.text


def test_a_mail_has_sender_time_text_and_what_is_attached(sandbox: Sandbox) -> None:
    data = documents.mail(attached={"costs.xlsx": documents.xlsx(), "heron.txt": b"wingspan two metres"})
    found = read(sandbox, data, "a.eml")
    assert "- From: Ana Ruiz <ana@example.org>\n" in found.text
    assert "- Date: 2026-11-25 10:30 +0100\n" in found.text
    assert "Größe: 3 m." in found.text
    assert "Attachment: costs.xlsx" in found.text
    assert "Brass hinges" in found.text
    assert "wingspan two metres" in found.text
    assert found.title == "Herons"


def test_a_mailbox_has_every_message(sandbox: Sandbox) -> None:
    found = read(sandbox, documents.mbox(), "inbox")
    assert found.facts["messages"] == 2
    assert found.text.count("- From: Ana Ruiz") == 2
    assert re.findall(r"^## (\w+)$", found.text, re.MULTILINE) == ["First", "Second"]


def test_an_event_has_its_time_people_and_words(sandbox: Sandbox) -> None:
    text = read(sandbox, conversations.calendar(), "a.ics").text
    assert text.startswith("## Bird walk, spring\n\n- Start: 2026-04-05 08:30 Europe/Madrid\n")
    assert "- Organizer: Ana Ruiz <ana@example.org>\n" in text
    assert "Bring boots" in text
    assert "Alarm text" not in text


def test_a_chat_has_every_message_with_sender_and_time(sandbox: Sandbox) -> None:
    told = {
        make: read(sandbox, make(), "a").text
        for make in (conversations.slack, conversations.chatgpt, conversations.claude, conversations.whatsapp)
    }
    assert f"Marta: @U01 {PHRASE}\n" in told[conversations.slack]
    assert re.findall(r"\[\d{4}-\d\d-\d\d \d\d:\d\d\] Ana Ruiz: (.*)", told[conversations.slack]) == ["Morning!", "Noted."]
    assert "I do not know" not in told[conversations.chatgpt], "a branch that was given up"
    assert f"] assistant: {PHRASE}." in told[conversations.chatgpt]
    assert f"[2026-11-25 10:30] assistant: {PHRASE}." in told[conversations.claude]
    assert f"[25.11.26 10:31] Marta: {PHRASE}\nand on Fridays\n" in told[conversations.whatsapp]
    assert "[25.11.26 10:32] Ana Ruiz: Noted: thanks\n" in told[conversations.whatsapp]
    assert "encrypted" not in told[conversations.whatsapp]


@pytest.mark.promise("extract.speech")
def test_speech_is_understood_and_timed(sandbox: Sandbox) -> None:
    found = read(sandbox, documents.speech(), "memo.wav")
    words = set(re.findall(r"[a-z]+", found.text.lower()))
    assert {"meeting", "bridge", "thursday", "morning"} <= words, found.text
    assert found.text.startswith("[0:00:0")
    assert str(found.facts["duration"]).startswith("0:00:0")


def test_silence_says_nothing(sandbox: Sandbox) -> None:
    assert read(sandbox, documents.wav(bytes(64_000)), "a.wav").text == ""


def test_text_on_the_screen_is_read_once_with_its_time(sandbox: Sandbox) -> None:
    data = documents.film([documents.png(), documents.png("Second picture of the talk")])
    found = read(sandbox, data, "talk.mp4")
    assert found.kind == "video"
    assert len(re.findall("heron", found.text)) == 1
    times = re.findall(r"^\[0:00:0(\d)\]", found.text, re.MULTILINE)
    assert len(times) == 2
    assert int(times[1]) >= 2


def test_text_stays_text() -> None:
    for name, data in (("a.md", b"# T\n"), ("a.py", b"import os\n"), ("a.csv", b"a,b\n1,2\n"), ("a.bin", bytes(range(256)))):
        assert family_of(data, name) is None, name


REFUSED = (
    ("encrypted.pdf", documents.encrypted_pdf, "password"),
    ("huge.png", huge_png, "pixels"),
    ("bomb.docx", lambda: phrases.zipped({"word/document.xml": b"<a>" * 1000, "[Content_Types].xml": b"x"}), ""),
    ("laughs.odt", lambda: phrases.zipped({"content.xml": billion_laughs()}, first=phrases.ODT), ""),
    ("empty.odt", lambda: phrases.zipped({}, first=phrases.ODT), "no content"),
    ("old.doc", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(4000), "damaged"),
)


@pytest.mark.promise("extract.harmless")
@pytest.mark.parametrize(("name", "make", "said"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_read_says_why(sandbox: Sandbox, name: str, make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(ExtractionError) as caught:
        read(sandbox, make(), name)
    assert said in caught.value.reason


@pytest.mark.promise("extract.harmless")
@pytest.mark.parametrize("name", bombs())
def test_a_bomb_ends_within_its_limits(sandbox: Sandbox, name: str) -> None:
    data = bombs()[name]()
    with suppress(ExtractionError):
        assert len(read(sandbox, data, name).text) <= 16 << 20
    assert PHRASE in read(sandbox, documents.rtf(), "a.rtf").text, "the next one is read as before"


@pytest.mark.promise("extract.harmless")
@pytest.mark.parametrize("kind", WITH_SCAN_LATER)
def test_damaged_files_are_read_as_far_as_they_go_or_refused(sandbox: Sandbox, kind: Kind) -> None:
    data = kind.make()
    generator = random.Random(kind.name)
    for number in range(10):
        if number % 2:
            harmed = data[: generator.randrange(16, len(data))]
        else:
            harmed = bytearray(data)
            for _ in range(generator.randrange(1, 40)):
                harmed[generator.randrange(len(harmed))] = generator.randrange(256)
        found = family_of(bytes(harmed[:HEAD_BYTES]), kind.name)
        if found is not None:
            with suppress(ExtractionError):
                sandbox.extract([bytes(harmed)], found)


def _only(module: str) -> Format:
    return Format(kind="office", media_type="x/y", module=module)


HOSTILE = {
    "spins": "def extract(path, out):\n    while True:\n        pass\n",
    "eats": "def extract(path, out):\n    x = []\n    while True:\n        x.append(bytearray(1 << 20))\n",
    "dies": "import os\ndef extract(path, out):\n    os.kill(os.getpid(), 11)\n",
    "calls": (
        "import socket\nfrom memdir.ingest.extractors.output import ExtractionError\ndef extract(path, out):\n"
        "    try:\n        socket.socket()\n    except PermissionError:\n        out.paragraph('refused')\n"
    ),
    "looks": "import os\ndef extract(path, out):\n    out.paragraph(' '.join(sorted(os.environ)))\n",
    "peeks": (
        "from pathlib import Path\ndef extract(path, out):\n"
        "    for place in SECRETS:\n"
        "        try:\n            out.paragraph(f'{place}: {Path(place).read_text()}')\n"
        "        except PermissionError:\n            out.paragraph('refused')\n"
        "    try:\n        Path(SECRETS[0]).write_text('x')\n    except PermissionError:\n        out.paragraph('refused')\n"
        "    Path('mine').write_text('x')\n    out.paragraph(Path('mine').read_text())\n"
    ),
    "writes": "def extract(path, out):\n    with open('big', 'wb') as f:\n        f.truncate(1 << 40)\n",
}
HALF = (
    "from memdir.ingest.extractors.output import ExtractionError\ndef extract(path, out):\n    out.fact('pages', 9)\n"
    "    out.paragraph('page one')\n    out.progress(1, 9)\n    out.paragraph('page two')\n"
)
HOSTILE |= {
    "tires": f"{HALF}    out.progress(2, 9)\n    while True:\n        pass\n",
    "falls": f"import os\n{HALF}    out.progress(2, 9)\n    os.kill(os.getpid(), 11)\n",
    "stumbles": f"{HALF}    max([])\n",
    "refuses": f"{HALF}    raise ExtractionError('page three is torn')\n",
    "hurdles": (
        "import os\ndef extract(path, out):\n    out.progress(out.first_part, 9)\n"
        "    for number in range(out.first_part + 1, 10):\n"
        "        while number == 3:\n            pass\n"
        "        if number == 5:\n            os.kill(os.getpid(), 11)\n"
        "        if number == 9:\n            max([])\n"
        "        out.paragraph(f'page {number}')\n        out.progress(number, 9)\n"
    ),
    "chasms": (
        "def extract(path, out):\n    out.paragraph(f'{out.first_part}')\n    out.progress(out.first_part, 99)\n    max([])\n"
    ),
}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A sandbox whose fork server finds more extractors: its code starts with one that adds a folder."""
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    folder = tmp_path / "more"
    folder.mkdir()
    for name, code in HOSTILE.items():
        (folder / f"{name}.py").write_text(f"SECRETS = {(str(secret), __file__)!r}\n{code}")
    start = (
        "import sys; sys.path.append({0!r}); import memdir.ingest.extractors as e; e.__path__.append({0!r}); "
        "from memdir.ingest.sandbox import fork_server as f; f.main()"
    )
    monkeypatch.setattr(parent, "FORK_SERVER", ("-c", start.format(str(folder))))
    monkeypatch.setenv("MEMDIR_API_KEY", "canary")
    limits = Limits(silent_s=4.0, total_s=30.0, memory_bytes=400 << 20)
    made = Sandbox({"office": limits, "pdf": limits})
    yield made
    made.close()


@pytest.mark.promise("extract.confined")
def test_a_child_is_confined(hostile: Sandbox) -> None:
    for module, said in (("spins", "longer than 4 s"), ("eats", "400 MiB"), ("dies", "died"), ("writes", "400 MiB")):
        with pytest.raises(ExtractionError) as caught:
            hostile.extract([b"x"], _only(module))
        assert said in caught.value.reason, module
    assert hostile.extract([b"x"], _only("calls")).text == "refused\n", "no socket of any kind"
    peeked = hostile.extract([b"x"], _only("peeks")).text.split("\n\n")
    if landlock_version() >= 1:
        assert [line.strip() for line in peeked] == ["refused", "refused", "refused", "x"], "no file of its user"
    assert "MEMDIR_API_KEY" not in hostile.extract([b"x"], _only("looks")).text


@pytest.mark.promise("extract.harmless")
def test_what_was_read_before_the_end_is_kept(hostile: Sandbox) -> None:
    ends = {"tires": "longer than 4 s", "falls": "died", "stumbles": "is damaged", "refuses": "page three is torn"}
    for module, said in ends.items():
        extraction = hostile.extract([b"x"], _only(module))
        assert extraction.text == "page one\n\npage two\n", module
        assert extraction.truncated
        assert extraction.facts["pages"] == 9
        assert said in str(extraction.facts["unread"])
        assert extraction.needs == ("time" if module == "tires" else "")


@pytest.mark.promise("extract.harmless")
def test_pages_behind_one_that_cannot_be_read_are_read(hostile: Sandbox) -> None:
    extraction = hostile.extract([b"x"], Format(kind="pdf", media_type="x/y", module="hurdles"))
    assert extraction.text.split("\n\n") == [*(f"page {number}" for number in (1, 2, 4, 6, 7)), "page 8\n"]
    assert extraction.facts["unread"] == (
        "page 3: a part of it takes longer than 4 s; page 5: the process that read it died: damaged, or made to do harm; "
        "what follows: it is damaged, or of a form that its library does not know"
    )
    assert extraction.needs == "time"
    chasms = hostile.extract([b"x"], Format(kind="pdf", media_type="x/y", module="chasms"))
    assert chasms.text.split() == ["0", "1", "2", "3"], "not one process for each of a thousand pages"


def test_a_server_that_ends_takes_the_child_along(hostile: Sandbox) -> None:
    class EndingError(Exception):
        pass

    asked = threading.Event()

    def checkpoint() -> None:
        if asked.is_set():
            raise EndingError
        asked.set()

    with pytest.raises(EndingError):
        hostile.extract([b"x"], _only("spins"), checkpoint=checkpoint)


def test_a_server_that_is_killed_leaves_no_document_in_the_temporary_folder(hostile: Sandbox, tmp_path: Path) -> None:
    """It cannot tidy up. The fork server, which sees it go, does."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "import sys\nfrom memdir.ingest.extractors.formats import Format\nfrom memdir.ingest.sandbox import Sandbox, parent\n"
        f"parent.FORK_SERVER = {parent.FORK_SERVER!r}\n"
        f"Sandbox().extract([b'private'], {_only('spins')!r}, checkpoint=lambda: print('.', flush=True))\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(temporary)}, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    with server, server.stdout as told:
        assert [told.readline() for _ in range(4)] == [".\n"] * 4, "it reads"
        assert [path.read_bytes() for path in temporary.glob("*/source")] == [b"private"]
        server.kill()
    eventually(lambda: not os.listdir(temporary), "the document is still there")


def test_a_file_beyond_the_limit_is_not_even_written() -> None:
    sandbox = Sandbox({"office": Limits(source_bytes=10)})
    with pytest.raises(ExtractionError, match="larger"):
        sandbox.extract([b"x" * 6, b"x" * 6], _only("rtf"))
    sandbox.close()


def test_nothing_is_left_in_the_temporary_folder(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    read(sandbox, documents.pdf(), "a.pdf")
    assert os.listdir(tmp_path) == []

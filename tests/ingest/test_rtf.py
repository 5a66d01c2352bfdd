"""Rich Text Format: what word processors put into it, and what no reader should see."""

from __future__ import annotations

import random

import pytest

from memdir.ingest.extractors import ocr
from memdir.ingest.sandbox import Sandbox
from memdir_bench.ingest import documents
from tests.ingest.compound import compound
from tests.ingest.reading import read
from tests.ingest.test_objects import attached

pytestmark = pytest.mark.promise("extract.kinds")
BEGIN = (
    r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 Gothic;}}"
    r"{\colortbl;\red0\green0\blue0;}{\stylesheet{\s1 heading 1;}}"
    r"{\info{\title Net plan}{\author Ana Ruiz}{\creatim\yr2026}{\keywords unseen}}{\*\generator Unseen 1.0;}"
)


def shown(sandbox: Sandbox, body: str) -> str:
    return read(sandbox, f"{BEGIN}{body}}}".encode("latin-1"), "a.rtf").text


def test_headings_lists_links_and_facts(sandbox: Sandbox) -> None:
    item = r"\pard{\listtext\'b7\tab}\ls1 %s\par"
    body = (
        r"\pard\s1\outlinelevel0 Nets\par\pard Mend {\b them} soon\line and well.\par"
        + item % "cod net"
        + item % "hake net"
        + r"\pard{\listtext 2.\tab}Sell.\par"
        + r'\pard See {\field{\*\fldinst{HYPERLINK "https://quay.example/a"}}{\fldrslt{\ul the quay}}}, '
        r"page {\field{\*\fldinst PAGE}{\fldrslt 7}} "
        r'of {\field{\*\fldinst HYPERLINK \\l "there"}{\fldrslt there}}.'
    )
    extraction = read(sandbox, f"{BEGIN}{body}}}".encode(), "a.rtf")
    assert (extraction.title, extraction.facts["author"]) == ("Net plan", "Ana Ruiz")
    assert extraction.text == (
        "# Nets\n\nMend them soon\nand well.\n\n- cod net\n- hake net\n\n2. Sell.\n\n"
        "See [the quay](https://quay.example/a), page 7 of there.\n"
    )


def test_tables(sandbox: Sandbox) -> None:
    row = r"\trowd\cellx900\cellx1800\pard\intbl %s\cell %s\cell\row"
    body = r"Before\par" + row % ("Net", "Price") + row % (r"Cod\par and hake", "12") + r"\pard After\par"
    assert shown(sandbox, body) == "Before\n\n| Net | Price |\n| --- | --- |\n| Cod and hake | 12 |\n\nAfter\n"


def test_notes_comments_boxes_margins(sandbox: Sandbox) -> None:
    box = r"{\shp{\*\shpinst\shpleft1{\sp{\sn shapeType}{\sv 202}}{\shptxt\pard boxed words\par}}{\shprslt{\do unseen}}}"
    body = (
        r"{\header\pard Harbour office\par}{\footerl\pard Harbour office\par}{\footer 7}{\footerf Harbour\cell office\cell\row}"
        r"One{\super\chftn{\footnote\pard{\super\chftn} of the old nets}}"
        r"{\*\atnid AR}{\*\atnauthor Ana}{\chatn{\*\annotation{\*\atndate 1}\pard is it not two?}} left."
        rf"{box}\par{{\v unseen}}{{\deleted unseen}}{{\*\unknown unseen}}{{\xe unseen}}Two.\par"
    )
    text = shown(sandbox, body)
    assert text == (
        "One (of the old nets) [comment of Ana: is it not two?] left.\n\nboxed words\n\nTwo.\n\n"
        "## Headers and footers\n\nHarbour office\n\nHarbour | office |\n"
    )


def test_letters_of_every_kind(sandbox: Sandbox) -> None:
    cyrillic = "".join(f"\\'{byte:02x}" for byte in "сеть".encode("cp1251"))
    gothic = "\\'96\\'d4\\'83A"  # the second byte of the last one is a letter
    body = (
        rf"{{\f1 {cyrillic}}} {{\f2 {gothic}}} {{\u233?t\u233\'e9}} {{\uc2\u8364 EUet}} {{\uc0\u-10179\u-8704}}"
        r" a\~b\_c\{d\} x\-y {\upr{unseen}{\*\ud{\u322 ?}}} na\'efve"
    )
    assert shown(sandbox, body) == "сеть 網ア été €et 😀 a\u00a0b-c{d} xy ł naïve\n"


def test_pictures_and_files(sandbox: Sandbox) -> None:
    picture = documents.png().hex()
    file = attached("log.txt", b"Fog until noon.")
    header = b"\x01\x05\0\0\x02\0\0\0" + b"\x08\0\0\0Package\0" + bytes(8)
    body = (
        rf"See.{{\*\shppict{{\pict{{\*\picprop{{\sp{{\sn a}}{{\sv b}}}}}}\pngblip\picw1 {picture}}}}}"
        rf"{{\nonshppict{{\pict {picture}}}}}"
        rf"{{\object\objemb{{\*\objclass Package}}{{\*\objdata {(header + file).hex()}}}{{\result{{\pict\wmetafile8 0102}}}}}}"
        rf"{{\object{{\*\objdata 01{compound({chr(1) + 'Ole10Native': attached('more.txt', b'Clear later.')}).hex()}}}}}"
        r"{\pict\wmetafile8\bin5 {{{{{} and what follows.\par"
    )
    text = shown(sandbox, body)
    assert text.count("## Picture:") == ocr.is_available()
    assert "## Attachment: log.txt\n\nFog until noon.\n" in text
    assert "## Attachment: more.txt\n\nClear later.\n" in text
    assert text.endswith("See. and what follows.\n")


def test_damaged_ones_are_read_as_far_as_they_go(sandbox: Sandbox) -> None:
    whole = documents.rtf()
    generator = random.Random(1)
    for _ in range(30):
        cut = whole[: generator.randrange(20, len(whole))]
        assert read(sandbox, cut + b"}" * generator.randrange(3) + b"{\\'", "a.rtf").engine == "memdir rtf"
    assert "tail" in read(sandbox, b"{\\rtf1 a}}}} tail \\", "a.rtf").text

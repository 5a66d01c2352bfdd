"""Forms of files that people have and programs seldom make."""

from __future__ import annotations

import codecs
import io
import plistlib
import struct
import zipfile
import zlib
from collections.abc import Mapping

import pytest

from memdir.ingest.extractors import old_word, outlook
from memdir.ingest.extractors.formats import family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Sandbox
from memdir_bench.ingest import documents
from memdir_bench.ingest.phrases import PHRASE

from .compound import compound
from .reading import read

RUBY = (
    "<w:p><w:r><w:t>In </w:t></w:r><w:r><w:ruby><w:rubyPr/><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt>"
    "<w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r><w:r><w:t> we met.</w:t></w:r></w:p>"
)
HALF_BOLD = "<w:p><w:r><w:t>F</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>ooba</w:t></w:r><w:r><w:t>r </w:t></w:r>"
BOLD = "<w:r><w:rPr><w:b/></w:rPr><w:t>Never</w:t></w:r><w:r><w:t> again.</w:t></w:r></w:p>"


def changed(data: bytes, member: str, before: bytes, after: bytes) -> bytes:
    """An archive with some bytes of a member replaced."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for info in old.infolist():
            content = old.read(info)
            if info.filename == member:
                assert before in content
                content = content.replace(before, after, 1)
            new.writestr(info.filename, content)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "kind",
    [
        "vnd.openxmlformats-officedocument.presentationml.slideshow",
        "vnd.openxmlformats-officedocument.presentationml.template",
        "vnd.ms-powerpoint.slideshow.macroEnabled",
        "vnd.ms-powerpoint.template.macroEnabled",
        "vnd.ms-powerpoint.presentation.macroEnabled",
    ],
)
def test_slides_that_are_shown_at_once_and_templates_are_slides(sandbox: Sandbox, kind: str) -> None:
    main = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
    data = changed(documents.pptx(), "[Content_Types].xml", main, f"application/{kind}.main+xml".encode())
    assert PHRASE in " ".join(read(sandbox, data, "a.ppsx").text.split())


def test_words_with_their_reading_and_words_that_are_half_bold_are_whole(sandbox: Sandbox) -> None:
    data = changed(documents.docx(), "word/document.xml", b"<w:body>", f"<w:body>{RUBY}{HALF_BOLD}{BOLD}".encode())
    text = read(sandbox, data, "a.docx").text
    assert "In 東京(とうきょう) we met." in text
    assert "Foobar **Never** again." in text
    code = 'In \x13EQ \\* jc2 \\* "Font:MS Mincho" \\* hps11 \\o\\ad(\\s\\up 10(とうきょう),東京)\x15 \x13PAGE\x14 7\x15.'
    assert old_word._readable(code).split() == ["In", "東京(とうきょう)", "7."]


def test_pages_that_word_takes_in_are_read(sandbox: Sandbox) -> None:
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/aFChunk"
    relation = f'<Relationship Id="rIdPage" Type="{kind}" Target="/word/page.htm"/></Relationships>'
    data = changed(documents.docx(), "word/_rels/document.xml.rels", b"</Relationships>", relation.encode())
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("word/page.htm", "<html><body><p>Words of the page</p></body></html>")
    assert "## Part: page.htm\n\nWords of the page\n" in read(sandbox, buffer.getvalue(), "a.docx").text


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("gb18030", "审计系统自动巡检需求文档说明书"),
        ("shift_jis", "契約書の写しをお送りします"),
        ("utf-8", "Größe der Straßenbrücken"),
    ],
)
def test_names_in_archives_without_the_mark_of_utf_8_are_read(sandbox: Sandbox, encoding: str, name: str) -> None:
    raw = name.encode(encoding)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a" * len(raw) + ".txt", "words of the file")
        archive.writestr("plain.txt", "others")
    data = buffer.getvalue().replace(b"a" * len(raw), raw)
    assert f"- {name}.txt (17 bytes)\n- plain.txt (6 bytes)\n" in read(sandbox, data, "a.zip").text


def test_a_member_that_cannot_be_unpacked_takes_no_other_along(sandbox: Sandbox) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("imploded.txt", "x" * 50)
        archive.writestr("damaged.txt", "words that change")
        archive.writestr("plain.txt", "others")
    data = bytearray(buffer.getvalue().replace(b"words that change", b"words that chance"))
    directory = data.index(b"PK\x01\x02")
    data[8:10] = data[directory + 10 : directory + 12] = b"\x06\x00"
    text = read(sandbox, bytes(data), "a.zip").text
    assert "- imploded.txt (50 bytes, cannot be unpacked)\n- damaged.txt (17 bytes, cannot be unpacked)\n" in text
    assert "## File: plain.txt\n\nothers\n" in text


def test_what_a_group_may_be_passed_over_for_stands_at_its_beginning(sandbox: Sandbox) -> None:
    data = rb"{\rtf1 {\loch\f2\i0\*\cs7\cf0 The quick brown fox}\par {" + b"\n" + rb"\*\unknown hidden}jumps\par}"
    assert read(sandbox, data, "a.rtf").text == "The quick brown fox\n\njumps\n"


def test_the_page_of_a_web_archive_is_read(sandbox: Sandbox) -> None:
    page = "<html><head><title>Piers</title></head><body><p>Größe der Brücken</p></body></html>"
    for resource in (
        {"WebResourceData": page.encode("utf-16-le"), "WebResourceTextEncodingName": "UTF-16LE"},
        {"WebResourceData": page.encode(), "WebResourceURL": "https://example.org/"},
    ):
        data = plistlib.dumps({"WebMainResource": resource}, fmt=plistlib.FMT_BINARY)
        found = read(sandbox, data, "Piers.webarchive")
        assert (found.kind, found.title, found.text) == ("web", "Piers", "Größe der Brücken\n")
    assert family_of(data, "settings.plist") is None


def test_sound_and_film_of_windows_and_apple_are_told_by_their_first_bytes() -> None:
    asf = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11" + bytes(20)
    told: Mapping[str, bytes] = {
        "a.wma": asf,
        "b.wmv": asf,
        "c.aiff": b"FORM\0\0\0\0AIFF",
        "d.au": b".snd",
        "e.caf": b"caff",
    }
    kinds = [found.kind if (found := family_of(data, name)) else None for name, data in told.items()]
    assert kinds == ["audio", "video", "audio", "audio", "audio"]
    assert family_of(b"FORM of address, and a text", "a.txt") is None


def test_code_pages_of_old_messages_have_the_names_that_outlook_gives_them() -> None:
    assert outlook.extract is not None
    assert "格式測試".encode("cp950").decode("windows-950") == "格式測試"
    with pytest.raises(LookupError):
        codecs.lookup("windows-none")


def test_a_file_pinned_to_a_page_is_read_like_an_attachment(sandbox: Sandbox) -> None:
    content = zlib.compress(b"words of the pinned file")
    found = read(sandbox, pinned(content), "a.pdf")
    assert "## Attachment: notes.txt\n\nwords of the pinned file" in found.text
    assert found.text.count("pinned file") == 1


def pinned(content: bytes) -> bytes:
    """A page with a file twice: on the page, and among those of the document."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles<</Names[(notes.txt)5 0 R]>>>>>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Annots[4 0 R]>>",
        b"<</Type/Annot/Subtype/FileAttachment/Rect[10 10 30 30]/FS 5 0 R>>",
        b"<</Type/Filespec/F(notes.txt)/UF(notes.txt)/EF<</F 6 0 R>>>>",
        b"<</Type/EmbeddedFile/Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(content), content),
    ]
    data = b"%PDF-1.7\n"
    places = []
    for number, one in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, one)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(data))
    return data + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def test_headers_and_footers_of_sheets_are_read(sandbox: Sandbox) -> None:
    margins = (
        b'<headerFooter><oddHeader xml:space="preserve">&amp;L&amp;"Arial,Bold"&amp;12Fleet and piers&amp;RPage &amp;P'
        b"</oddHeader><oddFooter>&amp;CFor &lt;Ana&gt; only</oddFooter></headerFooter></worksheet>"
    )
    data = changed(documents.xlsx(), "xl/worksheets/sheet1.xml", b"</worksheet>", margins)
    assert "- Header and footer: Fleet and piers, Page, For <Ana> only\n" in read(sandbox, data, "a.xlsx").text


def hangul(*paragraphs: str, flags: int = 1, preview: str = "") -> bytes:
    records = b""
    for text in paragraphs:
        data = text.encode("utf-16-le")
        is_long = len(data) > 0xFFE
        records += struct.pack("<I", 67 | (0xFFF if is_long else len(data)) << 20)
        records += (struct.pack("<I", len(data)) if is_long else b"") + data
        records += struct.pack("<I", 68 | 1 << 10 | 4 << 20) + b"form"
    packer = zlib.compressobj(wbits=-15)
    streams = {
        "FileHeader": b"HWP Document File".ljust(36, b"\0") + struct.pack("<I", flags) + bytes(216),
        "BodyText/Section0": packer.compress(records) + packer.flush() if flags & 1 else records,
        "PrvText": preview.encode("utf-16-le"),
    }
    return compound({name: data for name, data in streams.items() if data})


def test_documents_of_hangul_are_read_paragraph_by_paragraph(sandbox: Sandbox) -> None:
    control, tab = (sign + "특특특특특특" + sign for sign in "\x0b\t")
    for flags in (0, 1):
        data = hangul("한글 문서", f"배{control}와{tab}항구\x0d", "가" * 3_000, flags=flags)
        assert read(sandbox, data, "a.hwp").text == f"한글 문서\n\n배와\t항구\n\n{'가' * 3_000}\n"
    with pytest.raises(ExtractionError, match="password"):
        read(sandbox, hangul("x", flags=3), "a.hwp")
    found = read(sandbox, hangul("x", flags=5, preview="처음"), "a.hwp")
    assert found.text == "처음\n"
    assert "beginning" in str(found.facts["unread"])

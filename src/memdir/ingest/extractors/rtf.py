"""Rich Text Format, by Microsoft's specification 1.9.1: headings, lists, tables, links, notes, comments, text boxes, headers,
footers, pictures and attached files.

Libraries that strip RTF of its controls lose notes, boxes and headers with them, and all that follows some kinds of pictures.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import embedded, ole_objects, packages
from memdir.ingest.extractors.output import Output, comment_text

_TOKEN: Final = re.compile(
    r"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\(.)|([{}])|([^\\{}\r\n]+)|[\r\n]+|.", re.DOTALL
)
"""A control word and its number, a byte, a control symbol, a brace, text. Line ends mean nothing."""
_TOLD_EVERY: Final = 100_000
_CHARACTERS: Final = {
    "line": "\n", "tab": "\t", "emdash": "—", "endash": "–", "emspace": " ", "enspace": " ", "qmspace": " ", "bullet": "•",
    "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "nestcell": " | ", "nestrow": "\n",
}  # fmt: skip
_SYMBOLS: Final = {"~": "\u00a0", "_": "-", "{": "{", "}": "}", "\\": "\\"}
_TABLES: Final = {"cell": " | ", "row": "\n"}
_PARAGRAPHS: Final = frozenset({"par", "sect", "page", "column"})
_UNREAD: Final = frozenset({
    "colortbl", "stylesheet", "filetbl", "revtbl", "listtable", "keywords", "comment", "operator", "category", "manager",
    "company", "doccomm", "hlinkbase", "creatim", "revtim", "printim", "buptim", "private", "template", "xe", "tc", "rxe",
    "pntxta", "pntxtb", "nonshppict", "shprslt", "nonesttables", "mmathPict", "sp", "bkmkstart", "bkmkend", "upr", "ftnsep",
    "ftnsepc", "ftncn", "aftnsep", "aftnsepc", "aftncn",
})  # fmt: skip
"""Groups with text that no reader sees, or that stands elsewhere once more."""
_OPENED: Final = frozenset({"shpinst", "do", "shppict", "ud", "moMath", "background"})
"""Groups that a reader may pass over, and that hold groups with text."""
_HEADERS_AND_FOOTERS: Final = frozenset({"header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"})
_CODE_PAGES: Final = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_CHARSETS: Final = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250",
    254: "cp437", 255: "cp850",
}  # fmt: skip
_MAC_CODE_PAGE: Final = 10000
_LINK: Final = re.compile(r'HYPERLINK\s+"?([^"\s\\]+)', re.IGNORECASE)
"""Not one to a place in the same document."""
_PICTURES: Final = frozenset({"pngblip", "jpegblip"})
_COMPOUND: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_BULLETS: Final = frozenset("•·-–*o§▪◦■□➢✓")


@dataclass(slots=True)
class _Group:
    """What holds until the closing brace."""

    encoding: str
    skipped: bool = False
    hidden: bool = False
    unicode_skip: int = 1
    """Characters behind a `\\u` for readers that do not know it."""
    in_fonts: bool = False
    is_picture: bool = False
    in_table: bool = False
    outline: int = -1
    ends: Callable[[str], None] | None = None
    """What is done with the text of the group at its end."""


def extract(path: Path, out: Output) -> None:
    """Whatever stands in braces that do not match is read as far as it goes."""
    out.engine = "memdir rtf"
    add(path.read_bytes(), out)


def add(data: bytes, out: Output) -> None:
    """The document `data`."""
    _Reader(data.decode("latin-1"), out).run()


class _Reader:
    def __init__(self, text: str, out: Output) -> None:
        self._text = text
        self._out = out
        self._group = _Group(encoding="cp1252")
        self._stack: list[_Group] = []
        self._buffers: list[list[str]] = [[]]
        self._decoder = codecs.getincrementaldecoder("cp1252")("replace")
        self._fonts: dict[int, str] = {}
        self._font = 0
        """That whose entry in the table of fonts is read."""
        self._code_page = "cp1252"
        self._starred = False
        self._begins = False
        """The last token opened a group."""
        self._to_skip = 0
        self._half = 0
        """The first half of a character that takes two numbers."""
        self._rows: list[list[str]] = []
        self._cells: list[str] = []
        self._marker: str | None = None
        self._in_list = False
        self._address = ""
        """Of the link whose words come next."""
        self._commenter = ""
        self._boxes: list[str] = []
        self._headers_and_footers: list[str] = []
        self._at_end: dict[str, Callable[[str], None]] = {
            **dict.fromkeys(_HEADERS_AND_FOOTERS, self._headers_and_footers.append),
            "title": self._titled,
            "author": lambda said: out.fact("author", said),
            "subject": lambda said: out.fact("subject", said),
            "footnote": lambda said: self._write(f" ({said.strip()})"),
            "atnauthor": self._commented_by,
            "annotation": self._commented,
            "listtext": self._listed,
            "pntext": self._listed,
            "fldinst": self._linked,
            "shptxt": self._boxes.append,
            "dptxbxtext": self._boxes.append,
            "objdata": self._attached,
        }
        """What is done with the text of a group that begins with the word."""

    def run(self) -> None:
        at = count = 0
        while at < len(self._text):
            token = _TOKEN.match(self._text, at)
            assert token is not None
            at = token.end()
            count += 1
            if count % _TOLD_EVERY == 0:
                self._out.progress(at, len(self._text))
            word, number, byte, symbol, brace, shown = token.groups()
            if (word or symbol or brace) and self._decoder.getstate()[0]:
                self._write(self._decoder.decode(b"", final=True))
            if word == "bin":
                at += max(int(number or 0), 0)
            elif word:
                self._word(word, None if number is None else int(number))
            elif byte:
                self._byte(bytes.fromhex(byte))
            elif symbol:
                self._symbol(symbol)
            elif brace:
                self._brace(brace)
            elif shown:
                self._shown(shown)
            if token[0].strip("\r\n"):
                self._begins = brace == "{"
        while self._stack:
            self._brace("}")
        self._end_paragraph()
        self._end_table()
        packages.add_headers_and_footers(self._headers_and_footers, self._out)

    def _brace(self, brace: str) -> None:
        self._to_skip, self._starred = 0, False
        if brace == "{":
            self._stack.append(self._group)
            self._group = replace(self._group, ends=None)
            return
        if self._group.ends is not None:
            ends, self._group.ends = self._group.ends, None
            text = "".join(self._buffers.pop())
            if self._stack:
                self._group = self._stack[-1]
            ends(text)
        if self._stack:
            self._group = self._stack.pop()
            self._use(self._group.encoding)

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":  # only a group as a whole may be passed over
            self._starred = self._begins
        elif symbol in "\r\n":
            self._word("par", None)
        elif not self._skip(1):
            self._write(_SYMBOLS.get(symbol, ""))

    def _shown(self, text: str) -> None:
        if self._decoder.getstate()[0]:  # the second byte of a character may be a letter
            self._write(self._decoder.decode(text[:1].encode("latin-1")))
            text = text[1:]
        skipped = self._skip(len(text))
        self._write(text[skipped:] if text.isascii() else self._decoder.decode(text[skipped:].encode("latin-1")))

    def _byte(self, byte: bytes) -> None:
        if not self._skip(1):
            self._write(self._decoder.decode(byte))

    def _skip(self, most: int) -> int:
        count = min(self._to_skip, most)
        self._to_skip -= count
        return count

    def _write(self, text: str) -> None:
        if text and not self._group.skipped and not self._group.hidden:
            self._buffers[-1].append(text)

    def _use(self, encoding: str) -> None:
        self._group.encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")

    def _collect(self, ends: Callable[[str], None]) -> None:
        """From here on the text of the group is for `ends`."""
        self._group = replace(self._group, skipped=False, hidden=False, in_table=False, outline=-1, ends=ends)
        self._buffers.append([])

    def _word(self, word: str, number: int | None) -> None:
        starred, self._starred = self._starred, False
        self._to_skip = 0
        group = self._group
        ends = self._at_end.get(word)
        if ends is not None and group.ends is None and (not group.skipped or word == "shptxt"):
            self._collect(ends)
        elif word in _UNREAD or (starred and word not in _OPENED):
            group.skipped = True
        elif word == "ud":
            group.skipped = False
        elif word == "fonttbl":
            group.skipped = group.in_fonts = True
        elif group.in_fonts and word in ("f", "fcharset", "cpg"):
            self._in_font_table(word, number or 0)
        elif word == "pict" and not group.skipped:
            group.skipped = group.is_picture = True
        elif word in _PICTURES and group.is_picture:
            self._collect(self._pictured)
        elif word in _CODE_PAGES:
            self._default(_CODE_PAGES[word])
        elif word == "ansicpg" and number:
            self._default("mac_roman" if number == _MAC_CODE_PAGE else f"cp{number}")
        elif not group.skipped:
            self._control(word, number)

    def _control(self, word: str, number: int | None) -> None:
        group = self._group
        if word in _CHARACTERS:
            self._write(_CHARACTERS[word])
        elif word == "u" and number is not None:
            self._unicode(number % 65536)
        elif word == "uc":
            group.unicode_skip = max(number or 0, 0)
        elif word == "f" and number is not None:
            self._use(self._fonts.get(number, self._code_page))
        elif word in _PARAGRAPHS:
            self._end_paragraph()
        elif word in _TABLES and len(self._buffers) > 1:  # in a note, a box or a margin
            self._write(_TABLES[word])
        elif word == "cell":
            self._cells.append(self._taken())
        elif word == "row":
            self._rows.append(self._cells)
            self._cells = []
        elif word == "pard":
            group.in_table, group.outline = False, -1
        elif word == "intbl":
            group.in_table = True
        elif word == "outlinelevel":
            group.outline = number or 0
        elif word in ("v", "deleted"):
            group.hidden = number != 0
        elif word == "plain":
            group.hidden = False
        elif word == "fldrslt" and self._address:
            self._collect(self._link(self._address))
            self._address = ""

    def _unicode(self, number: int) -> None:
        self._to_skip = self._group.unicode_skip
        if 0xD800 <= number < 0xDC00:
            self._half = number
        elif 0xDC00 <= number < 0xE000:
            self._write(chr(0x10000 + ((self._half & 0x3FF) << 10) + (number & 0x3FF)) if self._half else "\ufffd")
            self._half = 0
        else:
            self._write(chr(number))

    def _default(self, encoding: str) -> None:
        self._code_page = encoding if _is_known(encoding) else "cp1252"
        self._use(self._code_page)

    def _in_font_table(self, word: str, number: int) -> None:
        if word == "f":
            self._font = number
            return
        named = _CHARSETS.get(number, "") if word == "fcharset" else f"cp{number}"
        if _is_known(named):
            self._fonts[self._font] = named

    def _taken(self) -> str:
        text = "".join(self._buffers[-1]).strip()
        self._buffers[-1].clear()
        return text

    def _end_paragraph(self) -> None:
        if len(self._buffers) > 1 or self._group.in_table:
            self._write("\n")
            return
        text, marker, self._marker = self._taken(), self._marker, None
        if not text:
            return
        self._end_table()
        is_item = marker is not None and (not marker or marker in _BULLETS)
        if self._in_list and not is_item:
            self._out.end_list()
        self._in_list = is_item
        if is_item:
            self._out.item(text)
        elif self._group.outline in range(9):
            self._out.heading(self._group.outline + 1, f"{marker or ''} {text}")
        else:
            self._out.paragraph(f"{marker} {text}" if marker else text)
        for box in self._boxes:
            self._out.paragraph(box)
        self._boxes.clear()

    def _end_table(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
        self._out.table(self._rows)
        self._rows, self._cells = [], []

    def _titled(self, text: str) -> None:
        self._out.title = text.strip()

    def _commented_by(self, text: str) -> None:
        self._commenter = text.strip()

    def _commented(self, text: str) -> None:
        self._write(comment_text(" ".join(text.split()), self._commenter))
        self._commenter = ""

    def _listed(self, text: str) -> None:
        self._marker = text.strip()

    def _linked(self, text: str) -> None:
        found = _LINK.search(text)
        self._address = found[1] if found else ""

    def _link(self, address: str) -> Callable[[str], None]:
        def written(text: str) -> None:
            shown = text.strip()
            self._write(f"[{shown}]({address})" if shown and shown != address else text)

        return written

    def _pictured(self, text: str) -> None:
        embedded.add_picture(_from_hex(text), "picture", self._out)

    def _attached(self, text: str) -> None:
        """A compound file, or an attached one ([MS-OLEDS] 2.2.5): a version, a kind, three names, its size, itself."""
        data = _from_hex(text)
        begin = data.find(_COMPOUND)
        if begin >= 0:
            ole_objects.add(data[begin:], "object", self._out)
            return
        at = 8
        for _ in range(3):
            at += 4 + int.from_bytes(data[at : at + 4], "little")
        ole_objects.add_attached(data[at:], self._out)


def _from_hex(text: str) -> bytes:
    """Nothing of what is larger than files in files may be."""
    digits = re.sub(r"[^0-9a-fA-F]", "", text)
    return bytes.fromhex(digits[: len(digits) // 2 * 2]) if len(digits) <= 2 * embedded.PART_MAX_BYTES else b""


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True

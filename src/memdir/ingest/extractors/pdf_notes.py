"""What people put on a PDF page: values in the fields of a form, notes, the words that they marked, and where links lead. The
text of a page has none of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, Array, byref, c_char, cast, create_string_buffer
from functools import cache
from typing import Any, Final

from pypdfium2 import raw

from memdir.ingest.extractors.pdf_grids import Word, columns_of, words_of

_ANNOTATIONS_MAX: Final = 2_000
"""Of a page."""
_TEXT_MAX_BYTES: Final = 64 << 10
_LABEL_MAX_CHARS: Final = 80
_ABOVE: Final = 2.0
"""Heights of a letter, how far above its field a label may stand."""
_NOTES: Final = frozenset({raw.FPDF_ANNOT_TEXT, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP, raw.FPDF_ANNOT_CARET})
_MARKS: Final = frozenset(
    {raw.FPDF_ANNOT_HIGHLIGHT, raw.FPDF_ANNOT_UNDERLINE, raw.FPDF_ANNOT_SQUIGGLY, raw.FPDF_ANNOT_STRIKEOUT}
)
_LINKS: Final = ("http://", "https://", "mailto:", "ftp://")
_MARKED: Final = {raw.FPDF_ANNOT_STRIKEOUT: "Struck out"}
_CHOICES: Final = (raw.FPDF_FORMFIELD_COMBOBOX, raw.FPDF_FORMFIELD_LISTBOX)
_SWITCHES: Final = (raw.FPDF_FORMFIELD_CHECKBOX, raw.FPDF_FORMFIELD_RADIOBUTTON)


def lines(page: Any, content: Any, text: str, linked: set[str]) -> list[str]:
    """Of a pypdfium2 page, its text page and its text: `Name of the ship: Grey Heron`, `Note of Ana on “the words”: why?`. Of
    links those that lead elsewhere than `linked`, to which they are added."""
    found: list[str] = []
    words = cache(lambda: words_of(content, text))
    for annotation in _annotations(page):
        found += _line(page, content, words, annotation)
        found += _link(page, content, text, annotation, linked)
    return [*dict.fromkeys(found)]


def files(page: Any) -> Iterator[Any]:
    """The handles of the files that are pinned to a pypdfium2 page."""
    for annotation in _annotations(page):
        pinned = raw.FPDFAnnot_GetSubtype(annotation) == raw.FPDF_ANNOT_FILEATTACHMENT
        handle = raw.FPDFAnnot_GetFileAttachment(annotation) if pinned else None
        if handle:
            yield handle


def _annotations(page: Any) -> Iterator[Any]:
    """Each is closed when the next one is asked for."""
    for number in range(min(raw.FPDFPage_GetAnnotCount(page), _ANNOTATIONS_MAX)):
        annotation = raw.FPDFPage_GetAnnot(page, number)
        if annotation:
            try:
                yield annotation
            finally:
                raw.FPDFPage_CloseAnnot(annotation)


def _line(page: Any, content: Any, words: Callable[[], Sequence[Word]], annotation: Any) -> Iterator[str]:
    kind = raw.FPDFAnnot_GetSubtype(annotation)
    if kind == raw.FPDF_ANNOT_WIDGET and page.formenv is not None:
        field = raw.FPDFAnnot_GetFormFieldType(page.formenv, annotation)
        value = _value(page.formenv, annotation, field)
        if value:
            label = _name(page.formenv, annotation) or _beside(words(), _rectangle(annotation), right=field in _SWITCHES)
            yield f"{label or _asked(raw.FPDFAnnot_GetFormFieldName, page.formenv, annotation) or 'Field'}: {value}"
    elif kind in _NOTES or kind in _MARKS:
        said, author = _entry(annotation, b"Contents"), _entry(annotation, b"T")
        quoted = " ".join(word for box in _marked(annotation) for word in content.get_text_bounded(*box).split())
        by = f" of {author}" if author else ""
        if said:
            yield f"Note{by} on “{quoted}”: {said}" if quoted else f"Note{by}: {said}"
        elif quoted:
            yield f"{_MARKED.get(kind, 'Marked')}: “{quoted}”"


def _link(page: Any, content: Any, text: str, annotation: Any, linked: set[str]) -> Iterator[str]:
    """An address that the words do not say themselves."""
    if raw.FPDFAnnot_GetSubtype(annotation) != raw.FPDF_ANNOT_LINK:
        return
    action = raw.FPDFLink_GetAction(raw.FPDFAnnot_GetLink(annotation))
    if raw.FPDFAction_GetType(action) != raw.PDFACTION_URI:
        return
    length = min(raw.FPDFAction_GetURIPath(page.pdf, action, None, 0), _TEXT_MAX_BYTES)
    buffer = create_string_buffer(max(length, 1))
    raw.FPDFAction_GetURIPath(page.pdf, action, buffer, length)
    address = buffer.value.decode("utf-8", "replace").strip()
    words = content.get_text_bounded(*_rectangle(annotation)).split()
    bare = address.rpartition("://")[2].removeprefix("mailto:").rstrip("/")
    if address.startswith(_LINKS) and address not in linked and bare not in text and "".join(words) not in address:
        linked.add(address)
        yield f"Link “{' '.join(words)}”: {address}"


def _value(form: Any, annotation: Any, kind: int) -> str:
    """Empty for a field that nobody filled in."""
    if kind in _SWITCHES:
        if not raw.FPDFAnnot_IsChecked(form, annotation):
            return ""
        chosen = _asked(raw.FPDFAnnot_GetFormFieldExportValue, form, annotation)
        return "yes" if kind == raw.FPDF_FORMFIELD_CHECKBOX or chosen in ("", "On", "Yes") else chosen
    if kind in _CHOICES:
        count = min(raw.FPDFAnnot_GetOptionCount(form, annotation), _ANNOTATIONS_MAX)
        chosen_ones = [
            _asked(raw.FPDFAnnot_GetOptionLabel, form, annotation, number)
            for number in range(max(count, 0))
            if raw.FPDFAnnot_IsOptionSelected(form, annotation, number)
        ]
        if any(chosen_ones):
            return ", ".join(filter(None, chosen_ones))
    if kind in (*_CHOICES, raw.FPDF_FORMFIELD_TEXTFIELD):
        return _asked(raw.FPDFAnnot_GetFormFieldValue, form, annotation)
    return ""


def _name(form: Any, annotation: Any) -> str:
    """What a viewer shows when the pointer rests on the field."""
    return _asked(raw.FPDFAnnot_GetFormFieldAlternateName, form, annotation)[:_LABEL_MAX_CHARS]


def _beside(words: Sequence[Word], field: tuple[float, float, float, float], *, right: bool) -> str:
    """The words next to a field on its line: left of it, of a box to tick right of it, else those above."""
    left, bottom, end, top = field
    height = max((word.top - word.bottom for word in words), default=0.0)
    same = [word for word in words if bottom <= word.y <= top]
    before = _run([word for word in same if word.right <= left + height / 2], height)
    after = _run([word for word in same if word.left >= end - height / 2], height)
    over = [word for word in words if top < word.y <= top + _ABOVE * height and word.right > left and word.left < end]
    found = [after[:1], before[-1:]] if right else [before[-1:], _run(over, height)[:1], after[:1]]
    return next((one[0] for one in found if one), "")[:_LABEL_MAX_CHARS]


def _run(words: Sequence[Word], height: float) -> list[str]:
    """Words of a line, parted where there is more room than between words."""
    spans = columns_of([(word.left, word.right) for word in words], height)
    return [
        " ".join(word.text for word in sorted(words, key=lambda word: word.left) if left <= word.left <= right).rstrip(":")
        for left, right in spans
    ]


def _marked(annotation: Any) -> Iterator[tuple[float, float, float, float]]:
    """Left, bottom, right and top of each line of the words that a mark is on."""
    points = raw.FS_QUADPOINTSF()
    for number in range(min(raw.FPDFAnnot_CountAttachmentPoints(annotation), _ANNOTATIONS_MAX)):
        if raw.FPDFAnnot_GetAttachmentPoints(annotation, number, byref(points)):
            across = points.x1, points.x2, points.x3, points.x4
            up = points.y1, points.y2, points.y3, points.y4
            yield min(across), min(up), max(across), max(up)


def _rectangle(annotation: Any) -> tuple[float, float, float, float]:
    found = raw.FS_RECTF()
    raw.FPDFAnnot_GetRect(annotation, byref(found))
    return found.left, found.bottom, found.right, found.top


def _entry(annotation: Any, key: bytes) -> str:
    return _text(lambda buffer, length: raw.FPDFAnnot_GetStringValue(annotation, key, buffer, length))


def _asked(ask: Callable[..., int], *arguments: Any) -> str:
    return _text(lambda buffer, length: ask(*arguments, buffer, length))


def _text(ask: Callable[[Any, int], int]) -> str:
    """A text that PDFium writes into a buffer: UTF-16, with its end."""
    length = ask(None, 0)
    if not 2 < length <= _TEXT_MAX_BYTES:
        return ""
    buffer: Array[c_char] = create_string_buffer(length)
    ask(cast(buffer, POINTER(raw.FPDF_WCHAR)), length)
    return " ".join(buffer.raw[: length - 2].decode("utf-16-le", "replace").split())

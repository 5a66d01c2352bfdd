"""The step before indexing for files that are no text: read in a process apart, once for the same bytes, and kept."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from memdir.core.errors import FetchError, NotFoundError, UnreachableError
from memdir.core.siblings import ERROR, first_lines
from memdir.ingest.extractors import VERSION, ocr, speech
from memdir.ingest.extractors.formats import HEAD_BYTES, HTML, Format, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.sandbox import Extraction, Sandbox
from memdir.ingest.text import DecodedText, decode
from memdir.server.indexing.leases import Lease, PermanentError
from memdir.store.contents.extractions import Extracted
from memdir.store.errors import SupersededError
from memdir.store.store import Store
from memdir.store.text.languages import of_passage
from memdir.store.types import Document

log = logging.getLogger(__name__)

ENV_FETCH: Final = "MEMDIR_FETCH_URLS"
"""`on`: of a document that is an address the page is fetched and read. `private`: also from this machine and network. Else the
address is kept as it is."""
_TOLD_EVERY_S: Final = 2.0
_HEADING: Final = re.compile(r"#[ \t]+(\S.*)")
_FRONT_END: Final = "\n---\n\n"
_REASON_MAX_CHARS: Final = 1_000
_LANGUAGE_CHARS: Final = 4_000
_CODES: Final = {
    "arabic": "ar", "catalan": "ca", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "finnish": "fi",
    "french": "fr", "german": "de", "greek": "el", "hindi": "hi", "hungarian": "hu", "indonesian": "id", "italian": "it",
    "norwegian": "no", "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "serbian": "sr",
    "spanish": "es", "swedish": "sv", "turkish": "tr", "ukrainian": "uk",
}  # fmt: skip


def address_of(document: Document) -> str | None:
    """The address whose page a document stands for; None for other documents, and where nothing is fetched."""
    return document.url if os.environ.get(ENV_FETCH) in ("on", "private") else None


def format_of(document: Document, head: bytes) -> Format | None:
    """What the document must be read as in a process apart; None for text, and for what nobody can read."""
    if address_of(document) is not None:
        return HTML
    name = (document.path or document.custom_id or "").rpartition("/")[2]
    return family_of(head[:HEAD_BYTES], name)


def is_current(known: Extracted | None) -> bool:
    """Whether what is kept is as good as what could be read now."""
    if known is None or known.version != VERSION:
        return False
    return not (known.needs == "ocr" and ocr.is_available()) and not (known.needs == "speech" and speech.is_available())


def read_text(text: str) -> str:
    """What was read, without the front matter."""
    return text[front_chars(text) :]


def front_chars(text: str) -> int:
    """How long the front matter of a text beside a file is."""
    return text.find(_FRONT_END) + len(_FRONT_END)


def text_bytes(store: Store, document: Document) -> bytes:
    """What the lines and bytes of the document's passages are of: the text beside it (empty when it could not be read), else
    its own bytes. The text's first lines name no file here, so that the bytes of a passage stay the same when it is renamed.
    NotFoundError when the content is gone."""
    if document.transcription is None:
        return store.blobs.content(document.content_hash)
    return _text_bytes(store, document.content_hash) or b""


def text_of(store: Store, content_hash: str) -> DecodedText | None:
    """The text beside files with these contents; None when they could not be read."""
    data = _text_bytes(store, content_hash)
    return None if data is None else decode(data)


def _text_bytes(store: Store, content_hash: str) -> bytes | None:
    body = store.extractions.text(content_hash)
    return None if body is None else (first_lines("") + body).encode()


def error_text(known: Extracted) -> str:
    """What stands in the error beside a file, without its first lines."""
    return (
        f"kind: {known.kind}\n---\n\n# This file could not be read\n\n{known.error}\n\nThe file itself is kept byte for byte.\n"
    )


def transcription_of(known: Extracted) -> str:
    """The kind in the sibling's name."""
    return ERROR if known.error is not None else known.kind


def extract(store: Store, sandbox: Sandbox, lease: Lease) -> None:
    """Read one document, keep its text or why there is none, and ask for it to be indexed."""
    document = store.documents.get(lease.job.document_id)
    if document is None or document.kind != "file":
        store.jobs.finish([lease.job])
        return
    with sandbox.alone(document.content_hash):
        known = store.extractions.known([document.content_hash]).get(document.content_hash)
        if not is_current(known):
            _read(store, sandbox, document, lease)
    store.progress.hand_on([lease.job], "index")


def _read(store: Store, sandbox: Sandbox, document: Document, lease: Lease) -> None:
    try:
        head = next(iter(store.blobs.pieces(document.content_hash)), b"")
    except NotFoundError as error:
        raise SupersededError from error
    found = format_of(document, head)
    if found is None:
        return
    pieces: Iterable[bytes] = store.blobs.pieces(document.content_hash)
    address, page = address_of(document), b""
    if address is not None:
        address, found, page = _fetched(address)
        pieces = (page,)
    try:
        told_s = time.monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal told_s
            if time.monotonic() - told_s >= _TOLD_EVERY_S and done:
                told_s = time.monotonic()
                store.progress.reading(lease.job, f"reading: {done} of {total}" if total else f"reading: {done}")

        result = (
            _plain(address, page)
            if found is None
            else sandbox.extract(pieces, found, progress=progress, checkpoint=lease.check_refused)
        )
    except NotFoundError as error:
        raise SupersededError from error
    except ExtractionError as error:
        sentences = [part[:1].upper() + part[1:] for part in (error.reason, error.hint) if part]
        reason = ". ".join(sentences)[:_REASON_MAX_CHARS]
        extracted = Extracted(
            content_hash=document.content_hash, version=VERSION, kind=error.kind or (found or HTML).kind,
            media_type=(found or HTML).media_type, title="", size_bytes=0, error=reason, needs=error.needs,
        )  # fmt: skip
        log.info("document %s cannot be read: %s", document.id, reason)
        store.extractions.put(extracted, None)
        return
    if address is not None:
        result = replace(result, facts={"address": address, **result.facts})
    body = _body(document, result)
    extracted = Extracted(
        content_hash=document.content_hash, version=VERSION, kind=result.kind, media_type=result.media_type,
        title=result.title, size_bytes=len(body.encode()), needs=result.needs,
    )  # fmt: skip
    store.extractions.put(extracted, body)


def _fetched(address: str) -> tuple[str, Format | None, bytes]:
    """Where the page of an address is in the end, what it must be read as (None: as text) and its bytes. UnreachableError when
    another try may help, PermanentError when none will."""
    from memdir.core.web import Http

    http = Http(private_allowed=os.environ.get(ENV_FETCH) == "private")
    try:
        final, media_type, data = http.get(address)
    except UnreachableError:
        raise
    except FetchError as error:
        raise PermanentError(error.message) from error
    finally:
        http.close()
    name = unquote(urlsplit(final).path).rpartition("/")[2]
    found = family_of(data[:HEAD_BYTES], name)
    if found is None and media_type.partition(";")[0].strip() in ("text/html", "application/xhtml+xml"):
        found = HTML
    return final, found, data


def _plain(address: str | None, page: bytes) -> Extraction:
    text = decode(page)
    if text is None:
        raise ExtractionError(f"{address} is no text, and nothing of a kind that is read")
    heading = _HEADING.match(text.text)
    return Extraction(
        kind=HTML.kind, media_type="text/plain", engine="", title="" if heading is None else heading[1].strip(),
        text=text.text, facts={}, truncated=text.truncated, needs="", peak_bytes=0,
    )  # fmt: skip


def _body(document: Document, result: Extraction) -> str:
    """The text beside a file from its second field on: front matter, then what was read."""
    language = _language(result.text)
    fields: dict[str, str | int] = {
        "sha256": document.content_hash,
        "kind": result.kind,
        "media_type": result.media_type,
        "engine": result.engine,
        **({"title": result.title} if result.title else {}),
        **({"language": language} if language and "language" not in result.facts else {}),
        **result.facts,
        **({"truncated": "yes: the end is left out"} if result.truncated else {}),
    }
    return f"{_front_matter(fields)}---\n\n{result.text or '(no text in it)' + chr(10)}"


def _language(text: str) -> str | None:
    """The language that the beginning of a text is in, by its ISO 639-1 code; None when that is not clear."""
    beginning = text[:_LANGUAGE_CHARS]
    found = of_passage(beginning, beginning.split())
    return _CODES.get(found[0]) if len(found) == 1 and len(beginning) >= _LANGUAGE_CHARS // 10 else None


def _front_matter(fields: Mapping[str, str | int]) -> str:
    lines = []
    for name, value in fields.items():
        if isinstance(value, int):
            lines.append(f"{name}: {value}\n")
        else:
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{name}: "{quoted}"\n')
    return "".join(lines)

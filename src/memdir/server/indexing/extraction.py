"""The step before indexing for files that are no text: read in a process apart, once for the same bytes, and kept."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from memdir.core.errors import FetchError, NotFoundError, UnreachableError
from memdir.core.siblings import ERROR, first_lines
from memdir.ingest.extractors import VERSION, ocr, speech
from memdir.ingest.extractors.formats import HEAD_BYTES, HTML, Format, family_of
from memdir.ingest.extractors.output import ExtractionError
from memdir.ingest.pages import read_page
from memdir.ingest.sandbox import NEEDS_TIME, Extraction, Sandbox
from memdir.ingest.text import DecodedText, decode
from memdir.server.indexing.leases import Lease, PermanentError
from memdir.store.contents.extractions import Extracted
from memdir.store.errors import SupersededError
from memdir.store.store import Store
from memdir.store.text.languages import of_passage
from memdir.store.types import Document

if TYPE_CHECKING:
    from memdir.core.web import Http

log = logging.getLogger(__name__)

ENV_FETCH: Final = "MEMDIR_FETCH_URLS"
"""`on`: of a document that is an address the page is fetched and read. `private`: also from this machine and network. Else the
address is kept as it is."""
_TOLD_EVERY_S: Final = 2.0
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
    if known is None or known.version != VERSION or known.needs == NEEDS_TIME:
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
    return text_beside(store, document.content_hash) or b""


def text_of(store: Store, content_hash: str) -> DecodedText | None:
    """The text beside files with these contents; None when they could not be read."""
    data = text_beside(store, content_hash)
    return None if data is None else decode(data)


def text_beside(store: Store, content_hash: str) -> bytes | None:
    """The bytes of `text_of`."""
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
    address = address_of(document)
    try:
        told_s = time.monotonic()

        def progress(done: int, total: int) -> None:
            nonlocal told_s
            if time.monotonic() - told_s >= _TOLD_EVERY_S and done:
                told_s = time.monotonic()
                store.progress.reading(lease.job, f"reading: {done} of {total}" if total else f"reading: {done}")

        if address is not None:
            result = _fetched(sandbox, address, progress=progress, checkpoint=lease.check_refused)
        else:
            result = sandbox.extract(
                store.blobs.pieces(document.content_hash), found, progress=progress, checkpoint=lease.check_refused
            )
    except NotFoundError as error:
        raise SupersededError from error
    except ExtractionError as error:
        sentences = [part[:1].upper() + part[1:] for part in (error.reason, error.hint) if part]
        reason = ". ".join(sentences)[:_REASON_MAX_CHARS]
        extracted = Extracted(
            content_hash=document.content_hash, version=VERSION, kind=error.kind or found.kind, media_type=found.media_type,
            title="", size_bytes=0, error=reason, needs=error.needs,
        )  # fmt: skip
        log.info("document %s cannot be read: %s", document.id, reason)
        store.extractions.put(extracted, None)
        return
    body = _body(document, result)
    extracted = Extracted(
        content_hash=document.content_hash, version=VERSION, kind=result.kind, media_type=result.media_type,
        title=result.title, size_bytes=len(body.encode()), needs=result.needs,
    )  # fmt: skip
    store.extractions.put(extracted, body)


@cache
def _web(*, private_allowed: bool) -> Http:
    """One client for all documents, so that no host is asked by more than two at a time."""
    from memdir.core.web import Http

    return Http(private_allowed=private_allowed)


def _fetched(
    sandbox: Sandbox, address: str, *, progress: Callable[[int, int], None], checkpoint: Callable[[], None]
) -> Extraction:
    """The page of an address. UnreachableError when another try may help, PermanentError when none will; ExtractionError."""
    try:
        final, media_type, data = _web(private_allowed=os.environ.get(ENV_FETCH) == "private").get(address)
    except UnreachableError:
        raise
    except FetchError as error:
        raise PermanentError(error.message) from error
    name = unquote(urlsplit(final).path).rpartition("/")[2]
    page = read_page(sandbox, name, data, media_type, progress=progress, checkpoint=checkpoint)
    return replace(page, facts={"address": final, **page.facts})


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

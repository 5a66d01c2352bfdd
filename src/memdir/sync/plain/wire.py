"""The calls of `/v3` that a mount needs, and a document as they describe it. Nothing here remembers anything."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urljoin, urlsplit

from memdir.client.errors import ClientError, NotFoundError, RejectedError, ServerError
from memdir.client.http import Client
from memdir.sync.plain.marks import Marks

Json = dict[str, Any]

PAGE: Final = 200
"""Documents of one page: the most that the API allows."""
BULK_MAX: Final = 100
"""Ids of one bulk delete: the most that the API allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document as the server says it. `content` is None when it was not asked for."""

    id: str
    filepath: str | None
    custom_id: str | None
    metadata: Json
    status: str
    reason: str
    type: str
    url: str | None
    content: str | None
    created_us: int
    updated_us: int

    @property
    def marks(self) -> Marks | None:
        """What a mount wrote beside it, None when no mount did."""
        return Marks.read(self.metadata)

    @property
    def order(self) -> tuple[int, str]:
        """The older of two documents comes first, for everybody who looks."""
        return self.created_us, self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a listing, and how many documents there are in all."""

    documents: list[Document]
    total: int


class Documents:
    """`/v3/documents` of one container. Raises `ClientError` and its kinds; a list that is not found is a ServerError, because
    a container without documents has an empty one."""

    def __init__(self, client: Client, container: str) -> None:
        self._client = client
        self._container = container

    def page(self, number: int, *, sort: str, order: str, filepath: str | None = None) -> Page:
        """One page of the container, counted from 1."""
        body: Json = {"containerTags": [self._container], "limit": PAGE, "page": number, "sort": sort, "order": order}
        if filepath is not None:
            body["filepath"] = filepath
        try:
            answer = self._client.ask("POST", "/v3/documents/list", json=body)
        except NotFoundError as error:
            raise ServerError(f"the server cannot list documents: {error.message}") from error
        pagination, found = answer.get("pagination"), answer.get("memories")
        if not isinstance(found, list) or not isinstance(pagination, dict):
            raise ServerError("the server's list of documents has another shape than expected")
        return Page(documents=[read(item) for item in found], total=_whole(pagination.get("totalItems"), "totalItems"))

    def get(self, name: str) -> Document | None:
        """A document with its text, by id or custom id; None when there is none."""
        try:
            return read(self._client.ask("GET", self._url(name)))
        except NotFoundError:
            return None

    def processing(self) -> tuple[list[str], int]:
        """The ids of documents that are being processed (as many as the server names), and how many there are."""
        params = {"containerTags": self._container, "containerTag": self._container}
        answer = self._client.ask("GET", "/v3/documents/processing", params=params)
        found = answer.get("documents")
        if not isinstance(found, list):
            raise ServerError("the server's answer about processing documents has no documents")
        ids = [str(item["id"]) for item in found if isinstance(item, dict) and "id" in item]
        return ids, _whole(answer.get("totalCount"), "totalCount")

    def add(self, content: str, *, custom_id: str, metadata: Json, filepath: str | None, remembered: bool) -> str:
        """Take a text in; the id."""
        body: Json = {"content": content, "containerTag": self._container, "customId": custom_id, "metadata": metadata}
        if filepath is not None:
            body["filepath"] = filepath
        if not remembered:
            body["taskType"] = "superrag"
        return _id(self._client.ask("POST", "/v3/documents", json=body))

    def upload(self, content: Any, *, name: str, custom_id: str, metadata: Json, filepath: str) -> str:
        """Take a file's bytes in; over the document of that custom id, if there is one. The id."""
        fields = {
            "containerTag": self._container, "customId": custom_id, "metadata": json.dumps(metadata), "filepath": filepath,
        }  # fmt: skip
        files = {"file": (name, content, "application/octet-stream")}
        return _id(self._client.ask("POST", "/v3/documents/file", data=fields, files=files))

    def change(self, document_id: str, **fields: Any) -> None:
        """Change `content`, `metadata` or `filepath`; what is not named stays."""
        self._client.ask("PATCH", self._url(document_id), json=fields)

    def delete(self, document_ids: Sequence[str]) -> None:
        """Delete up to BULK_MAX documents; those that are not there are no error."""
        if len(document_ids) == 1:
            try:
                self._client.send("DELETE", self._url(document_ids[0]))
            except NotFoundError:
                return
            return
        self._client.ask("DELETE", "/v3/documents/bulk", json={"ids": list(document_ids)})

    @contextmanager
    def original(self, document: Document, *, stall_s: float | None = None) -> Iterator[Iterator[bytes]]:
        """The bytes that were uploaded, in pieces. RejectedError when the server gives no address for them."""
        address = self._address(document)
        if address is None:
            raise RejectedError("the server keeps no original of it that can be downloaded, only the text it made of it")
        with self._client.download(address, keyed=self._is_own(address), stall_s=stall_s) as pieces:
            yield pieces

    def _address(self, document: Document) -> str | None:
        address: object = None
        try:
            answer = self._client.ask("GET", self._url(document.id) + "/file-url")
            address = answer.get("url") or answer.get("fileUrl")
        except (NotFoundError, RejectedError):
            address = document.url if document.type != "webpage" else None
        if not isinstance(address, str) or not address:
            return None
        address = urljoin(self._client.base_url + "/", address)
        return address if self._is_own(address) or _is_public(address) else None

    def _is_own(self, address: str) -> bool:
        mine, its = urlsplit(self._client.base_url), urlsplit(address)
        return (mine.scheme, mine.netloc) == (its.scheme, its.netloc)

    def _url(self, name: str) -> str:
        return f"/v3/documents/{quote(name, safe='')}"


def read(item: object) -> Document:
    """A document of an answer. ServerError when it is none."""
    if not isinstance(item, dict):
        raise ServerError("the server sent a document that is no object")
    metadata, filepath = item.get("metadata"), item.get("filepath")
    created_us = _moment(item.get("createdAt"))
    return Document(
        id=_id(item),
        filepath=filepath if isinstance(filepath, str) and filepath else None,
        custom_id=_text(item.get("customId")),
        metadata=metadata if isinstance(metadata, dict) else {},
        status=_text(item.get("status")) or "unknown",
        reason=_text(item.get("errorMessage")) or _text(item.get("error")) or "",
        type=_text(item.get("type")) or "text",
        url=_text(item.get("url")),
        content=_text(item.get("content")),
        created_us=created_us,
        updated_us=_moment(item["updatedAt"]) if item.get("updatedAt") else created_us,
    )


def is_busy(error: ClientError) -> bool:
    """Whether a refusal means that an earlier step of the same document is still under way."""
    return "(HTTP 409)" in error.message


def _is_public(address: str) -> bool:
    """Whether an address on another host may be asked: over TLS, and not by number or local name. The answer of a server must
    not lead a mount into its user's own network."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    if parts.scheme != "https" or parts.username or "." not in host or host.endswith((".local", ".internal", ".localhost")):
        return False
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False


def _id(item: Json) -> str:
    found = item.get("id")
    if not isinstance(found, str) or not found:
        raise ServerError("the server sent a document without an id")
    return found


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ServerError(f"the server's answer has no {name}")
    return int(value)


def _moment(value: object) -> int:
    """Microseconds since the epoch. ServerError for what is no time."""
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError as error:
        raise ServerError(f"the server sent a document with the time {str(value)[:40]!r}") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1_000_000)

"""The answer to one request on its way out: its id, what is left of the rate, and the entry in the audit log."""

from __future__ import annotations

import re
import time
from typing import Final

from starlette.types import Message, Scope, Send

from memdir.core.ids import new_id
from memdir.core.secrets import masked
from memdir.server.http.access import Noted
from memdir.server.http.audit_log import Auditor
from memdir.server.http.rate_limits import Standing
from memdir.store.accounts.audit import AuditEvent, Recording, record_with_change
from memdir.store.accounts.keys import ApiKey

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}")
"""What a proxy or client may call a request; anything else gets a name of ours."""
_QUIET_PATHS: Final = frozenset({"/v1/capabilities"})
"""Tell nothing about anybody."""


def _is_name(request_id: str) -> bool:
    """Whether it may be written into the audit log as it is."""
    return _REQUEST_ID.fullmatch(request_id) is not None and masked(request_id) == request_id


class Answer:
    """Stands between the application and the wire."""

    def __init__(self, scope: Scope, send: Send, auditor: Auditor | None) -> None:
        self.started = False
        self.finished = False
        self.noted = Noted()
        self.standing: Standing | None = None
        self.request_id = ""
        self._scope = scope
        self._send = send
        self._auditor = auditor
        self._key: ApiKey | None = None
        self._address = ""
        self._recording: Recording | None = None
        self._recorded_status = 0

    def admit(self, key: ApiKey, address: str, request_id: str | None) -> None:
        """The request comes from a key that lives."""
        self._key = key
        self._address = address
        self.request_id = request_id if request_id is not None and _is_name(request_id) else new_id()
        if self._auditor is not None:
            self._recording = Recording(lambda created: self._event(key, self._expected(created)))
            record_with_change(self._recording)

    async def send(self, message: Message) -> None:
        """An ASGI message. Before the first one of a change goes out, the change is on record."""
        if message["type"] == "http.response.start":
            self.started = True
            headers = list(message.get("headers", ()))
            if self._key is not None:
                headers.append((b"x-request-id", self.request_id.encode()))
                await self._audit(self._key, message["status"])
            if self.standing is not None:
                headers += self.standing.headers()
            message = {**message, "headers": headers}
        elif message["type"] == "http.response.body":
            self.finished = self.finished or not message.get("more_body", False)
        await self._send(message)

    async def _audit(self, key: ApiKey, status: int) -> None:
        if self._auditor is None or self._scope["path"] in _QUIET_PATHS:
            return
        event = self._event(key, status)
        if self._recording is not None and self._recording.done and status == self._recorded_status:
            self._auditor.written(event)
        elif event.action == "read" or status >= 400:
            self._auditor.note(event)
        else:
            await self._auditor.record(event)

    def _expected(self, created: bool) -> int:
        """The status that the answer to a change will have when nothing goes wrong after its commit. If something does, a
        second entry says so."""
        self._recorded_status = 201 if created and self._scope["method"] == "PUT" else self.noted.success
        return self._recorded_status

    def _event(self, key: ApiKey, status: int) -> AuditEvent:
        method = self._scope["method"]
        action = self.noted.action or ("read" if method in ("GET", "HEAD") else "write")
        return AuditEvent(
            at_ms=time.time_ns() // 1_000_000,
            org_id=key.org_id,
            user_id=key.user_id,
            key_id=key.id,
            action=action,
            call=f"{method} {self.noted.route or '(none)'}",
            container=",".join(self.noted.containers) or None,
            target=masked(", ".join(self.noted.targets)) or None,
            status=status,
            request_id=self.request_id,
            address=self._address,
        )

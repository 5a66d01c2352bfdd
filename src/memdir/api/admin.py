"""Managing who may call: `/v1/keys`, `/v1/users`, `/v1/orgs`, `/v1/audit`. For keys that may `admin`.

Every call takes `org=` (id or name): the caller's own by default, another one only from the server's own organisation.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memdir.api.v1 import Wire
from memdir.core.limits import PATH_MAX_BYTES

Action = Literal["read", "write", "admin"]
KeyState = Literal["active", "expired", "revoked"]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Limits = Annotated[dict[str, Annotated[int, Field(ge=1, le=1 << 62)]], Field(max_length=10)]
ACTIONS_DEFAULT: tuple[Action, ...] = ("read", "write")
AUDIT_PAGE_MAX = 1000
EXPIRES_MAX_S = 100 * 365 * 86_400


class KeyRequest(Wire):
    """POST /v1/keys"""

    name: Name
    containers: Annotated[list[str], Field(default_factory=lambda: ["*"], min_length=1, max_length=100)]
    """Tags; one that ends in `*` stands for all that begin so."""
    actions: Annotated[list[Action], Field(default_factory=lambda: list(ACTIONS_DEFAULT), min_length=1, max_length=3)]
    prefix: Annotated[str, Field(min_length=1, max_length=PATH_MAX_BYTES)] = "/"
    """The folder that it opens, with all below it."""
    user: Name | None = None
    """Whose key it is: id or name."""
    expires_in_s: Annotated[int, Field(ge=1, le=EXPIRES_MAX_S)] | None = None
    limits: Limits = Field(default_factory=dict)
    """`requestsPerMinute`, `documents`, `bytes`."""


class RotateRequest(Wire):
    """POST /v1/keys/{name}/rotate"""

    keep_s: Annotated[int, Field(ge=0, le=EXPIRES_MAX_S)] = 0
    """How long the old key goes on working."""


class KeyView(Wire):
    """A key without its secret."""

    id: str
    name: str
    org: str
    user: str | None
    containers: list[str]
    actions: list[str]
    prefix: str
    limits: dict[str, int]
    state: KeyState
    created_at: str
    expires_at: str | None
    last_used_at: str | None
    """To a few minutes."""
    revoked_at: str | None
    rotated_from: str | None


class NewKeyView(KeyView):
    """A key with its secret: the only time it is shown."""

    key: str


class KeyList(Wire):
    keys: list[KeyView]


class Revoked(Wire):
    """What was ended."""

    id: str
    name: str


class UserRequest(Wire):
    """POST /v1/users"""

    name: Name
    email: Annotated[str, Field(max_length=254)] = ""


class UserView(Wire):
    id: str
    name: str
    email: str
    org: str
    created_at: str


class UserList(Wire):
    users: list[UserView]


class UserRemoved(Wire):
    """Who went, and how many keys went along."""

    id: str
    name: str
    revoked_keys: int


class OrgRequest(Wire):
    """POST /v1/orgs"""

    name: Name
    limits: Limits = Field(default_factory=dict)
    """`documents`, `bytes`."""


class OrgView(Wire):
    id: str
    name: str
    limits: dict[str, int]
    documents: int
    bytes: int
    created_at: str


class OrgList(Wire):
    orgs: list[OrgView]


class OrgRemoved(Wire):
    id: str
    name: str


class AuditView(Wire):
    """One call: who, what, when, with which key."""

    id: int
    at: str
    org: str
    user: str | None
    key_id: str
    key: str | None
    """The key's name, None for one that is gone."""
    action: Action
    call: str
    container: str | None
    target: str | None
    status: int
    request_id: str
    address: str


class AuditPage(Wire):
    """Newest first; `next` is the `before` of the next page."""

    events: list[AuditView]
    next: int | None

"""One request for each call that takes JSON, for the OpenAPI document. A test sends every one of them."""

from __future__ import annotations

from typing import Any, Final

TAG: Final = "notes"

EXAMPLES: Final[dict[tuple[str, str], Any]] = {
    ("post", "/v1/files:move"): {"containerTag": TAG, "fromPath": "/work/plan.md", "toPath": "/work/plan-2.md"},
    ("post", "/v1/files:read"): {"containerTag": TAG, "paths": ["/work/plan.md", "/work/todo.md"]},
    ("post", "/v1/files:batch"): {
        "containerTag": TAG,
        "operations": [
            {"op": "put", "path": "/work/a.md", "contentBase64": "aGVsbG8K"},
            {"op": "delete", "path": "/work/old.md"},
        ],
    },
    ("post", "/v1/versions:restore"): {"containerTag": TAG, "version": 7, "path": "/work/plan-before.md"},
    ("post", "/v1/jobs:retry"): {"containerTag": TAG},
    ("post", "/v1/indexes:rebuild"): {"containerTag": TAG, "what": ["lexical", "vectors"]},
    ("post", "/v1/search"): {"containerTag": TAG, "q": "who mended the ropes", "filepath": "/work/", "limit": 5},
    ("post", "/v1/agents/memories"): {
        "containerTag": TAG,
        "content": "Deploys go through `make ship`; the old script is gone.",
        "tags": ["deploy"],
        "project": "my-saas",
    },
    ("post", "/v1/agents/memories:import"): {
        "containerTag": TAG,
        "items": [{"content": "Staging runs in Frankfurt.", "tags": ["infra"], "createdAt": "2025-02-16T10:00:00Z"}],
    },
    ("patch", "/v1/agents/memories/{memory_id}"): {"containerTag": TAG, "tags": ["deploy", "ci"]},
    ("post", "/v1/agents/memories/{memory_id}/confirm"): {"containerTag": TAG},
    ("post", "/v1/agents/project"): {"containerTag": TAG, "name": "my-saas", "keys": ["remote:github.com/acme/my-saas"]},
    ("post", "/v1/agents/search"): {"containerTag": TAG, "q": "how do we deploy", "project": "my-saas", "tags": ["ci"]},
    ("post", "/v1/agents/context"): {
        "containerTag": TAG,
        "prompt": "Fix the deploy script",
        "project": "my-saas",
        "sessionId": "abc123",
        "host": "claude-code",
    },
    ("post", "/v3/documents"): {
        "content": "The ropes were mended by Ida.",
        "containerTag": TAG,
        "filepath": "/work/plan.md",
        "metadata": {"author": "ida", "pages": 3},
    },
    ("post", "/v3/documents/batch"): {"containerTag": TAG, "contents": ["One thing.", "Another thing."]},
    ("post", "/v3/documents/list"): {"containerTags": [TAG], "filepath": "/work/", "limit": 20, "page": 1, "sort": "createdAt"},
    ("delete", "/v3/documents/bulk"): {"containerTags": [TAG], "filepath": "/work/old/"},
    ("patch", "/v3/documents/{name}"): {"metadata": {"author": "eve"}},
    ("patch", "/v3/container-tags/{tag}"): {"memoryFilesystemPaths": ["/memory/", "/user.md"]},
    ("post", "/v3/search"): {
        "q": "ropes",
        "containerTags": [TAG],
        "filters": {
            "AND": [
                {"key": "author", "value": "ida"},
                {"key": "pages", "value": "2", "filterType": "numeric", "numericOperator": ">"},
            ]
        },
    },
    ("post", "/v4/search"): {"q": "what does Ida like", "containerTag": TAG, "searchMode": "hybrid"},
    ("post", "/v4/profile"): {"containerTag": TAG},
    ("post", "/v1/users"): {"name": "Anna", "email": "anna@example.org"},
    ("post", "/v1/keys"): {
        "name": "build server",
        "containers": [TAG, "team-*"],
        "actions": ["read"],
        "prefix": "/work",
        "user": "Anna",
        "expiresInS": 2_592_000,
        "limits": {"requestsPerMinute": 600},
    },
    ("post", "/v1/keys/{key}/rotate"): {"keepS": 3600},
    ("post", "/v1/orgs"): {"name": "Example Ltd", "limits": {"documents": 100_000}},
    ("post", "/v4/memories"): {
        "containerTag": TAG,
        "memories": [{"content": "Ida prefers tea in the morning.", "isStatic": True, "metadata": {"source": "chat"}}],
    },
    ("patch", "/v4/memories"): {
        "containerTag": TAG,
        "content": "Ida prefers tea in the morning.",
        "newContent": "Ida prefers coffee in the morning.",
    },
    ("delete", "/v4/memories"): {"containerTag": TAG, "content": "Ida prefers coffee in the morning.", "reason": "outdated"},
    ("post", "/v1/forget"): {"containerTag": TAG, "subject": "Ana Ruiz", "dryRun": True},
    ("post", "/v1/forget/verify"): {"containerTag": TAG, "key": "00" * 32, "windows": {"2": ["1f" * 16]}},
    ("post", "/v4/memories/list"): {"containerTags": [TAG], "limit": 20, "page": 1},
    ("post", "/v4/conversations"): {
        "conversationId": "chat-1",
        "containerTag": TAG,
        "messages": [
            {"role": "user", "content": "I live in Bergen and I sail."},
            {"role": "assistant", "content": "Noted."},
        ],
    },
    ("patch", "/ns/{namespace}"): {"supportingContext": "Notes of a ship's crew."},
    ("post", "/ns/{namespace}/document"): {
        "content": "The ropes were mended by Ida.",
        "id": "ropes",
        "metadata": {"source": "log", "pages": 3},
    },
    ("post", "/ns/{namespace}/document/batch"): {"documents": [{"content": "One thing."}, {"content": "Another thing."}]},
    ("patch", "/ns/{namespace}/document/{name}"): {"metadata": {"source": "mail"}},
    ("delete", "/ns/{namespace}/document"): {"ids": ["old"]},
    ("post", "/ns/{namespace}/list/documents"): {"filter": {"field": "source", "operator": "eq", "value": "log"}},
    ("post", "/ns/{namespace}/list/chunks"): {},
    ("post", "/ns/{namespace}/list/memories"): {"include": {"forgotten": True}},
    ("post", "/ns/{namespace}/list/documents/memory-counts"): {"ids": ["ropes"]},
    ("post", "/ns/{namespace}/search"): {
        "query": "who mended the ropes",
        "searchMode": "chunks",
        "filter": {
            "operator": "and",
            "operands": [
                {"field": "source", "operator": "eq", "value": "log"},
                {"field": "pages", "operator": "gte", "value": 3},
            ],
        },
    },
    ("post", "/ns/{namespace}/profile"): {"buckets": ["work"]},
    ("put", "/ns/{namespace}/profile/buckets"): {"buckets": {"work": "what the crew does"}},
    ("delete", "/ns/{namespace}/profile/buckets"): {"buckets": ["work"]},
    ("delete", "/ns/{namespace}/memories"): {"ids": ["no-such-memory"]},
    ("delete", "/ns/{namespace}/memories/semantic"): {"query": "what was said about the ropes", "dryRun": True},
}

"""Bounds that more than one room must agree on. Every queue, loop and reply refers to one of these or states its own."""

from __future__ import annotations

from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * KIB

INT64_MAX: Final = (1 << 63) - 1

NAME_MAX_BYTES: Final = 255
PATH_MAX_BYTES: Final = 4096
SYMLINK_MAX_BYTES: Final = 4095

FILE_SYNC_MAX_BYTES: Final = 512 * MIB
"""The largest file that is sent to the server; a larger one stays in the mount and is parked with this reason."""

BATCH_MAX_ITEMS: Final = 256
BATCH_MAX_BYTES: Final = 8 * MIB
"""One `POST /v1/files:batch`: sum of decoded contents."""

READ_MAX_ITEMS: Final = 64
READ_MAX_BYTES: Final = MIB
"""One `POST /v1/files:read`: sum of contents."""

IMPORT_MAX_BYTES: Final = 16 * 1024 * MIB
"""One archive of `POST /v1/import`, packed."""

CHANGES_PAGE_MAX: Final = 1000
CHANGES_WAIT_MAX_S: Final = 60.0

SEARCH_LIMIT_MAX: Final = 200
EXACT_LIMIT_MAX: Final = 10_000
"""Lines, files or counts of one search for exact text."""
EXACT_LINE_MAX_BYTES: Final = 2000
"""Of a longer line so much is shown, around its first match."""
EXACT_TEXT_MAX_BYTES: Final = 2 * MIB
"""The text of all together: escaped as JSON it still fits CONTROL_MESSAGE_MAX_BYTES."""
SEARCH_PATHS_MAX: Final = 1000
"""Files and folders that one search may name."""
QUERY_MAX_CHARS: Final = 4096
CONTAINING_MAX: Final = 8
CONTAINING_MAX_CHARS: Final = 200
"""Texts that each line found has to hold."""
SEARCH_PENDING_MAX: Final = 1000
"""Files that an answer names as not searchable yet."""

ACCESSES_MAX: Final = 1_000_000_000
"""That an import may say of one memory."""
MEMORY_MAX_CHARS: Final = 100_000
MEMORY_TAGS_MAX: Final = 20
MEMORY_TAG_MAX_CHARS: Final = 64
MEMORY_PROJECT_MAX_CHARS: Final = 100
"""Of a memory of agents: its text, its tags, the name of its project."""

CONTROL_MESSAGE_MAX_BYTES: Final = 16 * MIB
"""One request or answer on the daemon's control socket."""

URL_MAX_BYTES: Final = 16 * KIB
"""A path of PATH_MAX_BYTES in which every byte is escaped, and a query."""
HEAD_MAX_BYTES: Final = 64 * KIB
HEADERS_MAX: Final = 100
"""Names and values of one request's headers together, and how many."""
JSON_DEPTH_MAX: Final = 64
JSON_VALUES_MAX: Final = 200_000
"""How deep a JSON body may nest, and how many values it may have."""

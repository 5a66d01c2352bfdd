"""Many operations in one request, as bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from memdir.api import v1


def batch_body(container: str, operations: Sequence[v1.BatchOperation], *, bulk: bool = False) -> bytes:
    """A BatchRequest as JSON. Contents are put in as they are: base64 needs no escapes, and looking for some in megabytes would
    keep every other thread from the interpreter for the while."""
    pieces = [b'{"containerTag":', json.dumps(container).encode("ascii"), b',"bulk":true' if bulk else b"", b',"operations":[']
    for number, operation in enumerate(operations):
        rest = operation.model_dump_json(by_alias=True, exclude_none=True, exclude={"content_base64"}).encode("utf-8")
        pieces.append(b"," + rest if number else rest)
        if operation.content_base64 is not None:
            pieces[-1] = pieces[-1][:-1]  # its last brace
            pieces += [b',"contentBase64":"', operation.content_base64.encode("ascii"), b'"}']
    return b"".join([*pieces, b"]}"])

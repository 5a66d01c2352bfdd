"""Rerankers of the user's own: a model as a file, or an endpoint. None comes with memdir."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memdir.core.errors import UsageError
from memdir.retrieval.rerank.port import Reranker

ENV_RERANKER: Final = "MEMDIR_RERANKER"
ENV_RERANKER_MODEL: Final = "MEMDIR_RERANKER_MODEL"
ENV_RERANKER_KEY: Final = "MEMDIR_RERANKER_KEY"
_HINT: Final = "a folder with model.onnx and tokenizer.json, or the https:// address of a /rerank endpoint"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def reranker_from_environment() -> Reranker | None:
    """What MEMDIR_RERANKER names, None when it names nothing. UsageError for what cannot be one."""
    setting = os.environ.get(ENV_RERANKER, "").strip()
    if not setting:
        return None
    if "://" not in setting:
        from memdir.retrieval.rerank.crossencoder import CrossEncoder

        return CrossEncoder(Path(setting))
    address = urlsplit(setting)
    plain = address.scheme == "http" and address.hostname in _LOOPBACK
    if (address.scheme != "https" and not plain) or not address.hostname:
        raise UsageError(f"{ENV_RERANKER} must be {_HINT}", hint="http:// is taken for this machine only")
    if address.username is not None or address.password is not None:
        raise UsageError(f"{ENV_RERANKER} must not hold a password", hint=f"put the key into {ENV_RERANKER_KEY}")
    from memdir.retrieval.rerank.endpoint import EndpointReranker

    return EndpointReranker(
        setting, model=os.environ.get(ENV_RERANKER_MODEL, "").strip(), key=os.environ.get(ENV_RERANKER_KEY, "").strip()
    )

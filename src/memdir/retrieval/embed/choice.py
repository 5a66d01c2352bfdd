"""Which model stands in the transformer's place: the one that came with memdir, the multilingual one, or an endpoint."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memdir.core.errors import UsageError
from memdir.retrieval.embed.port import Embedder

ENV_EMBEDDER: Final = "MEMDIR_EMBEDDER"
ENV_EMBEDDER_MODEL: Final = "MEMDIR_EMBEDDER_MODEL"
ENV_EMBEDDER_KEY: Final = "MEMDIR_EMBEDDER_KEY"
MULTILINGUAL: Final = "multilingual"
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


def check_environment() -> str:
    """What MEMDIR_EMBEDDER says, '' for nothing. UsageError for what cannot be one."""
    setting = os.environ.get(ENV_EMBEDDER, "").strip()
    if setting in ("", MULTILINGUAL):
        return setting
    address = urlsplit(setting)
    plain = address.scheme == "http" and address.hostname in _LOOPBACK
    if (address.scheme != "https" and not plain) or not address.hostname:
        raise UsageError(
            f"{ENV_EMBEDDER} must be {MULTILINGUAL!r} or the https:// address of a /v1/embeddings endpoint",
            hint="http:// is taken for this machine only",
        )
    if address.username is not None or address.password is not None:
        raise UsageError(f"{ENV_EMBEDDER} must not hold a password", hint=f"put the key into {ENV_EMBEDDER_KEY}")
    return setting


def embedder_from_environment(models_dir: Path) -> Embedder:
    """Load it. UsageError, ModelUnavailableError, and BusyError for an endpoint that cannot be reached."""
    setting = check_environment()
    if not setting:
        from memdir.retrieval.embed.minilm import MiniLmEmbedder

        return MiniLmEmbedder(models_dir)
    if setting == MULTILINGUAL:
        from memdir.retrieval.embed.e5 import MultilingualEmbedder

        return MultilingualEmbedder(models_dir)
    from memdir.retrieval.embed.endpoint import EndpointEmbedder

    model, key = (os.environ.get(name, "").strip() for name in (ENV_EMBEDDER_MODEL, ENV_EMBEDDER_KEY))
    return EndpointEmbedder(setting, model=model, key=key)

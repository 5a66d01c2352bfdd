"""Embedding models: one port, two local models that arrive as packages. No torch, no network, none of their code is run."""

from __future__ import annotations

from memdir.retrieval.embed.minilm import MiniLmEmbedder
from memdir.retrieval.embed.port import Embedder, LineEmbedder, ModelUnavailableError
from memdir.retrieval.embed.static import StaticEmbedder

__all__ = ["Embedder", "LineEmbedder", "MiniLmEmbedder", "ModelUnavailableError", "StaticEmbedder"]

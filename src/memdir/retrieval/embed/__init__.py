"""Embedding models: one port, two local models that arrive as packages. No torch, no network, none of their code is run."""

from __future__ import annotations

import os

from memdir.retrieval.embed.minilm import MiniLmEmbedder
from memdir.retrieval.embed.port import Embedder, LineEmbedder, ModelUnavailableError
from memdir.retrieval.embed.static import StaticEmbedder

__all__ = ["Embedder", "LineEmbedder", "MiniLmEmbedder", "ModelUnavailableError", "StaticEmbedder"]

# From 1.29 on, onnxruntime's Linux wheels report to Microsoft and keep a device id in the home folder, from the moment they are
# imported; nothing but this variable stops that (microsoft/onnxruntime pull request 27379). The modules above import it later.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

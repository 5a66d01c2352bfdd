"""What a memory costs and saves in tokens: the model of the zero-AI design, section 2, on anybody's numbers.

Symbols of the paper beside the names here: s = `tokens_per_turn`, k = `top_k`, c = `chunk_tokens`, N = `turns`,
W = `window_tokens`, M = the tokens that are stored. A baseline turn sends all turns before it again; a turn with memory sends
itself and what was retrieved.
Pure: no clock, no I/O.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

TOKENS_PER_TURN: Final = 1000.0
TOP_K: Final = 5.0
CHUNK_TOKENS: Final = 512.0
TURNS: Final = 50
WINDOW_TOKENS: Final = 200_000
SYSTEM_TOKENS: Final = 2_000
CONVERSATION_TOKENS: Final = 5_000
INFERENCE_MS: Final = 2_000.0
OVERHEAD_MS: Final = 5.0
CHUNK_BYTES: Final = 8_000.0
"""Of storage for each chunk of 512 tokens, with index and metadata: 12,500 of them in 100 MB (section 2.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostModel:
    """One way of working. `top_k` and `chunk_tokens` may be averages of what was injected."""

    tokens_per_turn: float = TOKENS_PER_TURN
    top_k: float = TOP_K
    chunk_tokens: float = CHUNK_TOKENS
    turns: int = TURNS
    window_tokens: int = WINDOW_TOKENS

    @property
    def retrieved_tokens(self) -> float:
        """k·c: what memory adds to every turn."""
        return self.top_k * self.chunk_tokens

    @property
    def break_even(self) -> float:
        """1 + k·c / s: the turn at which both ways cost the same (2.3)."""
        return 1 + self.retrieved_tokens / self.tokens_per_turn

    @property
    def break_even_turn(self) -> int:
        """The first whole turn that is cheaper with memory."""
        return math.floor(self.break_even) + 1

    def baseline_at(self, turn: int) -> float:
        """s·t: input tokens of one turn without memory (2.2)."""
        return self.tokens_per_turn * turn

    @property
    def with_memory_at(self) -> float:
        """s + k·c: input tokens of any turn with memory."""
        return self.tokens_per_turn + self.retrieved_tokens

    @property
    def baseline_total(self) -> float:
        """s·N(N+1)/2."""
        return self.tokens_per_turn * self.turns * (self.turns + 1) / 2

    @property
    def with_memory_total(self) -> float:
        """N·(s + k·c)."""
        return self.turns * self.with_memory_at

    def ratio_at(self, turn: int) -> float:
        """ρ(t) = 1/t + k·c / (s·t): below 1 memory is cheaper."""
        return self.with_memory_at / self.baseline_at(turn)

    @property
    def reduction(self) -> float:
        """Share of the tokens of all turns that memory saves; negative when it costs more."""
        return 1 - self.with_memory_total / self.baseline_total

    @property
    def window_full_turn(self) -> int:
        """The first turn that does not fit into the window without memory: there a host compacts, and forgets."""
        return math.floor(self.window_tokens / self.tokens_per_turn) + 1

    def amplification(self, stored_tokens: float) -> float:
        """M / W (2.4)."""
        return stored_tokens / self.window_tokens

    def capacity_tokens(self, storage_bytes: float, chunk_bytes: float = CHUNK_BYTES) -> float:
        """M of a disk of so many bytes."""
        return storage_bytes / chunk_bytes * self.chunk_tokens

    def response_tokens(self, system: int = SYSTEM_TOKENS, conversation: int = CONVERSATION_TOKENS) -> float:
        """What is left of the window for the answer (2.6). Negative when nothing is."""
        return self.window_tokens - system - self.retrieved_tokens - conversation


def overhead(overhead_ms: float = OVERHEAD_MS, inference_ms: float = INFERENCE_MS) -> float:
    """Time of a retrieval as a share of the model's (2.5)."""
    return overhead_ms / inference_ms


SCENARIOS: Final = (
    ("light conversation", CostModel(tokens_per_turn=500)),
    ("medium conversation", CostModel()),
    ("heavy coding session", CostModel(tokens_per_turn=2000, top_k=10)),
    ("minimal retrieval", CostModel(tokens_per_turn=500, top_k=3, chunk_tokens=256)),
)
"""The table of section 2.3."""

STORAGES: Final = (("100 MB", 1e8), ("1 GB", 1e9), ("10 GB", 1e10))
"""The table of section 2.4."""

"""Search as the calls ask for it: passages, memories, both, exact text.

A request comes in; `passages` and `memory_search` ask `retrieval`, `merging` ranks both together, `v1`, `v3` and `v4`
give each API its answer. Start with `v1`.
"""

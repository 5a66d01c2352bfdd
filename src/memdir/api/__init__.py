"""The wire: pydantic models of every request and answer. `v1` is ours, `v3` and `v4` are Supermemory's."""

"""Facts that were drawn from documents or stored by a call: their versions and where each was said.

`memory.reconcile` decides, `writing` writes that down, `memories` reads it, `search_view` is what searches see.
Start with `memories`.
"""

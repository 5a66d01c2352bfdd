"""Commands about synchronisation: `sync`, `queue`, `retry`, `conflicts`.

A mount comes in; its daemon says what waits, and is told what to do. Start with `sync`.
"""

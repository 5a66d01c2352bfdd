"""Who may call, and what they did: keys, organisations, users, the audit log, saved responses of repeated calls.

Start with `keys`.
"""

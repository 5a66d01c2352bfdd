"""`memdir grep`: from a question, and places to look in, to ranked lines.

Paths come in (`grep_places` finds their mounts); hits come from a mount's daemon, or from a server (`remote`), and
`hits` prints them. Start with `grep`.
"""

"""One process for each mount: its life, its control socket, its search.

A mount's record comes in (`registry`); a mounted filesystem with a running sync engine comes out. Commands ask it over a Unix
socket (`service`). Start with `lifecycle`.
"""

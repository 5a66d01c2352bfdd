"""The namespace API of Supermemory's 5.x clients: the services of `/v3` and `/v4` under other names.

Start with `documents`.
"""

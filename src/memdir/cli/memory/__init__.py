"""Commands for the memories of agents: `memory store|search|list|…`, and `cost`.

Texts and tags come in; records of the server's `/v1/agents` come back. Start with `memory`; `options` is what they share.
"""

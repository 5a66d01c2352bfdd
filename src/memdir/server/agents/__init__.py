"""What `/v1/agents` does: memories of coding agents, stored, found, and put before a prompt.

Requests of `api.agents` come in; records of `store.agents` are changed and ranked by `retrieval.agents`. `state` is what the
process holds in memory for that. Start with `context`: what a prompt hook is given.
"""

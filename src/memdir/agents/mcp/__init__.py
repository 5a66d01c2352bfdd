"""The MCP server of agent memories: seven tools, resources and two prompts over the memory server.

`link` reaches the memory server, `tools` says what each tool takes and does, `answers` what it gives back, `guide` holds the
texts a model reads, `desk` is the protocol's side of it, `serve` and `http` are the two transports, `draining`
answers what was asked before the input ended, `parent` ends the process with its host.
"""

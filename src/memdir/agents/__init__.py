"""For agent hosts (Claude Code, Codex and others): the prompt hook, the MCP server, the memory tool, the installers.

Prompts and tool calls come in from a host; questions to the memory server go out over HTTP, and what a host reads comes back.
Thin clients: no store and no model is here. Start with `hook` (a prompt) and `mcp.tools` (the seven tools).
"""

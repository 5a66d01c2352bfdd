"""The Anthropic memory tool (`memory_20250818`) on the files of a memory: `/memories` is the folder `/memory` of a mount, or of
a container on the server. `MemoryTool` runs the six commands; see docs/memory-tool.md."""

from memdir.agents.memory_tool.commands import MemoryTool, Reply
from memdir.agents.memory_tool.files import MemoryFiles, MemoryToolError

__all__ = ["MemoryFiles", "MemoryTool", "MemoryToolError", "Reply"]

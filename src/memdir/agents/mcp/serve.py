"""`memdir mcp` on standard input and output: the protocol and nothing else on standard output.

The SDK serves the wire from private copies of the two descriptors and points the originals elsewhere, so that neither a child
process nor a stray print can write between two messages.
"""

from __future__ import annotations

import signal

import anyio
from mcp.server.stdio import stdio_server

from memdir.agents.mcp.draining import Incoming, Outgoing, Unanswered
from memdir.agents.mcp.parent import end_soon
from memdir.agents.mcp.session import make_server
from memdir.agents.mcp.tools import Around


def serve_stdio(around: Around) -> None:
    """Serve one client until it closes our standard input, or ends. The handshake does not wait for the memory server."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # hosts send it; Python's own way would wait for the thread that reads
    around.link.start()
    anyio.run(_serve, around)
    end_soon()  # what a call still waits for must not keep us here


async def _serve(around: Around) -> None:
    server = make_server(around)
    unanswered = Unanswered()
    async with stdio_server() as (incoming, outgoing):
        answers = Outgoing(outgoing, unanswered)
        await server.run(Incoming(incoming, answers, unanswered), answers, server.create_initialization_options())

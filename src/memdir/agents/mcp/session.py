"""The protocol's side: tools, resources and prompts as handlers of the SDK's low-level server.

The low-level server and not `MCPServer`, because resources are pages of the memory server's list and not objects held here,
and because bad arguments are answered by us. It speaks both eras of the protocol: the handshake (up to 2025-11-25) and requests
that stand alone (2026-07-28). Handlers wait for the memory server in worker threads, at most `CALLS_MAX` at once.
"""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import anyio.to_thread
import mcp_types as types
from anyio import CapacityLimiter
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from memdir import __version__
from memdir.agents.mcp import answers, guide
from memdir.agents.mcp.tools import (
    TOOLS,
    Around,
    Tool,
    input_schema,
    memories_page,
    one_memory,
    output_schema,
    profile,
    trouble,
)
from memdir.client.light import LightCallError
from memdir.core.errors import MemdirError

log = logging.getLogger(__name__)

CALLS_MAX: Final = 8
RESOURCES_PAGE: Final = 50
_SCHEME: Final = "memory://"
_PROFILE_URI: Final = "memory://profile"
_MARKDOWN: Final = "text/markdown"
_TOPIC_MAX_CHARS: Final = 1_000
_NAME_MAX_CHARS: Final = 80
_HOST_MAX_CHARS: Final = 80
_LISTS_FRESH_MS: Final = 3_600_000
"""Tools and prompts are the same as long as this version is installed; resources change with every store."""

_T = TypeVar("_T")
Context = ServerRequestContext[Any, Any]


def make_server(around: Around) -> Server[Any]:
    """The MCP server for the memories of `around`."""
    desk = McpSession(around)
    fixed = CacheHint(ttl_ms=_LISTS_FRESH_MS, scope="public")
    return Server(
        "memdir",
        version=__version__,
        title="memdir memory",
        instructions=guide.INSTRUCTIONS,
        cache_hints={"tools/list": fixed, "prompts/list": fixed, "resources/templates/list": fixed},
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
    )


class McpSession:
    """The handlers, each `(context, parameters) -> result`."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._limiter = CapacityLimiter(CALLS_MAX)
        self._tools = {tool.name: tool for tool in (*TOOLS, *around.more_tools)}

    async def list_tools(self, _context: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        _one_page(params)
        return types.ListToolsResult(tools=list(_listed_tools(tuple(self._tools.values()))))

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Run a tool. What goes wrong is told in the result (`isError`), where a model reads it; only a tool that does not
        exist is an error of the protocol."""
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"there is no tool {params.name[:100]!r}")
        try:
            around = replace(self._around, stored_by=f"agent {_host(context)}")
            outcome = await self._waited(functools.partial(tool, around, params.arguments or {}))
        except MemdirError as error:
            return _failed(trouble(error))
        except ValidationError as error:
            log.warning("the memory server's answer to %s makes no sense: %s", tool.name, error)
            return _failed("The memory server's answer makes no sense; it may be of another version than this one.")
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=outcome.text)],
            structured_content=outcome.data.model_dump(by_alias=True, mode="json"),
        )

    async def list_resources(self, _context: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The profile, then all memories, newest first, by pages of the memory server."""
        cursor = params.cursor if params is not None else None
        page = await self._asked(
            lambda: memories_page(self._around.link, after=cursor, limit=RESOURCES_PAGE), bad_request=cursor is not None
        )
        listed = [] if cursor else [_PROFILE]
        for one in page.memories:
            words = " ".join(one.content.split())
            listed.append(
                types.Resource(
                    name=words[:_NAME_MAX_CHARS], uri=_SCHEME + quote(one.id, safe=""), mime_type=_MARKDOWN,
                    description=", ".join(filter(None, [one.project, *one.tags])) or None,
                )
            )  # fmt: skip
        return types.ListResourcesResult(resources=listed, next_cursor=page.next_after)

    async def list_templates(
        self, _context: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        _one_page(params)
        template = types.ResourceTemplate(
            name="memory",
            title="A memory",
            uri_template="memory://{id}",
            description="one memory by its id",
            mime_type=_MARKDOWN,
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, _context: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        if uri == _PROFILE_URI:
            found = await self._asked(lambda: profile(self._around, self._around.project_or(None)))
            text = answers.profile_text(found)
        else:
            memory_id = unquote(uri.removeprefix(_SCHEME))
            if not uri.startswith(_SCHEME) or not memory_id or len(memory_id) > _NAME_MAX_CHARS or "/" in memory_id:
                raise _no_resource(uri)
            try:
                text = answers.markdown(await self._waited(lambda: one_memory(self._around.link, memory_id)))
            except LightCallError as error:
                raise (_no_resource(uri) if error.status in (400, 404, 422) else _internal(error)) from error
            except MemdirError as error:
                raise _internal(error) from error
        content = types.TextResourceContents(uri=uri, mime_type=_MARKDOWN, text=text)
        return types.ReadResourceResult(contents=[content])

    async def list_prompts(self, _context: Context, params: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        _one_page(params)
        return types.ListPromptsResult(prompts=[_RECALL, _REMEMBER])

    async def get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = {name: value[:_TOPIC_MAX_CHARS].strip() for name, value in (params.arguments or {}).items()}
        if params.name == _RECALL.name:
            topic = given.get("topic")
            if not topic:
                raise MCPError(code=types.INVALID_PARAMS, message="the prompt `recall` needs a topic")
            return _prompt(_RECALL, guide.RECALL.format(topic=topic))
        if params.name == _REMEMBER.name:
            hint = given.get("hint")
            return _prompt(_REMEMBER, guide.REMEMBER.format(hint=f"\nAbove all: {hint}" if hint else ""))
        raise MCPError(code=types.INVALID_PARAMS, message=f"there is no prompt {params.name[:100]!r}")

    async def _waited(self, work: Callable[[], _T]) -> _T:
        """What `work` gives, in a thread. A client that leaves is not waited for; the memory server does what it was sent."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter, abandon_on_cancel=True)

    async def _asked(self, work: Callable[[], _T], *, bad_request: bool = False) -> _T:
        """Like `_waited`; trouble becomes an error of the protocol, the caller's own when `bad_request` may be the reason."""
        try:
            return await self._waited(work)
        except LightCallError as error:
            if bad_request and error.status in (400, 422):
                raise MCPError(code=types.INVALID_PARAMS, message="the cursor is none of this server's") from error
            raise _internal(error) from error
        except MemdirError as error:
            raise _internal(error) from error


@functools.cache
def _listed_tools(tools: tuple[Tool, ...]) -> tuple[types.Tool, ...]:
    return tuple(
        types.Tool(
            name=tool.name,
            title=tool.title,
            description=tool.description,
            input_schema=input_schema(tool),
            output_schema=output_schema(tool),
            annotations=types.ToolAnnotations(
                title=tool.title,
                read_only_hint=tool.reads_only,
                destructive_hint=tool.destroys,
                idempotent_hint=tool.repeatable,
                open_world_hint=False,
            ),
        )
        for tool in tools
    )


def _host(context: Context) -> str:
    """What a client calls itself, as `storedBy` takes it."""
    params = context.session.client_params
    name = "" if params is None else re.sub(r"[^\w.:/@-]+", "-", params.client_info.name)[:_HOST_MAX_CHARS].strip("-")
    return name or "unknown"


def _one_page(params: types.PaginatedRequestParams | None) -> None:
    """These lists have one page, so no cursor leads into them."""
    if params is not None and params.cursor is not None:
        raise MCPError(code=types.INVALID_PARAMS, message="the cursor is none of this server's")


def _failed(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)


def _no_resource(uri: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message="there is no such resource", data={"uri": uri[:200]})


def _internal(error: MemdirError) -> MCPError:
    return MCPError(code=types.INTERNAL_ERROR, message=trouble(error))


def _prompt(prompt: types.Prompt, text: str) -> types.GetPromptResult:
    message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.GetPromptResult(description=prompt.description, messages=[message])


_PROFILE: Final = types.Resource(
    name="profile", title="Profile", uri=_PROFILE_URI, mime_type=_MARKDOWN,
    description="what is known about the user and the current project in short",
)  # fmt: skip
_RECALL: Final = types.Prompt(
    name="recall", title="Recall", description="What do we know about a topic from earlier sessions?",
    arguments=[types.PromptArgument(name="topic", description="what to recall", required=True)],
)  # fmt: skip
_REMEMBER: Final = types.Prompt(
    name="remember", title="Remember this session", description="Store what a later session will need of this conversation.",
    arguments=[types.PromptArgument(name="hint", description="what matters most", required=False)],
)  # fmt: skip

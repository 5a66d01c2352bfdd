"""Models of OpenAI and what speaks like it, Anthropic, Google and others, through pydantic-ai (extra `llm`)."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from memdir.core.errors import UsageError
from memdir.llm.port import ContextOverflowError, Message, ModelError, Reply, ToolCall, ToolSpec, Usage

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model as Adapter

ENV_MODEL: Final = "MEMDIR_MODEL"
ENV_MODEL_URL: Final = "MEMDIR_MODEL_URL"
_TRIES: Final = 6
_WAIT_MAX_S: Final = 60.0
_TIMEOUT_S: Final = 600.0
"""Of one request: reasoning models think for minutes."""
_OUTPUT_MAX_TOKENS: Final = 16_384


def model(name: str | None = None, *, url: str | None = None) -> ProvidedModel:
    """The model `PROVIDER:NAME`, or the one that MEMDIR_MODEL names. Keys come from the providers' own variables
    (OPENAI_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY). `url` (MEMDIR_MODEL_URL) is the base address of another endpoint that
    speaks the provider's protocol; `openai:` with one needs no key.

    UsageError when no model is named, the extra is missing, or the provider is not known."""
    name = name or os.environ.get(ENV_MODEL) or ""
    url = url or os.environ.get(ENV_MODEL_URL) or None
    if not name:
        raise UsageError(
            "no language model is configured",
            hint=f"give --model PROVIDER:NAME or set {ENV_MODEL}, for example anthropic:claude-sonnet-5-5",
        )
    provider, colon, model_name = name.partition(":")
    if not colon or not model_name:
        raise UsageError(
            f"{name!r} is no PROVIDER:NAME",
            hint="for example openai:gpt-6-luna, anthropic:claude-sonnet-5-5, google:gemini-3.8-flash",
        )
    if importlib.util.find_spec("pydantic_ai") is None:
        raise UsageError("language models need the extra `llm`", hint="pip install 'memdir[llm]'")
    return ProvidedModel(_adapter(provider, model_name, url), name)


def _adapter(provider: str, name: str, url: str | None) -> Adapter:
    from pydantic_ai.exceptions import UserError
    from pydantic_ai.models import infer_model

    try:
        if provider == "openai":
            from pydantic_ai.models.openai import OpenAIChatModel
            from pydantic_ai.providers.openai import OpenAIProvider

            # A local endpoint asks for no key, but its client does.
            key = os.environ.get("OPENAI_API_KEY") or ("none" if url else None)
            return OpenAIChatModel(name, provider=OpenAIProvider(base_url=url, api_key=key))
        if url is None:
            return infer_model(f"{provider}:{name}")
        if provider == "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            return AnthropicModel(name, provider=AnthropicProvider(base_url=url))
        if provider == "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            return GoogleModel(name, provider=GoogleProvider(base_url=url))
        raise UsageError(f"{provider} takes no address of one's own", hint="openai, anthropic and google do")
    except UserError as error:
        raise UsageError(str(error)) from error
    except ImportError as error:
        raise UsageError(f"{provider} needs a library that is not installed: {error}") from error


class ProvidedModel:
    """See `port.Model`."""

    def __init__(self, adapter: Adapter, name: str, *, wait: Callable[[float], None] = time.sleep) -> None:
        self._adapter = adapter
        self._wait = wait
        self._lock = threading.Lock()
        """One request at a time: the adapter keeps its connections in one place."""
        self.name = name

    def ask(
        self,
        system: str,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Reply:
        """See `port.Model`. What may pass (429, 5xx, a lost connection) is tried again with growing pauses."""
        from pydantic_ai import exceptions

        passing = (
            exceptions.ModelRateLimitError,
            exceptions.ModelUnavailableError,
            exceptions.ModelServerError,
            exceptions.ModelConnectionError,
        )
        for attempt in range(_TRIES):
            try:
                return _reply(self._requested(system, messages, tools, schema))
            except exceptions.ModelContextWindowExceededError as error:
                raise ContextOverflowError(f"{self.name}: the messages are too long for it") from error
            except exceptions.ModelQuotaExceededError as error:
                raise ModelError(
                    f"{self.name}: the quota is used up", hint="raise it, then try again; nothing is lost"
                ) from error
            except passing as error:
                if attempt == _TRIES - 1:
                    raise ModelError(f"{self.name}: {error}", hint="try again later; nothing is lost") from error
                self._wait(_pause_s(error, attempt))
            except exceptions.ModelAuthenticationError as error:
                raise ModelError(
                    f"{self.name}: the key is refused", hint="check the provider's API key in the environment"
                ) from error
            except (exceptions.ModelAPIError, exceptions.AgentRunError) as error:
                raise ModelError(f"{self.name}: {error}") from error
        raise AssertionError("unreachable")

    def _requested(
        self, system: str, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, Any] | None
    ) -> ModelResponse:
        from pydantic_ai.direct import model_request
        from pydantic_ai.models import ModelRequestParameters
        from pydantic_ai.output import OutputObjectDefinition
        from pydantic_ai.settings import ModelSettings
        from pydantic_ai.tools import ToolDefinition

        parameters = ModelRequestParameters(
            function_tools=[
                ToolDefinition(name=one.name, description=one.description, parameters_json_schema=dict(one.parameters))
                for one in tools
            ],
            output_mode="text" if schema is None else "native",
            output_object=None if schema is None else OutputObjectDefinition(json_schema=dict(schema), name="answer"),
        )
        settings = ModelSettings(timeout=_TIMEOUT_S, max_tokens=_OUTPUT_MAX_TOKENS, cache=True)

        async def request() -> ModelResponse:
            # Its connections end with it: they belong to this event loop, and a handshake is nothing beside an answer.
            async with self._adapter:
                return await model_request(
                    self._adapter, _history(system, messages), model_settings=settings, model_request_parameters=parameters
                )

        with self._lock:
            return asyncio.run(request())


def _pause_s(error: Exception, attempt: int) -> float:
    said = (getattr(error, "headers", None) or {}).get("retry-after", "")
    try:
        return min(max(float(said), 0.0), _WAIT_MAX_S)
    except ValueError:
        return min(2.0**attempt, _WAIT_MAX_S)


def _history(system: str, messages: Sequence[Message]) -> list[ModelMessage]:
    from pydantic_ai.messages import (
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelRequestPart,
        ModelResponse,
        ModelResponsePart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    history: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []

    def close() -> None:
        if parts:
            history.append(ModelRequest(parts=list(parts), instructions=system))
            parts.clear()

    for one in messages:
        if one.role == "user":
            parts.append(UserPromptPart(content=one.text))
        elif one.role == "tool":
            parts.append(ToolReturnPart(tool_name=one.name, content=one.text, tool_call_id=one.call_id))
        elif one.echo:
            close()
            history.extend(ModelMessagesTypeAdapter.validate_json(one.echo))
        else:
            close()
            answered: list[ModelResponsePart] = [TextPart(content=one.text)] if one.text else []
            answered += [
                ToolCallPart(tool_name=call.name, args=dict(call.arguments or {}), tool_call_id=call.id) for call in one.calls
            ]
            history.append(ModelResponse(parts=answered))
    close()
    return history


def _reply(response: ModelResponse) -> Reply:
    from pydantic_ai.messages import ModelMessagesTypeAdapter, TextPart, ToolCallPart

    calls = tuple(
        ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=_arguments(part.args))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    usage = response.usage
    return Reply(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        calls=calls,
        usage=Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cache_read_tokens,
            usd=_price(response),
        ),
        echo=ModelMessagesTypeAdapter.dump_json([response]).decode(),
    )


def _arguments(given: str | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not isinstance(given, str):
        return dict(given or {})
    try:
        parsed = json.loads(given) if given.strip() else {}
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _price(response: ModelResponse) -> float | None:
    """By the price list that the library ships (no network); None for models that it does not know."""
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):
        return None

"""An address that a user's own model answers at: a JSON question, a JSON answer, both bounded.

The key goes as `Authorization: Bearer`. No redirect is followed, no proxy of the environment is used. Neither the address nor
the key is in an error's text.
"""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

from memdir.core.errors import MemdirError


class EndpointError(MemdirError):
    """It cannot be reached, does not answer in time, or refuses: another time it may."""


class AnswerError(MemdirError):
    """It answered, and with something else than was asked for."""


class Endpoint:
    """Keeps its connection open; any thread may ask."""

    def __init__(self, url: str, *, name: str, key: str = "") -> None:
        """`name` says in errors what is asked."""
        self._url = url
        self._name = name
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, follow_redirects=False, trust_env=False)

    def asked(self, body: object, *, timeout_s: float, max_bytes: int) -> Any:
        """The JSON of the answer, whole after `timeout_s`, not longer than `max_bytes`. EndpointError, AnswerError."""
        deadline = time.monotonic() + timeout_s
        data = bytearray()
        try:
            with self._client.stream("POST", self._url, json=body, timeout=timeout_s) as answer:
                if answer.status_code != 200:
                    raise EndpointError(f"{self._name} answered {answer.status_code}")
                for piece in answer.iter_bytes():
                    data += piece
                    if len(data) > max_bytes:
                        raise AnswerError(f"{self._name}'s answer has more than {max_bytes} bytes")
                    if time.monotonic() > deadline:
                        raise EndpointError(f"{self._name} took too long")
        except httpx.TimeoutException:
            raise EndpointError(f"{self._name} took too long") from None
        except httpx.HTTPError as error:
            raise EndpointError(f"{self._name} cannot be reached: {type(error).__name__}") from None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise AnswerError(f"{self._name}'s answer is not JSON") from None

"""An authority behind a URL, which is asked whether a call may be made."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import httpx

from iact.core.gate.clearance import ClearanceRequest
from iact.core.gate.gate import Answer

_LARGEST: Final = 64 * 1024
"""The most bytes of an answer."""
_LONGEST_REASON: Final = 500


class HttpClearance:
    """An authority behind a URL. Any failure (unreachable, slow, malformed, redirecting, oversized) is a denial."""

    def __init__(
        self,
        url: str,
        *,
        seconds: float,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._url = url
        self._seconds = seconds
        self._client = httpx.AsyncClient(
            follow_redirects=False, timeout=seconds, transport=transport, trust_env=False
        )

    async def ask(self, request: ClearanceRequest) -> Answer:
        """Ask the endpoint. Every fault of the endpoint is a no, with the reason."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._ask(request)
        except TimeoutError:
            return Answer(False, f"The clearance endpoint did not answer within {self._seconds:g} s.")
        except httpx.HTTPError as error:
            return Answer(False, f"The clearance endpoint can't be reached ({type(error).__name__}).")
        except (httpx.InvalidURL, ValueError) as error:
            return Answer(False, f"The clearance endpoint could not be asked ({type(error).__name__}).")

    async def _ask(self, request: ClearanceRequest) -> Answer:
        async with self._client.stream("POST", self._url, json=request.to_json()) as response:
            if response.status_code != 200:
                return Answer(False, f"The clearance endpoint answered with status {response.status_code}.")

            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _LARGEST:
                    return Answer(False, f"The clearance endpoint's answer is longer than {_LARGEST} bytes.")
        return read_answer(bytes(body))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def read_answer(body: bytes) -> Answer:
    """Parse an endpoint's answer. Only an object whose `allow` is the JSON value true is a yes."""
    try:
        data: object = json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return Answer(False, "The clearance endpoint's answer is not JSON.")

    if not isinstance(data, dict) or not isinstance(data.get("allow"), bool):
        return Answer(False, "The clearance endpoint's answer has no `allow` that is true or false.")

    reason = data.get("reason")
    if not isinstance(reason, str):
        reason = ""
    return Answer(data["allow"], reason[:_LONGEST_REASON])


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object without repeated names: two readers must not see two different answers."""
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands there twice")
    return fields

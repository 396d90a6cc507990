"""A transport over openai's own client, for those whose gateway needs what that client can do.

    client = openai.AsyncAzureOpenAI(...)          # or any other, with its own way to sign requests
    session = Session(path, transports=lambda endpoint: OpenAITransport(client))

It is several times slower than `judgekit.client.http`, which is the default. The client's own retries are switched off:
judgekit retries, counts and limits.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
import openai
import orjson

from judgekit.wire.types import Endpoint, NotConnectedError, TooLargeError

__all__ = ["OpenAITransport"]


class OpenAITransport:
    """Carries requests with a client of the openai package. Belongs to the event loop it is first used in."""

    def __init__(self, client: openai.AsyncOpenAI) -> None:
        """Use ``client``, its address and its key; the endpoint's ``base_url`` only names it."""
        self._client = client.with_options(max_retries=0)

    async def send(self, endpoint: Endpoint, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """POST the body; return (status, headers, body).

        Raises:
            NotConnectedError: no connection was made.
            TimeoutError: the client's own time-out ran out.
            TooLargeError: the completion, unpacked, has more bytes than a reply may have. The client itself reads what
                comes with an error status, whatever its size.
            ConnectionError: the connection broke.
        """
        values = orjson.loads(body)
        model, messages = values.pop("model"), values.pop("messages")
        completions = self._client.chat.completions.with_streaming_response
        try:
            async with completions.create(model=model, messages=messages, extra_body=values) as response:
                data = bytearray()
                async for part in response.iter_bytes():
                    data += part
                    if len(data) > endpoint.max_reply_bytes:
                        raise TooLargeError(endpoint)
                return response.status_code, response.headers, bytes(data)
        except openai.APIStatusError as problem:
            return problem.response.status_code, problem.response.headers, problem.response.content
        except (openai.APITimeoutError, httpx2.TimeoutException):
            raise TimeoutError from None
        except openai.APIConnectionError as problem:
            if isinstance(problem.__cause__, httpx2.ConnectError):
                raise NotConnectedError(str(problem.__cause__)) from None
            raise ConnectionError(f"the connection broke: {problem.__cause__ or problem}") from None
        except httpx2.RequestError as problem:
            raise ConnectionError(f"the connection broke: {problem or type(problem).__name__}") from None

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.close()

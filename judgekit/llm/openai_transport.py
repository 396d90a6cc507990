"""A transport over openai's own client, for those whose gateway needs what that client can do.

    client = openai.AsyncAzureOpenAI(...)          # or any other, with its own way to sign requests
    session = Session(path, transports=lambda endpoint: OpenAITransport(client))

It is several times slower than `judgekit.llm.http`, which is the default. The client's own retries are switched off:
judgekit retries, counts and limits.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
import openai
import orjson

from judgekit.llm.types import Endpoint, NotConnectedError

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
            ConnectionError: the connection broke.
        """
        try:
            response = await self._client.post("/chat/completions", cast_to=httpx2.Response, body=orjson.loads(body))
        except openai.APIStatusError as problem:
            response = problem.response
        except openai.APITimeoutError:
            raise TimeoutError from None
        except openai.APIConnectionError as problem:
            if isinstance(problem.__cause__, httpx2.ConnectError):
                raise NotConnectedError(str(problem.__cause__)) from None
            raise ConnectionError(f"the connection broke: {problem.__cause__ or problem}") from None
        return response.status_code, response.headers, response.content

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.close()

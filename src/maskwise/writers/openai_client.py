"""OpenAI's chat completions, and any server that speaks them (vLLM, llama.cpp, Ollama) by its base URL."""

import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, ParamSpec, TypeVar

import msgspec
import openai

from maskwise.writers.client import WriterError
from maskwise.writers.guarded_http import client_options, describe_redirect
from maskwise.writers.request import (
    Completion,
    CompletionRequest,
    parse_output,
    read_count,
)

P = ParamSpec("P")
R = TypeVar("R")

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
FINISHED = ("completed", "failed", "expired", "cancelled")


def _translate(function: Callable[P, R]) -> Callable[P, R]:
    """Raise the SDK's errors, after its own retries, as WriterError."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except openai.APIConnectionError as error:
            raise WriterError(
                f"OpenAI: {error.request.url}: {error} {error.__cause__ or ''}"
            ) from error
        except openai.APIStatusError as error:
            redirect = describe_redirect(error.response)
            raise WriterError(f"OpenAI: {redirect or error}") from error
        except openai.OpenAIError as error:
            raise WriterError(f"OpenAI: {error}") from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            # The SDK does not check what a server answers.
            raise WriterError(f"OpenAI: an invalid reply: {error}") from error

    return call


class OpenAIClient:
    """A model behind the chat completions API. Batches are used with the official address only."""

    provider = "openai"

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        max_retries: int = 6,
        needs_key: bool = True,
    ) -> None:
        self.model = model
        self.has_batches = base_url is None
        key = os.environ.get("OPENAI_API_KEY")
        if not key and needs_key and base_url is None:
            raise WriterError(
                "OpenAI: no key was found; set the environment variable OPENAI_API_KEY"
            )
        # Local servers need no key, but the SDK does not start without one.
        key = key or "none"
        try:
            self._sdk = openai.OpenAI(
                base_url=base_url,
                api_key=key,
                max_retries=max_retries,
                http_client=openai.DefaultHttpxClient(**client_options()),
            )
        except openai.OpenAIError as error:
            raise WriterError(f"OpenAI: {error}") from error

    def close(self) -> None:
        """Close the connections."""
        self._sdk.close()

    @_translate
    def complete(self, request: CompletionRequest) -> Completion:
        """Send one request and wait for its completion."""
        try:
            return to_completion(
                self._sdk.chat.completions.create(
                    **self._parameters(request)
                ).model_dump()
            )
        except openai.BadRequestError as error:
            return Completion(
                status="failed", reason=f"rejected by the provider: {error.message}"
            )

    @_translate
    def submit(self, requests: Mapping[str, CompletionRequest], label: str) -> str:
        """Upload the requests as a file and start a batch; the label is kept in its metadata."""
        lines = [
            {
                "custom_id": key,
                "method": "POST",
                "url": ENDPOINT,
                "body": self._parameters(request),
            }
            for key, request in requests.items()
        ]
        data = b"\n".join(map(msgspec.json.encode, lines))
        file = self._sdk.files.create(file=("requests.jsonl", data), purpose="batch")
        batch = self._sdk.batches.create(
            input_file_id=file.id,
            endpoint=ENDPOINT,
            completion_window="24h",
            metadata={"maskwise": label},
        )
        return batch.id

    @_translate
    def find_batch(
        self, label: str, *, keys: frozenset[str], since: float
    ) -> str | None:
        """The batch whose metadata holds the label."""
        for batch in self._sdk.batches.list():
            metadata = batch.metadata or {}
            if metadata.get("maskwise") == label:
                return batch.id
        return None

    @_translate
    def collect(self, batch: str) -> dict[str, Completion] | None:
        """The completions of a finished batch; None while it is running."""
        state = self._sdk.batches.retrieve(batch)
        if state.status not in FINISHED:
            return None
        completions = {}
        # Requests that failed are in a file of their own.
        for file in (state.output_file_id, state.error_file_id):
            if not file:
                continue
            for line in self._sdk.files.content(file).content.splitlines():
                entry = msgspec.json.decode(line, type=dict[str, Any])
                completion = _from_batch(entry)
                if completion is not None:
                    completions[str(entry.get("custom_id"))] = completion
        return completions

    def _parameters(self, request: CompletionRequest) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": request.text}]
        if request.image is not None:
            address = f"data:{request.image_type};base64,{request.image_base64}"
            content.insert(0, {"type": "image_url", "image_url": {"url": address}})
        schema = {"name": "output", "schema": request.schema, "strict": True}
        return {
            "model": self.model,
            "max_completion_tokens": request.max_tokens,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": content},
            ],
            "response_format": {"type": "json_schema", "json_schema": schema},
        }


def _from_batch(entry: dict[str, Any]) -> Completion | None:
    """A completion from a line of a batch's output or error file; None for a request that expired."""
    response = entry.get("response")
    error = entry.get("error")
    if response and response.get("status_code") == 200:
        return to_completion(response["body"])
    if error and error.get("code") == "batch_expired":
        return None
    message = error or (response or {}).get("body", {}).get("error") or {}
    return Completion(
        status="failed", reason=str(message.get("message", "no response"))
    )


def to_completion(body: dict[str, Any]) -> Completion:
    """A completion from the body of a chat completion."""
    usage = body.get("usage") or {}
    tokens: dict[str, Any] = {
        "input_tokens": read_count(usage.get("prompt_tokens")),
        "output_tokens": read_count(usage.get("completion_tokens")),
    }
    try:
        choice = body["choices"][0]
        message = choice["message"]
        refusal = message.get("refusal")
        finish_reason = choice.get("finish_reason")
        content = message.get("content") or ""
    except (KeyError, IndexError, TypeError, AttributeError):
        # Servers that only resemble the API answer with anything at all.
        return Completion(
            status="invalid", reason="the reply holds no message", **tokens
        )
    if refusal or finish_reason == "content_filter":
        reason = str(refusal or "content filter")
        return Completion(status="refused", reason=reason, **tokens)
    if finish_reason == "length":
        return Completion(
            status="truncated", reason="stopped by the token limit", **tokens
        )
    return parse_output(str(content), **tokens)

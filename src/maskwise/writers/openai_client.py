"""OpenAI's chat completions, and any server that speaks them (vLLM, llama.cpp, Ollama) by its base URL."""

import os
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
import openai

from maskwise.writers.client import WriterError
from maskwise.writers.guarded_http import (
    CONNECT_SECONDS,
    READ_SECONDS,
    client_options,
)
from maskwise.writers.request import (
    Completion,
    CompletionRequest,
    parse_output,
    read_count,
    shorten_reason,
)
from maskwise.writers.sdk_errors import (
    REJECTED,
    STRUCTURED_OUTPUT,
    translated_errors,
)

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
FINISHED = ("completed", "failed", "expired", "cancelled")


_translate = translated_errors("OpenAI", openai, openai.OpenAIError)


class OpenAIClient:
    """A model behind the chat completions API. Batches are used with the official address only.

    Servers that refuse structured output, or the present name of the token limit, are asked without them from then on.
    """

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
        self._is_plain = False
        self._token_field = "max_completion_tokens"
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
        # A retry of the SDK after a lost reply would be paid for and not recorded.
        limit = openai.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        sdk = self._sdk.with_options(max_retries=0, timeout=limit)
        while True:
            parameters = self._parameters(request)
            try:
                reply = sdk.chat.completions.create(**parameters)
                return to_completion(reply.model_dump(warnings=False))
            except openai.APIStatusError as error:
                if error.status_code not in REJECTED:
                    raise
                if not self._adapt(error.message, parameters):
                    reason = f"rejected by the provider: {error.message}"
                    return Completion(status="failed", reason=shorten_reason(reason))

    def _adapt(self, message: str, parameters: Mapping[str, Any]) -> bool:
        """Leave out what a server refused, in all later requests; False if it refused something else."""
        if "response_format" in parameters and STRUCTURED_OUTPUT.search(message):
            self._is_plain = True
            return True
        if "max_completion_tokens" in parameters and "max_completion" in message:
            self._token_field = "max_tokens"
            return True
        return False

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
        was_plain = self._is_plain
        # Requests that failed are in a file of their own.
        for file in (state.output_file_id, state.error_file_id):
            if not file:
                continue
            for line in self._sdk.files.content(file).content.splitlines():
                entry = msgspec.json.decode(line, type=dict[str, Any])
                completion = _from_batch(entry)
                if completion is None:
                    continue
                reason = completion.reason or ""
                has_failed = completion.status == "failed" and not was_plain
                if has_failed and STRUCTURED_OUTPUT.search(reason):
                    # Left out, so that it is submitted again, without a schema.
                    self._is_plain = True
                    continue
                completions[str(entry.get("custom_id"))] = completion
        return completions

    def _parameters(self, request: CompletionRequest) -> dict[str, Any]:
        is_plain = self._is_plain
        text = request.text_with_schema if is_plain else request.text
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if request.image is not None:
            address = f"data:{request.image_type};base64,{request.image_base64}"
            content.insert(0, {"type": "image_url", "image_url": {"url": address}})
        parameters: dict[str, Any] = {
            "model": self.model,
            self._token_field: request.output_limit,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": content},
            ],
        }
        if request.effort is not None:
            parameters["reasoning_effort"] = request.effort
        if not is_plain:
            schema = {"name": "output", "schema": request.schema, "strict": True}
            parameters["response_format"] = {
                "type": "json_schema",
                "json_schema": schema,
            }
        return parameters


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

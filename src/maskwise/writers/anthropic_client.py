"""Anthropic's Messages API: structured output, images, message batches."""

from collections.abc import Mapping
from typing import Any

import anthropic

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

CLOCK_SKEW = 300.0
"""Seconds by which the provider's clock may differ from ours."""


_translate = translated_errors("Anthropic", anthropic, anthropic.AnthropicError)


class AnthropicClient:
    """A model of the Messages API.

    Models that refuse structured output, or a number of tokens for thinking, are asked without them from then on.
    """

    provider = "anthropic"
    has_batches = True

    def __init__(
        self,
        *,
        model: str,
        base_url: str | None = None,
        max_retries: int = 6,
        needs_key: bool = True,
    ) -> None:
        self.model = model
        self._is_plain = False
        self._is_adaptive = False
        try:
            self._sdk = anthropic.Anthropic(
                base_url=base_url,
                max_retries=max_retries,
                http_client=anthropic.DefaultHttpxClient(**client_options()),
            )
        except anthropic.AnthropicError as error:
            raise WriterError(f"Anthropic: {error}") from error
        # The SDK starts without a key and fails at the first request.
        if needs_key and not (
            self._sdk.api_key or self._sdk.auth_token or self._sdk.credentials
        ):
            raise WriterError(
                "Anthropic: no key was found; set the environment variable ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
            )

    def close(self) -> None:
        """Close the connections."""
        self._sdk.close()

    @_translate
    def complete(self, request: CompletionRequest) -> Completion:
        """Send one request and wait for its completion."""
        # A retry of the SDK after a lost reply would be paid for and not recorded.
        limit = anthropic.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
        sdk = self._sdk.with_options(max_retries=0, timeout=limit)
        while True:
            parameters = self._parameters(request)
            try:
                return to_completion(sdk.messages.create(**parameters))
            except anthropic.APIStatusError as error:
                if error.status_code not in REJECTED:
                    raise
                if not self._adapt(error.message, parameters):
                    reason = f"rejected by the provider: {error.message}"
                    return Completion(status="failed", reason=shorten_reason(reason))

    def _adapt(self, message: str, parameters: Mapping[str, Any]) -> bool:
        """Leave out what a model refused, in all later requests; False if it refused something else."""
        thinking = parameters.get("thinking", {})
        if thinking.get("type") == "enabled" and "thinking" in message:
            self._is_adaptive = True
            return True
        has_format = "format" in parameters.get("output_config", {})
        if has_format and STRUCTURED_OUTPUT.search(message):
            self._is_plain = True
            return True
        return False

    @_translate
    def submit(self, requests: Mapping[str, CompletionRequest], label: str) -> str:
        """Send a batch. The API keeps no label: `find_batch` recognises a batch by its keys."""
        entries: Any = [
            {"custom_id": key, "params": self._parameters(request)}
            for key, request in requests.items()
        ]
        return self._sdk.messages.batches.create(requests=entries).id

    @_translate
    def find_batch(
        self, label: str, *, keys: frozenset[str], since: float
    ) -> str | None:
        """The newest batch of as many requests since then whose results, once it has ended, have these keys."""
        for batch in self._sdk.messages.batches.list():
            if batch.created_at.timestamp() < since - CLOCK_SKEW:
                return None
            counts = batch.request_counts
            total = (
                counts.processing
                + counts.succeeded
                + counts.errored
                + counts.canceled
                + counts.expired
            )
            if total == len(keys) and self._may_hold(batch, keys):
                return batch.id
        return None

    def _may_hold(self, batch: Any, keys: frozenset[str]) -> bool:
        """Whether an ended batch has these keys; one that is running cannot be told and counts as ours."""
        if batch.processing_status != "ended":
            return True
        return {
            entry.custom_id for entry in self._sdk.messages.batches.results(batch.id)
        } == keys

    @_translate
    def collect(self, batch: str) -> dict[str, Completion] | None:
        """The completions of an ended batch; None while it is running."""
        if self._sdk.messages.batches.retrieve(batch).processing_status != "ended":
            return None
        completions = {}
        was_plain = self._is_plain
        for entry in self._sdk.messages.batches.results(batch):
            result = entry.result
            if result.type == "succeeded":
                completions[entry.custom_id] = to_completion(result.message)
            elif result.type == "errored":
                reason = result.error.error.message
                if STRUCTURED_OUTPUT.search(reason) and not was_plain:
                    # Left out, so that it is submitted again, without a schema.
                    self._is_plain = True
                    continue
                completions[entry.custom_id] = Completion(
                    status="failed", reason=shorten_reason(reason)
                )
        return completions

    def _parameters(self, request: CompletionRequest) -> dict[str, Any]:
        is_plain = self._is_plain
        text = request.text_with_schema if is_plain else request.text
        content: list[dict[str, Any]] = [{"type": "text", "text": text}]
        if request.image is not None:
            source = {
                "type": "base64",
                "media_type": request.image_type,
                "data": request.image_base64,
            }
            content.insert(0, {"type": "image", "source": source})
        parameters: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.output_limit,
            "system": request.system,
            "messages": [{"role": "user", "content": content}],
        }
        output: dict[str, Any] = {}
        if not is_plain:
            output["format"] = {"type": "json_schema", "schema": request.schema}
        if request.effort is not None:
            output["effort"] = request.effort
        if output:
            parameters["output_config"] = output
        if request.thinking_tokens:
            # Models take either an effort or a number of tokens, which then limits the reply.
            is_adaptive = self._is_adaptive or request.effort is not None
            parameters["thinking"] = (
                {"type": "adaptive"}
                if is_adaptive
                else {"type": "enabled", "budget_tokens": request.thinking_tokens}
            )
        return parameters


def to_completion(message: Any) -> Completion:
    """A completion from a message of the API."""
    usage = getattr(message, "usage", None)
    tokens: dict[str, Any] = {
        "input_tokens": read_count(getattr(usage, "input_tokens", 0)),
        "output_tokens": read_count(getattr(usage, "output_tokens", 0)),
    }
    stop_reason = getattr(message, "stop_reason", None)
    if stop_reason == "refusal":
        return Completion(status="refused", reason="the model refused", **tokens)
    if stop_reason in ("max_tokens", "model_context_window_exceeded"):
        return Completion(
            status="truncated", reason=f"stopped by {stop_reason}", **tokens
        )
    try:
        parts = [block.text for block in message.content if block.type == "text"]
        text = "".join(parts)
    except (TypeError, AttributeError):
        # Servers that only resemble the API answer with anything at all.
        return Completion(
            status="invalid", reason="the reply holds no message", **tokens
        )
    return parse_output(text, **tokens)

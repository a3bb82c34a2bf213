"""What requests cost: prices per model as data, and an estimate before anything is sent."""

import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.writers.request import Completion, CompletionRequest

PRICES = Path(__file__).with_name("prices.yaml")

CHARACTERS_PER_TOKEN = 4.0
"""English text, about; a schema and its structural tokens count like text."""

PIXELS_PER_TOKEN = 750.0
"""Image tokens as Anthropic documents them: width x height / 750."""

TILE = 512
SHORT_SIDE = 768
"""OpenAI's tiles: an image is scaled down to this shorter side and cut into tiles."""

PATCH = 32
MAX_PATCHES = 1536
"""OpenAI's patches, for its small models; a larger image is scaled down to this many."""


TOKEN_MARGIN = 1.3
"""Tokenizers make up to this many times as many tokens of JSON and rare words as the estimate says."""


class ModelPrice(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens. batch: factor for batch requests.

    An image costs its area over `pixels_per_token`; or `image_base` tokens and `tile` for each tile; or `patch` tokens
    for each patch. Providers document one of these for each model. thinking: tokens that a reasoning model is given
    before it answers, unless it is told otherwise.
    """

    input: float
    output: float
    batch: float = 1.0
    pixels_per_token: float = PIXELS_PER_TOKEN
    image_base: int = 0
    tile: int | None = None
    patch: float | None = None
    thinking: int = 0


class Prices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices of models by name, as of a date, from a source."""

    as_of: str
    source: str
    models: dict[str, ModelPrice]

    def find(self, model: str) -> ModelPrice:
        """The price of a model, by its name or the longest listed name it begins with."""
        names = sorted(
            (name for name in self.models if model.startswith(name)), key=len
        )
        if not names:
            raise MaskwiseError(
                f"no price is known for model {model!r}; pass --prices FILE with one (known: "
                f"{', '.join(sorted(self.models))})"
            )
        return self.models[names[-1]]


class CostEstimate(NamedTuple):
    """What a run would send: calls, tokens and US dollars. thinking_tokens: those of the output tokens that a reasoning
    model may use before it answers, at most.
    """

    calls: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cost: float


def load_prices(path: str | Path | None = None) -> Prices:
    """Prices from a YAML file; those that ship with the package if no file is given."""
    file = Path(path or PRICES)
    try:
        return msgspec.yaml.decode(file.read_bytes(), type=Prices)
    except (OSError, msgspec.MsgspecError) as error:
        raise MaskwiseError(f"{file} is not a price list: {error}") from error


def token_cost(completion: Completion, price: ModelPrice, *, batch: bool) -> float:
    """What a completion cost, in US dollars."""
    full = (
        completion.input_tokens * price.input + completion.output_tokens * price.output
    ) / 1e6
    return full * (price.batch if batch else 1.0)


def worst_cost(request: CompletionRequest, price: ModelPrice, *, batch: bool) -> float:
    """What a request costs at most, in US dollars: its reply uses all the tokens it may."""
    answered = Completion(
        status="ok",
        input_tokens=math.ceil(TOKEN_MARGIN * estimate_tokens(request, price)),
        output_tokens=request.output_limit,
    )
    return token_cost(answered, price, batch=batch)


def estimate_tokens(request: CompletionRequest, price: ModelPrice) -> int:
    """About how many input tokens a request has."""
    text = (
        len(request.system)
        + len(request.text)
        + len(msgspec.json.encode(request.schema))
    )
    tokens = text / CHARACTERS_PER_TOKEN
    if request.image is not None:
        tokens += image_tokens(*_image_size(request.image), price)
    return math.ceil(tokens)


def image_tokens(width: int, height: int, price: ModelPrice) -> float:
    """About how many input tokens an image has."""
    if price.patch is not None:
        return price.patch * min(
            MAX_PATCHES, math.ceil(width / PATCH) * math.ceil(height / PATCH)
        )
    if price.tile is not None:
        scale = min(1.0, SHORT_SIDE / min(width, height))
        tiles = math.ceil(width * scale / TILE) * math.ceil(height * scale / TILE)
        return price.image_base + price.tile * tiles
    return width * height / price.pixels_per_token


def estimate(
    requests: Iterable[CompletionRequest],
    price: ModelPrice,
    *,
    output_tokens: int,
    batch: bool,
) -> CostEstimate:
    """What requests would cost if each were answered with `output_tokens` tokens, after all the thinking it may do."""
    calls = 0
    input_tokens = 0
    thinking_tokens = 0
    for request in requests:
        calls += 1
        input_tokens += estimate_tokens(request, price)
        thinking_tokens += request.thinking_tokens
    answered = Completion(
        status="ok",
        input_tokens=input_tokens,
        output_tokens=calls * output_tokens + thinking_tokens,
    )
    return CostEstimate(
        calls=calls,
        input_tokens=input_tokens,
        output_tokens=answered.output_tokens,
        thinking_tokens=thinking_tokens,
        cost=token_cost(answered, price, batch=batch),
    )


def _image_size(data: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(data)) as image:
        return image.size

"""Pretrained models of transformers: from a folder or from the Hugging Face hub, as safetensors only."""

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from huggingface_hub import constants, get_session
from transformers import CONFIG_MAPPING, AutoConfig, PreTrainedModel
from transformers.utils import cached_file, logging

from maskwise.errors import ModelError, UnknownNameError
from maskwise.models.vlm.config import Pretrained
from maskwise.models.vlm.segmenter import FAMILIES as SEGMENTER_FAMILIES
from maskwise.models.vlm.vision_language import FAMILIES as LANGUAGE_FAMILIES

TIMEOUT = 5.0
"""Seconds after which the hub counts as out of reach."""


def read_architecture(part: Pretrained, *, shapes_only: bool = False) -> Any:
    """The transformers config of a part: that of its hub name or folder, or the one given for a part without a name.

    shapes_only: the one given, if there is one, also for a part with a name, which then need not be on this machine.
    """
    if part.config is not None and (part.name is None or shapes_only):
        fields = copy.deepcopy(part.config)
        kind = fields.pop("model_type")
        if kind not in CONFIG_MAPPING:
            raise UnknownNameError(
                "model_type", str(kind), [*LANGUAGE_FAMILIES, *SEGMENTER_FAMILIES]
            )
        return AutoConfig.for_model(kind, **fields)
    name = str(part.name)
    try:
        return AutoConfig.from_pretrained(
            name, trust_remote_code=False, **loading_options(name)
        )
    except OSError as error:
        raise missing_weights(name, error) from None


def load_weights(
    model_class: type[PreTrainedModel], name: str | None, **options: Any
) -> tuple[PreTrainedModel, list[str]]:
    """A model with the weights of a hub name or folder, as safetensors only, and the names of those that are missing.

    options: of `from_pretrained`; with `config` and `state_dict`, name is None.
    """
    is_local = name is None or Path(name).is_dir()
    options |= {} if name is None else loading_options(name)
    try:
        with quiet(progress=not is_local):
            model, report = model_class.from_pretrained(
                name, use_safetensors=True, output_loading_info=True, **options
            )
    except OSError as error:
        raise missing_weights(str(name), error) from None
    return model, sorted(report["missing_keys"])


def read_chat_template(source: str) -> str:
    """The chat template that a processor, not its tokenizer, was saved with. source: a hub name or folder."""
    for name in ("chat_template.jinja", "chat_template.json"):
        path = cached_file(
            source,
            name,
            _raise_exceptions_for_missing_entries=False,
            **loading_options(source),
        )
        if path is not None:
            text = Path(path).read_text()
            return (
                str(json.loads(text)["chat_template"])
                if name.endswith("json")
                else text
            )
    raise ModelError(
        f"{source}: no chat template; expected one in tokenizer_config.json or chat_template.jinja"
    )


def missing_weights(name: str, error: OSError) -> ModelError:
    """The error for a model that cannot be loaded: it says what to run."""
    reason = (
        str(error).strip().splitlines()[0]
        if str(error).strip()
        else type(error).__name__
    )
    return ModelError(
        f"{name}: the model cannot be loaded ({reason}). Expected a folder, or a hub name and a connection. To use it "
        f"offline, run `hf download {name}` on a machine with a connection and give the folder as `name`"
    )


def loading_options(name: str) -> dict[str, bool]:
    """Options of `from_pretrained` for a hub name or folder: without a connection, only files on this machine.

    The client of the hub would repeat its request for half a minute, for each file.
    """
    return {"local_files_only": not Path(name).is_dir() and not is_hub_reachable()}


@cache
def is_hub_reachable() -> bool:
    """True if the hub (or HF_ENDPOINT) sends any response; asked once per process."""
    try:
        get_session().head(constants.ENDPOINT, timeout=TIMEOUT)
    except Exception:  # its type depends on the HTTP library of the hub's client
        return False
    return True


@contextmanager
def quiet(*, progress: bool = False) -> Iterator[None]:
    """Without warnings of transformers and, unless `progress`, without its progress bars."""
    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    if not progress:
        logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()

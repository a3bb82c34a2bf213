"""Models by name: bundled ones, those of installed packages, any Python factory, a command, a server.

    load_model("tiny")                                    bundled; `maskwise ls models` lists them
    load_model("oracle", noise=3)                         options are passed to the factory
    load_model("package.module:factory", threads=2)       any Python class or function that returns a model
    load_model("command: python their_script.py")         another environment or language (docs/adapters.md)
    load_model("http://localhost:8000")                   a server: `maskwise serve`

Another package adds a model with an entry point of the group `maskwise.models` that names a factory.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import msgspec

from maskwise.errors import MaskwiseError, ModelError, UnknownNameError, did_you_mean
from maskwise.harness.predictor import GroundTruthPredictor, Model, Predictor

GROUP = "maskwise.models"


class BuiltIn(NamedTuple):
    """The path of a model's factory, as text so that it is imported only when needed, a description, and what to do
    where the model cannot be made.
    """

    factory: str
    line: str
    advice: str = ""


ADAPTER_ADVICE = "; `maskwise adapters` says what to install, where the weights are and how to call it"


def _baseline(name: str, line: str) -> BuiltIn:
    return BuiltIn(f"maskwise.models.baselines:{name}", f"baseline: {line}")


BUILT_IN = {
    "tiny": BuiltIn(
        "maskwise.models.tiny:load",
        "the bundled model, small, for images of the world benchmark",
    ),
    "vlm": BuiltIn(
        "maskwise.models.vlm.predictor:load",
        "a trained vision-language model with mask decoders; --model-option checkpoint=FOLDER (extra vlm)",
    ),
    "photo": BuiltIn(
        "maskwise.models.photo:load",
        "photographs: proposals, a choice by words or by a language model, visible and amodal masks",
    ),
    "sam3": BuiltIn(
        "maskwise.models.adapters.sam3:Sam3Predictor",
        "SAM 3 of transformers: noun phrases to masks; --model-option checkpoint=FOLDER (extra vlm)",
        ADAPTER_ADVICE,
    ),
    "visionreasoner": BuiltIn(
        "maskwise.models.adapters.visionreasoner:VisionReasoner",
        "VisionReasoner: Qwen2.5-VL thinks and gives boxes, SAM 2 masks; --model-option checkpoint=FOLDER (extra vlm)",
        ADAPTER_ADVICE,
    ),
    "sa2va": BuiltIn(
        "maskwise.models.adapters.sa2va:Sa2va",
        "Sa2VA: Qwen-VL answers with [SEG] tokens, SAM 2 masks; --model-option checkpoint=FOLDER (extra vlm)",
        ADAPTER_ADVICE,
    ),
    "oracle": BuiltIn(
        "maskwise.harness.oracle:Oracle",
        "the ground truth with adjustable errors, to test metrics",
    ),
    "text-blind": _baseline(
        "text_blind", "tiny, every question replaced by an empty one"
    ),
    "image-blind": _baseline("image_blind", "tiny, every image replaced by a grey one"),
    "whole-image": _baseline("whole_image", "one region, the whole image"),
    "visible-copy": _baseline(
        "visible_copy", "tiny, amodal masks replaced by its visible masks"
    ),
    "convex-hull": _baseline(
        "convex_hull",
        "tiny, amodal masks replaced by convex hulls of its visible masks, clipped to occluders",
    ),
    "oracle-detector": _baseline(
        "oracle_detector", "tiny with ground-truth objects (world images only)"
    ),
    "oracle-mask-type": _baseline(
        "oracle_mask_type", "tiny with the ground-truth mask type"
    ),
    "oracle-grounder": _baseline(
        "oracle_grounder", "tiny with the ground-truth targets among its detections"
    ),
    "oracle-masks": _baseline(
        "oracle_masks",
        "tiny with ground-truth masks for the targets it selected correctly",
    ),
}

SCHEMES = {
    "command:": BuiltIn(
        "maskwise.harness.subprocess_model:SubprocessModel",
        "a program that exchanges JSON lines (docs/adapters.md)",
    ),
    "http://": BuiltIn(
        "maskwise.harness.http_model:HttpModel", "a server such as `maskwise serve`"
    ),
    "https://": BuiltIn("maskwise.harness.http_model:HttpModel", "the same, encrypted"),
}
"""Prefixes of specs that are not names. The factory's first argument is the command, or the whole address."""


def list_models() -> dict[str, str]:
    """A description of every model known by name: bundled ones, and those of installed packages."""
    ours = {name: built_in.line for name, built_in in BUILT_IN.items()}
    return ours | {
        point.name: f"from {point.value}"
        for point in _points()
        if point.name not in ours
    }


def list_question_models() -> dict[str, str]:
    """A description of the models known by name that are installed, need no option and are given questions alone."""
    return {
        name: line for name, line in list_models().items() if _takes_questions(name)
    }


def load_model(spec: str, **options: Any) -> Model:
    """The model of a name, `package.module:factory`, `command: ...` or address, made with these options.

    ModelError if an option is unknown or its value does not have the annotated type.
    """
    scheme = next((start for start in SCHEMES if spec.startswith(start)), None)
    if scheme is None:
        return _make(_find_factory(spec), (), options, spec)
    text = spec.removeprefix("command:").strip()
    return _make(_import(SCHEMES[scheme].factory, spec), (text,), options, spec)


def parse_options(given: Iterable[str]) -> dict[str, Any]:
    """Options written as KEY=VALUE. A value that is valid JSON (2, 0.5, true, null) is decoded, any other is text."""
    options: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.isidentifier():
            raise ModelError(
                f"model option {text!r}: expected KEY=VALUE, for example noise=2"
            )
        try:
            options[key] = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            options[key] = value
    return options


def _find_factory(spec: str) -> Callable[..., Any]:
    if spec in BUILT_IN:
        return _import(BUILT_IN[spec].factory, spec)
    point = next((point for point in _points() if point.name == spec), None)
    if point is not None:
        return _import(point.value, spec)
    if ":" in spec:
        # As with `python -m`, a script in the working directory can be imported.
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.insert(0, here)
        return _import(spec, spec)
    known = [*list_models(), "package.module:factory", "command: ...", "http://..."]
    raise UnknownNameError("model", spec, known)


def _takes_questions(name: str) -> bool:
    """Whether a factory can be imported, called without arguments, and says that it returns a Predictor."""
    try:
        factory = _find_factory(name)
        parameters = inspect.signature(factory).parameters.values()
        kind = (
            factory
            if isinstance(factory, type)
            else get_type_hints(factory).get("return")
        )
    except (MaskwiseError, NameError, TypeError, ValueError):
        return False
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        one
        for one in parameters
        if one.default is one.empty and one.kind not in optional
    ]
    return not needed and (kind is None or hasattr(kind, "predict"))


def _import(place: str, spec: str) -> Callable[..., Any]:
    module, _, path = place.partition(":")
    try:
        found: Any = importlib.import_module(module.strip())
        for name in path.strip().split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        raise ModelError(
            f"model {spec!r}: cannot load {place}: {error}{_advice(spec)}"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a user's module runs when it is imported
        raise ModelError(
            f"model {spec!r}: cannot load {place}: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ModelError(
            f"model {spec!r}: {place} is a {type(found).__name__}, not a factory"
        )
    factory: Callable[..., Any] = found
    return factory


def _make(
    factory: Callable[..., Any],
    given: tuple[str, ...],
    options: dict[str, Any],
    spec: str,
) -> Model:
    _check_options(factory, given, options, spec)
    try:
        model = factory(*given, **options)
    except (MaskwiseError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise ModelError(
            f"model {spec!r} could not be opened: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(model, Predictor | GroundTruthPredictor):
        raise ModelError(
            f"model {spec!r}: a {type(model).__name__} has no predict(image, questions); "
            "maskwise.harness.predictor describes the interface"
        )
    return model


def _check_options(
    factory: Callable[..., Any],
    given: tuple[str, ...],
    options: dict[str, Any],
    spec: str,
) -> None:
    try:
        signature = inspect.signature(factory)
    except (
        TypeError,
        ValueError,
    ):  # some built-in callables have none; they check by themselves
        return
    try:
        signature.bind(*given, **options)
    except TypeError as error:
        known = list(signature.parameters)[len(given) :]
        unknown = next((name for name in options if name not in known), "")
        raise ModelError(
            f"model {spec!r}: {error}; its options: {', '.join(known) or 'none'}{did_you_mean(unknown, known)}"
            f"{_advice(spec)}"
        ) from None
    for name, kind in _option_types(factory).items():
        if name in options:
            _check_type(name, options[name], kind, spec)


def _advice(spec: str) -> str:
    return BUILT_IN[spec].advice if spec in BUILT_IN else ""


def _option_types(factory: Callable[..., Any]) -> dict[str, Any]:
    """The annotated types of a factory's parameters; none if they cannot be resolved."""
    target: Any = factory
    try:
        return get_type_hints(target.__init__ if isinstance(factory, type) else target)
    except (NameError, TypeError, AttributeError):
        return {}


def _check_type(name: str, value: Any, kind: Any, spec: str) -> None:
    """Refuse a value of another type. Types that are not plain data, such as paths or objects, are not checked."""
    plain = [
        one
        for one in get_args(kind) or (kind,)
        if one in (int, float, bool, str, type(None))
    ]
    if len(plain) != len(get_args(kind) or (kind,)):
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        shown = getattr(kind, "__name__", str(kind))
        raise ModelError(
            f"model {spec!r}: option {name} is {value!r}; expected {shown}"
        ) from None


def _points() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))

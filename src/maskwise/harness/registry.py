"""Predictors by name: bundled ones, those of installed packages, any Python factory, a command, a server.

    make_predictor("tiny")                                bundled; `maskwise ls models` lists them
    make_predictor("oracle", noise=3)                     options are passed to the factory
    make_predictor("package.module:factory", threads=2)   any Python class or function that returns a model
    make_predictor("command: python their_script.py")     another environment (docs/guides/model_exchange.md)
    make_predictor("http://localhost:8000")               a server: `maskwise serve`

docs/extending.md shows how another package adds one.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_type_hints

import msgspec

from maskwise.errors import (
    MaskwiseError,
    MissingDependencyError,
    ModelError,
    did_you_mean,
)
from maskwise.harness.predictor import GroundTruthPredictor, Model, Predictor
from maskwise.registry import MODELS

ADAPTERS = ("sam3", "visionreasoner", "sa2va")
ADAPTER_ADVICE = "; `maskwise adapters` says what to install, where the weights are and how to call it"
"""Models of other authors, and what is said where one of them cannot be made."""

PLAIN_TYPES = (int, float, bool, str, type(None))
"""Types of options whose values are checked."""

SCHEMES = {
    "command:": "maskwise.harness.subprocess_model:SubprocessModel",
    "http://": "maskwise.harness.http_model:HttpModel",
    "https://": "maskwise.harness.http_model:HttpModel",
}
"""Prefixes of specs that are not names. The factory's first argument is the command, or the whole address."""


def list_question_models() -> dict[str, str]:
    """A description of the models known by name that are installed, need no option and are given questions alone."""
    return {
        name: line for name, line in MODELS.list().items() if _takes_questions(name)
    }


def make_predictor(spec: str, **options: Any) -> Model:
    """The model of a name, `package.module:factory`, `command: ...` or address, made with these options.

    ModelError if an option is unknown or its value does not have the annotated type.
    """
    scheme = next((start for start in SCHEMES if spec.startswith(start)), None)
    if scheme is None:
        return _make(_find_factory(spec), (), options, spec)
    text = spec.removeprefix("command:").strip()
    return _make(_find_factory(SCHEMES[scheme]), (text,), options, spec)


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
    try:
        factory = MODELS.load(spec, object)
    except MissingDependencyError as error:
        if spec not in ADAPTERS:
            raise
        raise ModelError(f"{error}{ADAPTER_ADVICE}") from error
    if not callable(factory):
        raise ModelError(
            f"model {spec!r} is a {type(factory).__name__}, not a factory; expected a "
            "class or a function that returns a model"
        )
    return factory


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
        parameter
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in optional
    ]
    return not needed and (kind is None or hasattr(kind, "predict"))


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
    return ADAPTER_ADVICE if spec in ADAPTERS else ""


def _option_types(factory: Callable[..., Any]) -> dict[str, Any]:
    """The annotated types of a factory's parameters; none if they cannot be resolved."""
    target: Any = factory
    try:
        return get_type_hints(target.__init__ if isinstance(factory, type) else target)
    except (NameError, TypeError, AttributeError):
        return {}


def _check_type(name: str, value: Any, kind: Any, spec: str) -> None:
    """Refuse a value of another type. Types that are not plain data, such as paths or objects, are not checked."""
    alternatives = get_args(kind) or (kind,)
    if any(item not in PLAIN_TYPES for item in alternatives):
        return
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        shown = getattr(kind, "__name__", str(kind))
        raise ModelError(
            f"model {spec!r}: option {name} is {value!r}; expected {shown}"
        ) from None

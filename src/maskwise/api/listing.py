"""`list_models` and the like: what is known by name, with one line about each."""

from maskwise.registry import BENCHMARKS, FORMATS, MODELS, PROTOCOLS


def list_models() -> dict[str, str]:
    """The models that `load_model` knows by name, with a description of each."""
    return MODELS.list()


def list_benchmarks() -> dict[str, str]:
    """The published benchmarks that `maskwise read` can convert, with title and official protocol."""
    return BENCHMARKS.list()


def list_formats() -> dict[str, str]:
    """The annotation formats that `maskwise read` can convert, with the title of each."""
    return FORMATS.list()


def list_protocols() -> dict[str, str]:
    """The scoring rules, with a description of each."""
    return PROTOCOLS.list()

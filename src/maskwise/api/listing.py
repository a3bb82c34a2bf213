"""`list_models` and its kin: what is known by name, with one line about each."""

from maskwise.benchmarks import list_benchmarks as known_benchmarks
from maskwise.formats import list_formats as known_formats
from maskwise.harness.registry import list_models as known_models
from maskwise.protocols import PROTOCOLS


def list_models() -> dict[str, str]:
    """The models that `load_model` knows by name, with a description of each."""
    return known_models()


def list_benchmarks() -> dict[str, str]:
    """The published benchmarks that `maskwise read` can convert, with title and official protocol."""
    return {
        name: f"{benchmark.title}; protocol {benchmark.protocol}"
        for name, benchmark in known_benchmarks().items()
    }


def list_formats() -> dict[str, str]:
    """The annotation formats that `maskwise read` can convert, with the title of each."""
    return {name: format.title for name, format in known_formats().items()}


def list_protocols() -> dict[str, str]:
    """The scoring rules, with a description of each."""
    return {name: protocol.description for name, protocol in PROTOCOLS.items()}

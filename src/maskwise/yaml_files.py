"""YAML files as typed records, read with limits: `read_yaml(path, BenchmarkCard)`."""

from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from maskwise.errors import FormatError

T = TypeVar("T")

MAX_BYTES = 2**20
"""The largest file read; field mappings, cards and tables are much smaller."""

MAX_DEPTH = 50
"""The deepest nesting. PyYAML needs a second for a thousand open brackets."""


def read_yaml(path: Path, type: type[T]) -> T:
    """A YAML file as `type`; FormatError if it cannot be read or has other fields.

    Anchors, aliases and merge keys are refused: they can expand without bound.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise FormatError(
                f"{path} has {size} bytes; a YAML file may have at most {MAX_BYTES}"
            )
        content = path.read_bytes()
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}") from None
    byte_order_mark = b"\xef\xbb\xbf"
    text = content.removeprefix(byte_order_mark)
    try:
        return msgspec.convert(yaml.load(text, _LimitedLoader), type)
    except RecursionError:
        reason = "nested too deeply"
    except (yaml.YAMLError, msgspec.ValidationError, UnicodeError) as error:
        reason = " ".join(str(error).split())
    raise FormatError(f"{path} does not follow its format: {reason}")


class _LimitedLoader(yaml.SafeLoader):
    """PyYAML's safe loader without aliases and deep nesting; every error names its line and column."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        events: Any = self  # PyYAML declares no types for its event methods.
        if self.check_event(yaml.AliasEvent):
            raise yaml.composer.ComposerError(
                None,
                None,
                "aliases (*name) and merge keys (<<) are not allowed",
                events.peek_event().start_mark,
            )
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(
                None, None, "nested too deeply", events.peek_event().start_mark
            )
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, OverflowError) as error:
            # A scalar such as 2020-13-45 looks like a date but is not one.
            raise yaml.constructor.ConstructorError(
                None, None, str(error), node.start_mark
            ) from None

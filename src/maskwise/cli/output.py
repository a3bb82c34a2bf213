"""What commands print with: JSON in one form."""

from typing import Any

import msgspec

from maskwise.terminal import echo


def print_json(value: Any) -> None:
    """Print records, dicts and lists as indented JSON, in UTF-8."""
    encoded = msgspec.json.encode(value)
    echo(msgspec.json.format(encoded, indent=2).decode())

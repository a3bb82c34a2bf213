"""What commands print with: JSON in one form, and texts that may go to a file."""

from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import StoreError
from maskwise.terminal import echo, safe_text


def write_text(text: str, out: Path | None) -> None:
    """Write to a file, or print where there is none."""
    if out is None:
        echo(text, nl=False)
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        # People look at files in a terminal, too.
        out.write_text(safe_text(text), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{out} cannot be written: {error}") from None
    echo(f"wrote {out} ({len(text.encode()) / 1e6:.1f} MB)", err=True)


def print_json(value: Any) -> None:
    """Print records, dicts and lists as indented JSON, in UTF-8."""
    echo(format_json(value), nl=False)


def format_json(value: Any) -> str:
    """Records, dicts and lists as indented JSON."""
    encoded = msgspec.json.encode(value)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"

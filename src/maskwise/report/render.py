"""Render templates to offline pages: everything is inline, nothing is loaded."""

import base64
import hashlib
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import maskwise
from maskwise.report.formatting import (
    format_difference,
    format_interval,
    format_metric,
    format_p,
    format_tick,
    format_value,
    shorten,
)
from maskwise.report.metric_labels import slice_label
from maskwise.report.overlay import PALETTE
from maskwise.terminal import safe_text

STRIPE_ANGLES = (45, -45, 68, -22)
"""Stripe directions of hidden parts by region, as in overlays."""


def render(template: str, script: str = "page.js", **context: Any) -> str:
    """A page as text. All texts of the context are escaped; the page can load nothing and run only its own script.

    Control characters are shown escaped: people also look at pages in a terminal, and marks that reverse the direction
    of writing would change what stands beside them.
    """
    environment = _environment()
    source = _source(environment, script)
    digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode("ascii")
    page = environment.get_template(template).render(
        style=_source(environment, "style.css"),
        script=source,
        script_hash=digest,
        version=maskwise.__version__,
        palette=["#" + bytes(color).hex() for color in PALETTE],
        angles=[
            STRIPE_ANGLES[item % len(STRIPE_ANGLES)] for item in range(len(PALETTE))
        ],
        **context,
    )
    return safe_text(page)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("maskwise.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "metric": format_metric,
        "interval": format_interval,
        "percent": format_value,
        "difference": format_difference,
        "p": format_p,
        "tick": format_tick,
        "count": lambda number: f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}"),
        "shorten": shorten,
        "slice_label": slice_label,
    }
    return environment


def _source(environment: Environment, name: str) -> str:
    """The content of a file in the template folder."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]

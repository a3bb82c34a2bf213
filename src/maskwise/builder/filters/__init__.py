"""Filters of drafts: each has a name, a reason code and a count.

    result = apply_filters(drafts, images, classify=classify_intent)
    result.kept, result.rejected, result.flags, result.counts

Filters run in the order of `load_filters`, cheap ones first, and the first that rejects a draft gives the reason.
"""

from maskwise.builder.filters.apply_filters import (
    MASK_TYPE_WORDING,
    apply_filters,
    load_filters,
)
from maskwise.builder.filters.blind_check import AskWriter, blind_request
from maskwise.builder.filters.filter import (
    ClassifyWording,
    Filter,
    FilterCount,
    FilterFinding,
    FilterOptions,
    FilterResult,
)
from maskwise.builder.filters.repeats import limit_repeats

__all__ = [
    "MASK_TYPE_WORDING",
    "AskWriter",
    "ClassifyWording",
    "Filter",
    "FilterCount",
    "FilterFinding",
    "FilterOptions",
    "FilterResult",
    "apply_filters",
    "blind_request",
    "limit_repeats",
    "load_filters",
]

"""The rule-based check: exactly the targets of a question fulfil its logical form."""

import msgspec

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import measure_image
from maskwise.builder.filters.filter import FilterContext
from maskwise.builder.logical_forms import (
    FORM_TAG,
    decode_form,
    find_wrong_targets,
)


def find_wrong_form(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A region that fulfils the question and is no target, or the other way round; questions without a form pass."""
    text = draft.tags.get(FORM_TAG)
    if text is None:
        return None
    facts = measure_image(image)
    numbers = {region.id: region.number for region in facts.regions}
    targets = frozenset(numbers[id] for id in draft.region_ids if id in numbers)
    try:
        return find_wrong_targets(decode_form(text), targets, facts)
    except (msgspec.DecodeError, LookupError) as error:
        return f"the logical form cannot be read: {error}"

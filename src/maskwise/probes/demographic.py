"""The probe `demographic`: the same metrics by group of people, where there is an annotation."""

from pathlib import Path

from maskwise.errors import MaskwiseError, UnknownNameError
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.read_context import ReadContext
from maskwise.formats.record_files import read_records
from maskwise.language.lexicons import word_set
from maskwise.probes.context import PROTOCOL, ProbeContext
from maskwise.probes.facets import encode_texts
from maskwise.probes.group_tests import adjust_tests, compare_groups
from maskwise.probes.output_bias import (
    EDGES,
    GIOU,
    describe_faults,
    find_faults,
    harm,
    plot_groups,
    tabulate_groups,
)
from maskwise.probes.probe import Probe
from maskwise.probes.severity import grade, state_edges, worst
from maskwise.protocols import GroundTruth
from maskwise.protocols.intervals import MIN_IMAGES
from maskwise.runs.probe_results import ProbeFinding
from maskwise.store import Codes, Dataset

ATTRIBUTES = word_set(
    "gender sex age age_group skin_tone skin_type fitzpatrick race ethnicity ancestry "
    "nationality region country disability religion person_attribute"
)
"""Names of tags that are taken for attributes of people."""

KEYS = ("sample", "image")
"""Columns of a mapping that say what a record is about."""

UNKNOWN = "unknown"
"""The group of questions without the attribute; it is not tested."""


def probe_demographic(
    context: ProbeContext,
    *,
    column: str = "",
    mapping: str = "",
    min_images: int = MIN_IMAGES,
) -> ProbeFinding:
    """column: the tag, or the column of `mapping`, that has the groups. mapping: a CSV or JSON file
    with a column `sample` or `image`. min_images: smaller groups are not tested, nor shown.
    """
    dataset = context.dataset
    facets = find_attributes(dataset, column, mapping)
    if not facets:
        return ProbeFinding(
            finding="Not measured: nothing in the dataset says who is shown.",
            severity="unmeasured",
            done=(
                "Looked for tags about people. Name one with --option demographic.column=TAG, or a "
                "file with --option demographic.mapping=FILE."
            ),
        )
    truth = GroundTruth.from_dataset(dataset)
    tests = compare_groups(
        GIOU,
        context.base.metrics(PROTOCOL)["giou"],
        truth.cluster,
        facets,
        min_images=min_images,
    )
    family = adjust_tests([test for test in tests if test.group != UNKNOWN])
    named = ", ".join(facets)
    if not family:
        return ProbeFinding(
            finding=f"Not measured: no group by {named} has {min_images} images or more.",
            severity="unmeasured",
            done=f"{len(dataset):,} questions were grouped by {named}.",
        )
    faults = find_faults(family)
    small = [
        f"{name}: {group}"
        for name, codes in facets.items()
        for group in codes.names
        if group != UNKNOWN
        and not any(test.facet == name and test.group == group for test in family)
    ]
    return ProbeFinding(
        finding=describe_faults(faults, family),
        severity=worst(["none", *(grade(harm(test), EDGES) for test in faults)]),
        done=(
            f"{len(dataset):,} questions were asked and grouped by {named}; groups of "
            f"{min_images} images or more were compared with the rest (Holm)."
        ),
        tables=[tabulate_groups(family)],
        plots=plot_groups(family),
        notes=[f"Too small to be tested: {', '.join(small)}."] if small else [],
    )


def find_attributes(dataset: Dataset, column: str, mapping: str) -> dict[str, Codes]:
    """The group of every sample by attribute: of a mapping, of a named tag, or of all known tags."""
    if mapping:
        return {column: read_mapping(dataset, Path(mapping), column)}
    tags = dataset.samples.tag_names
    if column and column not in tags:
        raise UnknownNameError("tag", column, tags)
    names = [column] if column else [name for name in tags if name in ATTRIBUTES]
    facets = {}
    for name in names:
        codes, values = dataset.samples.tag(name)
        texts = [UNKNOWN if value is None else value for value in values]
        facets[name] = Codes(codes, tuple(texts))
    return facets


def read_mapping(dataset: Dataset, path: Path, column: str) -> Codes:
    """The group of every sample from a file whose records name a sample or an image."""
    if not column:
        raise MaskwiseError(
            f"{path}: say which column has the groups, with --option demographic.column=NAME"
        )
    context = ReadContext(
        annotations=path, split="", diagnostics=Diagnostics(strict=True)
    )
    by_key: dict[tuple[str, str], str] = {}
    for record in read_records(context, None):
        key = next((name for name in KEYS if name in record.fields), None)
        if key is None or column not in record.fields:
            raise MaskwiseError(
                f"{path}, {record.position}: expected a column {column!r} and a column "
                f"{' or '.join(map(repr, KEYS))}, found {', '.join(record.fields)}"
            )
        group = str(record.fields[column]).strip() or UNKNOWN
        by_key[key, str(record.fields[key])] = group
    groups = []
    images = dataset.images.id
    for id, image in zip(dataset.samples.id, dataset.samples.image.tolist()):
        by_image = by_key.get(("image", images[image]), UNKNOWN)
        groups.append(by_key.get(("sample", id), by_image))
    if set(groups) <= {UNKNOWN}:
        raise MaskwiseError(
            f"{path}: none of its samples or images is in {dataset.name}; the ids have to be "
            f"those of the dataset, such as {dataset.samples.id[0]!r}"
        )
    return encode_texts(groups)


DEMOGRAPHIC = Probe(
    name="demographic",
    title="Demographic analysis",
    risks=("demographic-analysis",),
    measured=(
        "gIoU by group of people (age, skin tone, region, ...), where a tag of the dataset or a "
        "file names the groups: the worst group and its gap to the rest."
    ),
    blind_spots=(
        "Everything that nobody annotated: without a column nothing is measured, which is the "
        "state of all datasets that maskwise reads. Groups below the minimum size, and people "
        "who are members of several groups."
    ),
    thresholds=state_edges(
        EDGES,
        "a group is worse than the rest by {} points or more, and p (Holm) < 0.05",
    ),
    run=probe_demographic,
)

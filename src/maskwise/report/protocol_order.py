"""Which protocols a reader sees first: the dataset's official one and `strict`."""

from maskwise.runs import Run

OFFICIAL = "official"
RECOMMENDED = "recommended"
NOTES = {
    "mmr": "Published MMR results are teacher-forced: the true answer is in the prompt. Targets without a predicted "
    "mask are left out of cIoU, as in the official code.",
}
"""What a reader has to know before comparing a protocol's values with published ones."""


def leading_protocols(run: Run) -> list[str]:
    """The official protocol of the dataset and `strict`, as far as they were scored; all if there are two at most."""
    known = list(run.scores.protocols)
    wanted = (run.info.dataset.protocol, "strict")
    leading = sorted((name for name in known if name in wanted), key=wanted.index)
    rest = [name for name in known if name not in leading]
    return leading + rest if len(known) <= 2 else leading or rest[:1]


def order_protocols(run: Run, first: str | None = None) -> list[str]:
    """All protocols of a run: the one asked for, the leading ones, then the others."""
    asked = [] if first is None else [first]
    return list(dict.fromkeys([*asked, *leading_protocols(run), *run.scores.protocols]))


def protocol_role(run: Run, name: str) -> str:
    """What a protocol is for this dataset: OFFICIAL, RECOMMENDED, or empty."""
    if name == run.info.dataset.protocol:
        return OFFICIAL
    return RECOMMENDED if name == "strict" else ""


def protocol_note(run: Run, name: str) -> str:
    """What a reader has to know before comparing an official protocol's values with published ones; may be empty."""
    official = protocol_role(run, name) == OFFICIAL
    return NOTES.get(name, "") if official and not run.teacher_forced else ""


def describe_questions(run: Run) -> str:
    """How many questions about how many images, and of how many if the run is about a part of the dataset."""
    found = run.info.dataset
    images = f"{found.images:,} image" + ("" if found.images == 1 else "s")
    if found.all_samples is not None and found.all_samples != found.samples:
        return f"{found.samples:,} of {found.all_samples:,} questions, on {images}"
    return (
        f"{found.samples:,} question{'' if found.samples == 1 else 's'} about {images}"
    )


def states_mask_types(run: Run) -> bool:
    """Whether any prediction states a mask type; then the accuracy of mask types means something."""
    counts = run.scores.predictions
    return counts is None or counts.with_mask_type is None or counts.with_mask_type > 0

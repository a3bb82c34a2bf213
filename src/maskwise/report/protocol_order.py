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
    scored = list(run.scores.protocols)
    leading = []
    for name in (run.info.dataset.protocol, "strict"):
        if name in scored and name not in leading:
            leading.append(name)
    others = [name for name in scored if name not in leading]
    if len(scored) <= 2:
        return leading + others
    return leading or others[:1]


def order_protocols(run: Run, first: str | None = None) -> list[str]:
    """All protocols of a run: the one asked for, the leading ones, then the others."""
    names = [] if first is None else [first]
    names += leading_protocols(run)
    names += run.scores.protocols
    # A dict keeps the first place of every name.
    return list(dict.fromkeys(names))


def protocol_role(run: Run, name: str) -> str:
    """What a protocol is for this dataset: OFFICIAL, RECOMMENDED, or empty."""
    if name == run.info.dataset.protocol:
        return OFFICIAL
    return RECOMMENDED if name == "strict" else ""


def protocol_note(run: Run, name: str) -> str:
    """What a reader has to know before the values of a protocol: how an official one compares with published values,
    and the notices of the scores. May be empty.
    """
    notes = list(run.scores.protocols[name].notices)
    is_official = protocol_role(run, name) == OFFICIAL
    if is_official and not run.teacher_forced and name in NOTES:
        notes.insert(0, NOTES[name])
    return " ".join(notes)


def describe_questions(run: Run) -> str:
    """How many questions about how many images, and of how many if the run is about a part of the dataset."""
    dataset = run.info.dataset
    images = f"{dataset.images:,} image"
    if dataset.images != 1:
        images += "s"
    if dataset.all_samples is not None and dataset.all_samples != dataset.samples:
        return f"{dataset.samples:,} of {dataset.all_samples:,} questions, on {images}"
    questions = f"{dataset.samples:,} question"
    if dataset.samples != 1:
        questions += "s"
    return f"{questions} about {images}"


def states_mask_types(run: Run) -> bool:
    """Whether any prediction states a mask type; then the accuracy of mask types means something."""
    counts = run.scores.predictions
    if counts is None or counts.with_mask_type is None:
        return True
    return counts.with_mask_type > 0

"""The records of the package: Region, Sample, Answer, Prediction, Score. Each is checked when it is made.

A record is its own JSON form (`msgspec.json`), with masks as COCO RLE. Records are frozen. Collections are tuples; a
list is accepted and converted. A mask may be given as a `Mask`, an array (height, width) or a COCO RLE dict, and an
answer as text. RecordError says which field of which record is invalid.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar, cast, get_args

import msgspec
from msgspec.structs import force_setattr
from PIL import Image

from maskwise.errors import MaskError, RecordError
from maskwise.masks import Mask, Masks, as_mask

MaskType = Literal["visible", "amodal", "both"]
MASK_TYPES: tuple[MaskType, ...] = get_args(MaskType)
Status = Literal["scored", "failed", "missing", "excluded"]

BLANK = (232, 232, 232)
"""Color of the canvas where a record is drawn without its image."""

T = TypeVar("T")


class Record(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """Base of all records: frozen, fields by name, unknown fields refused."""


class Region(Record, frozen=True, kw_only=True):
    """One object or part in an image.

    At least one of `visible` and `amodal` is known; both have the size of the image. A fully hidden object has an empty
    visible mask. `part_of` is the id of the region this one is a part of. In published data the visible mask is not
    always inside the amodal one: `maskwise validate` reports that, nothing repairs it.
    """

    id: str
    name: str
    visible: Mask | None = None
    amodal: Mask | None = None
    part_of: str | None = None
    order: int | None = None
    """Depth, 1 = front, where the dataset has it."""
    crowd: bool = False
    overlap: Mask | None = None
    """Where the dataset's own pieces of this region overlap. Some official protocols ignore those pixels."""

    def __post_init__(self) -> None:
        if not self.id:
            raise RecordError("a region needs an id that is not empty")
        _check_texts(self, self.id, self.name)
        _convert_mask(self, "visible", self.visible)
        _convert_mask(self, "amodal", self.amodal)
        _convert_mask(self, "overlap", self.overlap)
        _check_sizes(self, (self.visible, self.amodal, self.overlap))
        if self.visible is None and self.amodal is None:
            raise RecordError(
                f"{_label(self)} has neither a visible nor an amodal mask"
            )
        if self.part_of == self.id:
            raise RecordError(f"{_label(self)} is a part of itself")

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image."""
        return cast(
            "Mask", self.visible if self.visible is not None else self.amodal
        ).size

    @property
    def occluded(self) -> Mask | None:
        """Amodal minus visible, where both are known."""
        if self.visible is None or self.amodal is None:
            return None
        return self.amodal - self.visible

    def mask(self, mask_type: Literal["visible", "amodal"]) -> Mask | None:
        """The mask of one type, or None where it is unknown."""
        return _mask_of(self, mask_type)

    def plot(self, image: Image.Image | None = None) -> Image.Image:
        """The region drawn on its image, or on a blank canvas."""
        return _draw(image, (self,), self.size)

    def __repr__(self) -> str:
        part = "" if self.part_of is None else f", part of {self.part_of!r}"
        return f"Region({self.id!r}, {_shorten(self.name)!r}, {_describe_masks(self)}{part})"

    def _repr_png_(self) -> bytes:
        return _to_png(self.plot())


class Phrase(Record, frozen=True, kw_only=True):
    """Characters [start, stop) of an answer, and the regions they refer to.

    `regions` are positions among the targets of the sample, or among the regions of the prediction.
    """

    start: int
    stop: int
    regions: tuple[int, ...]

    def __post_init__(self) -> None:
        _convert_items(self, "regions", self.regions, int)


class Answer(Record, frozen=True, kw_only=True):
    """An answer in words, and the phrases that refer to regions. No phrases: not known."""

    text: str
    phrases: tuple[Phrase, ...] = ()

    def __post_init__(self) -> None:
        _convert_text(self, "text", self.text)
        _convert_items(self, "phrases", self.phrases, Phrase)
        for phrase in self.phrases:
            if not 0 <= phrase.start < phrase.stop <= len(self.text):
                raise RecordError(
                    f"phrase [{phrase.start}, {phrase.stop}) lies outside the answer of {len(self.text)} characters"
                )

    def __str__(self) -> str:
        return self.text


class ImageInfo(Record, frozen=True, kw_only=True):
    """An image of a dataset. `path` is relative to the dataset's image root, or None for an embedded image.

    `license` and `attribution` (an author or a page) are those of this image, where its source states them.
    """

    id: str
    width: int
    height: int
    path: str | None = None
    license: str | None = None
    attribution: str | None = None

    def __post_init__(self) -> None:
        if self.width <= 0 or self.height <= 0:
            raise RecordError(
                f"image {self.id!r}: size {self.width} x {self.height} is empty"
            )


class Turn(Record, frozen=True, kw_only=True):
    """An earlier question about an image, and its answer in words, where it is known."""

    question: str
    answer: str | None = None

    def __post_init__(self) -> None:
        _convert_text(self, "question", self.question)
        if self.answer is not None:
            _convert_text(self, "answer", self.answer)


class DialogueQuestion(str):
    """A question that continues a dialogue: a text like any other, with the earlier `turns` about the same image.

    Models that read one question at a time take it as text; `earlier_turns` gives the rest to those that can use it.
    """

    turns: tuple[Turn, ...]

    def __new__(cls, text: str, turns: Iterable[Turn]) -> "DialogueQuestion":
        question = super().__new__(cls, text)
        question.turns = tuple(turns)
        return question


def earlier_turns(question: str) -> tuple[Turn, ...]:
    """The turns before a question; none if it begins a dialogue or stands alone."""
    return question.turns if isinstance(question, DialogueQuestion) else ()


def continue_dialogue(question: str, turns: Iterable[Turn]) -> str:
    """The question with its earlier turns; the question itself if there are none."""
    known = tuple(turns)
    return DialogueQuestion(question, known) if known else question


class Sample(Record, frozen=True, kw_only=True, dict=True):
    """One question about one image, with its ground truth.

    `image_id`: the image in its dataset. `mask_type`: the mask the question asks for. `targets`: the regions that are
    asked for (none, one or many), in the order the answer names them. `ignore`: pixels that no metric counts. `tags`:
    properties to slice reports by (question_type, source, split, ...). `other_targets`: what further annotators took
    as the targets, one tuple for each, where a dataset has several (SA-Co gold has three); only `saco` uses them.
    `turns`: earlier questions of a dialogue about the image, which this one may refer to.
    """

    id: str
    image_id: str
    question: str
    mask_type: MaskType = "visible"
    targets: tuple[Region, ...] = ()
    answer: Answer | None = None
    ignore: Mask | None = None
    tags: dict[str, str] = {}
    other_targets: tuple[tuple[Region, ...], ...] = ()
    turns: tuple[Turn, ...] = ()

    def __post_init__(self) -> None:
        _check_texts(self, self.id, self.image_id, self.question)
        _convert_items(self, "turns", self.turns, Turn)
        _check_mask_type(self, self.mask_type)
        _convert_items(self, "targets", self.targets, Region)
        _convert_answer(self, self.answer)
        _convert_mask(self, "ignore", self.ignore)
        others = [region for regions in self.other_targets for region in regions]
        _check_sizes(self, (*self.targets, *others, self.ignore))
        _check_phrases(self, self.answer, len(self.targets))

    @property
    def asked(self) -> str:
        """The question as models get it: with its earlier turns, if there are any."""
        return continue_dialogue(self.question, self.turns)

    @property
    def image(self) -> Image.Image:
        """The image, opened: upright, RGB. Only samples that came from a dataset know it."""
        load: Callable[[str], Image.Image] | None = self.__dict__.get("load_image")
        if load is None:
            raise RecordError(
                f"sample {self.id!r} was not read from a dataset; open image {self.image_id!r} yourself"
            )
        return load(self.image_id)

    def plot(
        self, image: Image.Image | None = None, *, mask_type: MaskType = "both"
    ) -> Image.Image:
        """The targets drawn on the image, with question and answer below. image: if not that of the dataset."""
        return _draw(
            self.image if image is None else image,
            self.targets,
            mask_type=mask_type,
            question=self.question,
            answer=self.answer,
            ignore=self.ignore,
        )

    def __repr__(self) -> str:
        names = ", ".join(
            _shorten(region.name, 24) or "unnamed" for region in self.targets[:4]
        )
        more = f", ... {len(self.targets)} in all" if len(self.targets) > 4 else ""
        return (
            f"Sample({self.id!r}, {_shorten(self.question, 80)!r}, mask_type={self.mask_type!r}, "
            f"targets=[{names}{more}])"
        )

    def _repr_png_(self) -> bytes | None:
        return _to_png(self.plot()) if "load_image" in self.__dict__ else None


class PredictedRegion(Record, frozen=True, kw_only=True):
    """One region in a prediction: a visible mask, an amodal mask or both. `score`: confidence in [0, 1]."""

    visible: Mask | None = None
    amodal: Mask | None = None
    score: float = 1.0
    name: str | None = None

    def __post_init__(self) -> None:
        _convert_mask(self, "visible", self.visible)
        _convert_mask(self, "amodal", self.amodal)
        if self.visible is None and self.amodal is None:
            raise RecordError("a predicted region needs a visible or an amodal mask")
        if self.name is not None:
            _convert_text(self, "name", self.name)
        _check_score(self)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of the image."""
        return cast(
            "Mask", self.visible if self.visible is not None else self.amodal
        ).size

    def mask(self, mask_type: Literal["visible", "amodal"]) -> Mask | None:
        """The mask of one type, or None where the model did not predict it."""
        return _mask_of(self, mask_type)

    def plot(self, image: Image.Image | None = None) -> Image.Image:
        """The region drawn on an image, or on a blank canvas."""
        return _draw(image, (self,), self.size)

    def __repr__(self) -> str:
        name = "" if self.name is None else f"{_shorten(self.name)!r}, "
        return f"PredictedRegion({name}{_describe_masks(self)}, score={self.score:.3g})"

    def _repr_png_(self) -> bytes:
        return _to_png(self.plot())


class Prediction(Record, frozen=True, kw_only=True, dict=True):
    """What a model returned for one question.

    `sample`: id of the sample; a model leaves it empty and the harness fills it. `mask_type`: the type the model chose,
    or None if it does not choose. `no_target`: the model says that no target is in the image. `error`: why there
    is no prediction. `forced`: the ground-truth answer was in the prompt.
    """

    sample: str = ""
    answer: Answer | None = None
    mask_type: MaskType | None = None
    regions: tuple[PredictedRegion, ...] = ()
    no_target: bool = False
    error: str | None = None
    forced: bool = False

    def __post_init__(self) -> None:
        _check_texts(self, self.sample)
        if self.mask_type is not None:
            _check_mask_type(self, self.mask_type)
        _convert_items(self, "regions", self.regions, PredictedRegion)
        _convert_answer(self, self.answer)
        _check_phrases(self, self.answer, len(self.regions))

    def masks(self, mask_type: Literal["visible", "amodal"] | None = None) -> Masks:
        """The masks of one type, in the order of the regions; regions without such a mask are left out.

        mask_type: if None, the type the model chose, and visible if it chose both or none.
        """
        wanted = mask_type or ("amodal" if self.mask_type == "amodal" else "visible")
        masks = [region.mask(wanted) for region in self.regions]
        return Masks.from_masks([mask for mask in masks if mask is not None])

    def plot(
        self, image: Image.Image | None = None, *, mask_type: MaskType | None = None
    ) -> Image.Image:
        """The regions drawn on the image, with question and answer below.

        image: the image asked about; a prediction made by `encoded.ask` knows it, others are drawn on a blank canvas.
        mask_type: what to draw; by default what the model chose.
        """
        return _draw(
            self.__dict__.get("image") if image is None else image,
            self.regions,
            self.regions[0].size if self.regions else None,
            mask_type=mask_type or self.mask_type or "both",
            question=self.__dict__.get("question"),
            answer=self.answer,
        )

    def __repr__(self) -> str:
        parts = [repr(self.sample)] if self.sample else []
        if self.error is not None:
            return (
                f"Prediction({', '.join([*parts, f'error={_shorten(self.error)!r}'])})"
            )
        parts += [] if self.answer is None else [repr(_shorten(self.answer.text))]
        parts += [] if self.mask_type is None else [f"mask_type={self.mask_type!r}"]
        parts += ["no_target=True"] if self.no_target else []
        parts += [f"{len(self.regions)} region{'' if len(self.regions) == 1 else 's'}"]
        return f"Prediction({', '.join(parts)})"

    def _repr_png_(self) -> bytes | None:
        return (
            _to_png(self.plot()) if self.regions or "image" in self.__dict__ else None
        )


class Score(Record, frozen=True, kw_only=True):
    """One sample under one protocol. It holds sums, not averages, so that any group of samples can be averaged.

    `value` is the sample's contribution to gIoU with `weight`; `intersection` and `union` are its contribution to cIoU.
    A sample that failed or was not scored has no value; zero always means a score of zero.
    """

    sample: str
    protocol: str
    status: Status
    value: float | None = None
    weight: float = 1.0
    intersection: int = 0
    union: int = 0
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.status == "scored") != (self.value is not None):
            raise RecordError(
                f"score of {self.sample!r}: status {self.status} with value {self.value}"
            )


def attach(record: T, **facts: Any) -> T:
    """Attach facts that display methods use and that are no part of the record: it compares and encodes as before."""
    record.__dict__.update(facts)
    return record


# -- checks and conversions at construction


def _check_texts(record: Record, *values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise RecordError(
                f"{_label(record)}: expected a text, found {_kind(value)}"
            )


def _convert_text(record: Record, field: str, value: object) -> None:
    """Check a text. A model may repeat its question: a DialogueQuestion, which JSON does not know, becomes plain."""
    if type(value) is str:
        return
    _check_texts(record, value)
    force_setattr(record, field, str(value))


def _check_mask_type(record: Record, value: object) -> None:
    if value not in MASK_TYPES:
        raise RecordError(
            f"{_label(record)}: mask_type must be one of {', '.join(MASK_TYPES)}, not {value!r}"
        )


def _check_score(region: PredictedRegion) -> None:
    if type(region.score) is not float:
        try:
            force_setattr(region, "score", float(region.score))
        except (TypeError, ValueError):
            raise RecordError(
                f"score must be a number, not {_kind(region.score)}"
            ) from None
    if not 0.0 <= region.score <= 1.0:
        raise RecordError(f"score {region.score} is not between 0 and 1")


def _check_sizes(record: Record, masks: Iterable[Mask | Region | None]) -> None:
    sizes = {mask.size for mask in masks if mask is not None}
    if len(sizes) > 1:
        raise RecordError(
            f"{_label(record)} has masks of different sizes (height, width): {sorted(sizes)}"
        )


def _check_phrases(record: Record, answer: Answer | None, regions: int) -> None:
    if answer is None:
        return
    for phrase in answer.phrases:
        if any(not 0 <= index < regions for index in phrase.regions):
            raise RecordError(
                f"{_label(record)}: a phrase refers to region {max(phrase.regions)}, but there are {regions}"
            )


def _convert_items(record: Record, field: str, value: Any, kind: type) -> None:
    """Make a list or other iterable a tuple, and check the type of its items."""
    if type(value) is not tuple:
        if isinstance(value, str | bytes | msgspec.Struct) or not isinstance(
            value, Iterable
        ):
            raise RecordError(
                f"{_label(record)}: {field} must be a list with items of type {kind.__name__}, not {_kind(value)}"
            )
        value = tuple(value)
        force_setattr(record, field, value)
    for item in value:
        if type(item) is not kind and not isinstance(item, kind):
            raise RecordError(
                f"{_label(record)}: an item of {field} must be of type {kind.__name__}, not {_kind(item)}"
            )


def _convert_answer(record: Sample | Prediction, answer: Any) -> None:
    if answer is None or type(answer) is Answer:
        return
    if not isinstance(answer, str):
        raise RecordError(
            f"{_label(record)}: answer must be an Answer or a text, not {_kind(answer)}"
        )
    force_setattr(record, "answer", Answer(text=answer))


def _convert_mask(record: Record, field: str, value: Any) -> None:
    if value is None or type(value) is Mask:
        return
    try:
        force_setattr(record, field, as_mask(value))
    except MaskError as error:
        raise RecordError(f"{_label(record)}: {field} is not a mask: {error}") from None


def _label(record: Record) -> str:
    """What error messages call a record."""
    kind = {"PredictedRegion": "predicted region"}.get(
        type(record).__name__, type(record).__name__.lower()
    )
    name = getattr(record, "sample", None) or getattr(record, "id", None)
    return f"{kind} {name!r}" if isinstance(name, str) else kind


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


# -- display


def _mask_of(region: Region | PredictedRegion, mask_type: str) -> Mask | None:
    if mask_type not in ("visible", "amodal"):
        raise RecordError(f"mask_type must be 'visible' or 'amodal', not {mask_type!r}")
    return region.visible if mask_type == "visible" else region.amodal


def _draw(
    image: Image.Image | None,
    regions: tuple[Region | PredictedRegion, ...],
    size: tuple[int, int] | None = None,
    **options: Any,
) -> Image.Image:
    """An overlay. Without an image it is drawn on a blank canvas of `size` (height, width)."""
    from maskwise.report.overlay import draw_overlay  # noqa: PLC0415

    if image is None and size is None:
        raise RecordError(
            "there is nothing to draw: no region and no image; give the image: plot(image)"
        )
    if image is None and size is not None:
        image = Image.new("RGB", (size[1], size[0]), BLANK)
    if not isinstance(image, Image.Image):
        raise RecordError(f"plot expects a PIL image, not {_kind(image)}")
    return draw_overlay(image, regions, **options)


def _to_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def _describe_masks(region: Region | PredictedRegion) -> str:
    height, width = region.size
    areas = [
        f"{name} {mask.area} px"
        for name, mask in (("visible", region.visible), ("amodal", region.amodal))
        if mask is not None
    ]
    return f"{width} x {height}, {', '.join(areas)}"


def _shorten(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."

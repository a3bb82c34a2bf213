"""The bundled model: an eye that finds every object of an image once, and a choice among them by the words.

    model = bundled_model()
    sight = model.see(image)                          # the costly part, once an image
    model.answer(sight, ["What could I drink from?"])   # every question then costs only the choice
    model.predict(image, questions)                   # both

Runs on onnxruntime; nothing here needs torch.
"""

import functools
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import MaskwiseError
from maskwise.masks import Mask, Masks
from maskwise.models.descriptions import Description, Objects, describe, hiding
from maskwise.models.intent import classify_intent, hash_classifier
from maskwise.models.sight import Looked, Seen, draw_objects, find_boxes, widen
from maskwise.models.words import words_to_numbers
from maskwise.schema import PredictedRegion, Prediction
from maskwise.world.catalogue import CATEGORIES, COLOURS, MATERIALS
from maskwise.world.grammar import write_answer
from maskwise.world.items import Item, name_items

SIDE = 160
"""Images are scaled to a square of this side."""

LIKELY = 0.4
"""A thing is meant when the choice gives it at least this probability."""

NETWORKS = ("eye", "look", "choice")
CATEGORY_NAMES, COLOUR_NAMES, MATERIAL_NAMES = tuple(CATEGORIES), tuple(COLOURS), tuple(MATERIALS)
KINDS = (len(CATEGORY_NAMES), len(COLOUR_NAMES), len(MATERIAL_NAMES))
MOST_PARTS = max(len(category.parts) for category in CATEGORIES.values())

Wanted = Literal["visible", "amodal"]
Place = tuple[int, int]
"""An object and a part of it counted from 1, or 0 for the whole."""


class Networks(Protocol):
    """The three networks, on whatever runs them; arrays are those of `perception` and `choice`, for one image."""

    def see(self, image: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
        """[1, 3, s, s] to fine, coarse, heat in 0..1, box."""

    def look(
        self, fine: NDArray[np.float32], coarse: NDArray[np.float32], boxes: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], ...]:
        """Boxes [k, 4] as shares of the frame to masks, category, colour, material."""

    def choose(self, words: NDArray[np.int64], description: Description) -> NDArray[np.float32]:
        """Logits [q, n, 1 + parts] for words [q, l, k]; n is at least 1."""


class OnnxNetworks:
    """The networks of a folder: eye.onnx, look.onnx and choice.onnx. threads: None for what OMP_NUM_THREADS says, which
    Ray sets for its actors; without it all cores.
    """

    def __init__(self, folder: Path, *, threads: int | None = None) -> None:
        options = onnxruntime.SessionOptions()
        said = os.environ.get("OMP_NUM_THREADS", "")
        options.intra_op_num_threads = threads or (int(said) if said.isdecimal() else 0)
        options.log_severity_level = 3
        paths = [folder / f"{name}.onnx" for name in NETWORKS]
        if missing := [path.name for path in paths if not path.exists()]:
            raise MaskwiseError(f"{folder} lacks {', '.join(missing)}; `maskwise export` writes them")
        self.eye, self.second, self.choice = (_open(path, options) for path in paths)
        self.hash = hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    def see(self, image: NDArray[np.float32]) -> tuple[NDArray[np.float32], ...]:
        """See Networks."""
        return tuple(self.eye.run(None, {"image": image}))

    def look(
        self, fine: NDArray[np.float32], coarse: NDArray[np.float32], boxes: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], ...]:
        """See Networks."""
        return tuple(self.second.run(None, {"fine": fine, "coarse": coarse, "boxes": boxes}))

    def choose(self, words: NDArray[np.int64], description: Description) -> NDArray[np.float32]:
        """See Networks."""
        inputs = {"words": words, "single": description.single[None], "pair": description.pair[None]}
        logits: NDArray[np.float32] = self.choice.run(None, inputs)[0]
        return logits


def _open(path: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except (
        Exception
    ) as error:  # onnxruntime has a class of its own for every way to fail, all plain exceptions
        raise MaskwiseError(f"{path} is not a network onnxruntime can open: {error}") from error


class Sight(NamedTuple):
    """An image looked at: its size (width, height), its objects in the model's frame, what is known of them, and the
    name of each object and part.
    """

    size: tuple[int, int]
    objects: Objects
    description: Description
    items: dict[Place, Item]


class Tiny:
    """A predictor made of three networks."""

    name = "tiny"

    def __init__(self, networks: Networks) -> None:
        self.networks = networks
        own: str | None = getattr(networks, "hash", None)
        # The mask type is decided by weights of its own: other ones are another model.
        self.weights_hash = own and hashlib.sha256(f"{own} {hash_classifier()}".encode()).hexdigest()

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction a question, in order; `sample` is left empty for the caller to fill."""
        return self.answer(self.see(image), questions)

    def see(self, image: Image.Image) -> Sight:
        """Look at an image of any size."""
        frame = np.asarray(image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR))
        return sight_of(self.find(frame), image.size)

    def find(self, frame: NDArray[np.generic]) -> Objects:
        """The objects in a frame (SIDE, SIDE, 3) of 0..255."""
        inputs = np.ascontiguousarray(frame.transpose(2, 0, 1)[None], np.float32) / np.float32(255)
        fine, coarse, heat, box = self.networks.see(inputs)
        boxes = find_boxes(Seen(heat[0, 0], box[0]), SIDE)
        if not len(boxes):
            return no_objects()
        boxes = widen(boxes)
        looked = Looked(*self.networks.look(fine, coarse, boxes / np.float32(SIDE)))
        return draw_objects(looked, boxes, side=SIDE, parts_of=parts_of)

    def answer(self, sight: Sight, questions: Sequence[str]) -> list[Prediction]:
        """As predict, for an image already looked at."""
        wanted: list[Wanted] = [intent.mask_type for intent in classify_intent(questions)]
        replies = []
        for odds, mask_type in zip(self.choose(sight, questions), wanted):
            meant = [place for place in sight.items if odds[place] >= LIKELY]
            replies.append(reply(sight, meant, mask_type, odds))
        return replies

    def choose(self, sight: Sight, questions: Sequence[str]) -> NDArray[np.float32]:
        """float32 (q, n, 1 + parts): how likely each object and part is meant."""
        count = len(sight.description.single)
        if not count or not questions:
            return np.zeros((len(questions), count, 1 + MOST_PARTS), np.float32)
        logits = self.networks.choose(words_to_numbers(questions), sight.description)
        return (1 / (1 + np.exp(-logits))).astype(np.float32)


def parts_of(category: int) -> int:
    """How many parts a category has."""
    return len(CATEGORIES[CATEGORY_NAMES[category]].parts)


def no_objects() -> Objects:
    """Nothing found."""
    planes = np.zeros((0, SIDE, SIDE), np.bool_)
    return Objects(planes, planes, planes.astype(np.uint8), np.zeros((0, sum(KINDS)), np.float32))


def sight_of(objects: Objects, size: tuple[int, int]) -> Sight:
    """All that questions need to know of the objects of an image of that size (width, height)."""
    return Sight(size, objects, describe(objects, MOST_PARTS), list_items(objects))


def list_items(objects: Objects) -> dict[Place, Item]:
    """Every object (i, 0) and its parts (i, k) from the front to the back, named so that no two names are alike."""
    items: list[Item] = []
    places: list[Place] = []
    steps = (np.arange(SIDE) + 0.5) / SIDE
    ends = np.cumsum(KINDS[:2])
    hides = hiding(objects)
    for i in np.argsort(hides.sum(0) - hides.sum(1), kind="stable").tolist():
        kinds = objects.kinds[i]
        category, colour, material = (int(odds.argmax()) for odds in np.split(kinds, ends))
        name, whole = CATEGORY_NAMES[category], len(items)
        for k, part in enumerate((None, *CATEGORIES[name].parts)):
            amodal = objects.amodal[i] if k == 0 else objects.part[i] == k
            full, seen = int(amodal.sum()), int((amodal & objects.visible[i]).sum())
            if not full:
                continue
            middle = float(amodal.sum(0) @ steps) / full
            known = (name, COLOUR_NAMES[colour], MATERIAL_NAMES[material], part)
            items.append(Item(*known, whole, i + 1, seen, full, middle, middle, seen))
            places.append((i, k))
    return dict(zip(places, name_items(items)))


def reply(
    sight: Sight, meant: Sequence[Place], mask_type: Wanted, odds: NDArray[np.float32] | None = None
) -> Prediction:
    """Say and draw what is meant, from left to right. odds: how sure of each; 1 without."""
    ordered = sorted(meant, key=lambda place: sight.items[place].full_x)
    if mask_type == "visible":
        ordered = [place for place in ordered if sight.items[place].seen]
    answer = write_answer([sight.items[place] for place in ordered], mask_type)
    if not ordered:
        return Prediction(sample="", answer=answer, mask_type=mask_type, no_target=True)
    visible, amodal = _draw(sight, ordered)
    regions = tuple(
        PredictedRegion(
            visible=visible[row],
            amodal=amodal[row],
            score=1.0 if odds is None else float(odds[place]),
            name=sight.items[place].name,
        )
        for row, place in enumerate(ordered)
    )
    return Prediction(sample="", answer=answer, mask_type=mask_type, regions=regions)


def _draw(sight: Sight, places: list[Place]) -> tuple[Masks, Masks]:
    """Visible and amodal masks at the image's own size, edges kept smooth."""
    objects = sight.objects
    amodal = [objects.amodal[i] if k == 0 else objects.part[i] == k for i, k in places]
    visible = [plane & objects.visible[i] for plane, (i, _) in zip(amodal, places)]
    # One at a time: at the size of a photograph a plane takes tens of megabytes, a mask few kilobytes.
    masks = Masks.from_masks([Mask.from_dense(_scale(plane, sight.size)) for plane in visible + amodal])
    return masks[: len(places)], masks[len(places) :]


def _scale(plane: NDArray[np.bool_], size: tuple[int, int]) -> NDArray[np.bool_]:
    if size == (plane.shape[1], plane.shape[0]):
        return plane
    scaled = Image.fromarray(plane.astype(np.uint8) * 255).resize(size, Image.Resampling.BILINEAR)
    return np.asarray(scaled) >= 128


@functools.cache
def bundled_model(folder: str | None = None) -> Tiny:
    """The model that ships with the package, or the one `maskwise train` or `export` left in a folder."""
    return Tiny(OnnxNetworks(Path(folder or str(files("maskwise.models") / "weights"))))

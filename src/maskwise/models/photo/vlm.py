"""The chooser that asks a vision-language model: it sees the image with numbered marks and returns their numbers.

Set-of-mark prompting (Yang et al. 2023). One request per question; the reply is a JSON object. Numbers that do not
exist are ignored. For a thing that no mark covers the model may give a box: MobileSAM makes a mask of it, and a second
request shows the new marks, for the model to confirm or correct. Every request is recorded in a ledger, by the hash of
its content, so that a repeated or resumed evaluation pays for nothing twice.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec

from maskwise.builder.region_marks import encode_marks
from maskwise.errors import MaskwiseError, ModelError, ModelGoneError
from maskwise.masks import Mask
from maskwise.models.photo.box import Box
from maskwise.models.photo.choice import Choice, ChosenPhrase
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.proposals import Proposal
from maskwise.schema import Region, earlier_turns
from maskwise.terminal import echo
from maskwise.writers import (
    Client,
    Completion,
    CompletionRequest,
    Ledger,
    SendLimits,
    complete,
    load_prices,
)
from maskwise.writers.client import WriterError
from maskwise.writers.cost import ModelPrice

PROMPT_VERSION = "photo 1"

BOX_SCALE = 1000
"""Boxes are asked for in thousandths of the image, whatever size the model sees it in."""

MAX_BOXES = 5
"""Boxes of one reply that become marks: each prompts MobileSAM."""

MAX_TOKENS = 1000
"""Of a reply: a short answer and the numbers of its marks."""

SYSTEM = """\
You answer questions about a photograph. Outlines with numbers mark regions of it. Reply with one JSON object:
- answer: one or two short sentences that answer the question. If nothing in the image is asked for, say so.
- phrases: for each thing that the question asks for, `text`, its words exactly as they stand in the answer; `regions`,
  the numbers of its marks; `merged`, true if these marks are pieces of one thing, false if each mark is a thing of its
  own; `boxes`, only for things that no mark covers well: [left, top, right, bottom] in thousandths of the width and
  height of the image. Leave out things that are only mentioned. No phrases if nothing is asked for.
- mask_type: "amodal" if the question wants complete shapes including hidden parts, "both" if it wants the visible and
  the complete shapes, else "visible".
Choose the smallest set of marks that shows exactly what is asked for: a part if a part is meant, a whole if a whole."""

SECOND_LOOK = """\
The marks {numbers} were added for the boxes that you gave. Look again: answer with numbers only, without boxes. Use the
new marks where they show what is asked for, and correct your choice where they do not."""


class ReplyPhrase(msgspec.Struct, frozen=True):
    """A phrase of a reply."""

    text: str
    regions: list[int]
    merged: bool = False
    boxes: list[Annotated[list[float], msgspec.Meta(min_length=4, max_length=4)]] = []


class Reply(msgspec.Struct, frozen=True):
    """What the model returns."""

    answer: str
    phrases: list[ReplyPhrase]
    mask_type: Literal["visible", "amodal", "both"] = "visible"


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "phrases": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "text": {"type": "string"},
                    "regions": {"type": "array", "items": {"type": "integer"}},
                    "merged": {"type": "boolean"},
                    "boxes": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "number"}},
                    },
                },
                "required": ["text", "regions", "merged", "boxes"],
                "additionalProperties": False,
            },
        },
        "mask_type": {"type": "string", "enum": ["visible", "amodal", "both"]},
    },
    "required": ["answer", "phrases", "mask_type"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class VlmChooser:
    """Chooses by asking a model. limits: budget and requests in flight, as for other requests to language models."""

    client: Client
    ledger: str | os.PathLike[str]
    price: ModelPrice
    limits: SendLimits = field(default_factory=SendLimits)

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"vlm:{self.client.provider}/{self.client.model}"

    def choose(self, photo: EncodedPhoto, questions: Sequence[str]) -> list[Choice]:
        """One choice per question, in order. ModelError if a reply cannot be used."""
        photo.look_around()
        marks = dict(enumerate(photo.proposals, 1))
        requests = [make_request(photo, marks, question) for question in questions]
        replies = self._ask(requests)
        return [
            self._second_look(photo, marks, question, reply)
            for question, reply in zip(questions, replies, strict=True)
        ]

    def _second_look(
        self,
        photo: EncodedPhoto,
        marks: Mapping[int, Proposal],
        question: str,
        reply: Reply,
    ) -> Choice:
        """The choice of a reply; one with boxes is asked again, with the masks of these boxes marked."""
        boxes = []
        for phrase in reply.phrases:
            boxes += [_to_pixels(box, photo.image.size) for box in phrase.boxes]
        valid = [box for box in boxes if box.width > 0 and box.height > 0]
        # Marks are numbered from 1, in the order of the proposals.
        places = {number: number - 1 for number in marks}
        if not valid:
            return to_choice(reply, places)
        added: dict[int, int] = {}
        for number, box in enumerate(valid[:MAX_BOXES], max(marks, default=0) + 1):
            added[number] = photo.add_box(box)
        places |= added
        shown = {number: photo.proposals[place] for number, place in places.items()}
        request = make_request(photo, shown, question, added=list(added))
        (second_reply,) = self._ask([request])
        return to_choice(second_reply, places)

    def _ask(self, requests: list[CompletionRequest]) -> list[Reply]:
        """ModelGoneError if the model cannot be reached or the budget is spent: a later run continues from here."""
        try:
            with Ledger(self.ledger) as ledger:
                completions = list(
                    complete(
                        requests,
                        self.client,
                        ledger,
                        price=self.price,
                        limits=self.limits,
                    )
                )
        except WriterError as error:
            raise ModelGoneError(f"{self.name}: {error}") from error
        return [parse_reply(completion, self.name) for completion in completions]

    @property
    def cost(self) -> float:
        """What all calls of the ledger cost, in US dollars."""
        with Ledger(self.ledger) as ledger:
            return ledger.cost

    def close(self) -> None:
        """Close the connections and say on standard error what the calls cost."""
        self.client.close()
        echo(
            f"{self.name}: the calls in {os.fspath(self.ledger)} cost ${self.cost:.4f}",
            err=True,
        )


def find_price(model: str, *, free: bool) -> ModelPrice:
    """What a model costs. free: it runs at an address of the user's own, where an unlisted model costs nothing."""
    try:
        return load_prices().find(model)
    except MaskwiseError:
        if not free:
            raise
        return ModelPrice(input=0.0, output=0.0)


def make_request(
    photo: EncodedPhoto,
    marks: Mapping[int, Proposal],
    question: str,
    *,
    added: Sequence[int] = (),
) -> CompletionRequest:
    """The request of a question: the marked image, what is known about the marks, the question."""
    regions = {
        number: Region(
            id=str(number), name=str(number), visible=Mask.from_dense(proposal.inside)
        )
        for number, proposal in marks.items()
    }
    lines = [f"{number}: {_describe(proposal)}" for number, proposal in marks.items()]
    history = []
    for turn in earlier_turns(question):
        history += [f"Earlier question: {turn.question}", f"Your answer: {turn.answer}"]
    text = "\n".join(
        ["Marks:", *(lines or ["none"]), "", *history, f"Question: {question}"]
    )
    if added:
        text += "\n\n" + SECOND_LOOK.format(numbers=", ".join(map(str, added)))
    return CompletionRequest(
        prompt_version=PROMPT_VERSION,
        system=SYSTEM,
        text=text,
        schema=SCHEMA,
        image=encode_marks(photo.image, regions),
        max_tokens=MAX_TOKENS,
    )


def parse_reply(completion: Completion, model: str) -> Reply:
    """The reply of a completion; ModelError says why there is none."""
    if completion.status != "ok":
        raise ModelError(
            f"{model} gave no usable reply ({completion.status}): {completion.reason}"
        )
    try:
        return msgspec.convert(completion.output, Reply)
    except msgspec.ValidationError as error:
        raise ModelError(f"{model} gave a reply of another form: {error}") from None


def to_choice(reply: Reply, places: Mapping[int, int]) -> Choice:
    """The choice of a reply. places: the position among the proposals of every number that was shown."""
    phrases = []
    for phrase in reply.phrases:
        numbers = dict.fromkeys(phrase.regions)  # each once, in their order
        regions = tuple(places[number] for number in numbers if number in places)
        if regions:
            phrases.append(ChosenPhrase(phrase.text, regions, phrase.merged))
    return Choice(reply.answer, tuple(phrases), reply.mask_type)


def _describe(proposal: Proposal) -> str:
    """What is known about a mark: its category, and how much of the image it covers."""
    label = f"{proposal.label}?, " if proposal.label else ""
    return f"{label}{proposal.area:.1%} of the image"


def _to_pixels(box: Sequence[float], size: tuple[int, int]) -> Box:
    """A box in thousandths as a box in pixels, inside the image."""
    left, top, right, bottom = (min(1.0, max(0.0, side / BOX_SCALE)) for side in box)
    width, height = size
    return Box(left * width, top * height, right * width, bottom * height)

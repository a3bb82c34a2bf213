"""The predictor for photographs: proposals, a chooser, a visible mask and an amodal one."""

import functools
import hashlib
from collections.abc import Sequence

from PIL import Image

from maskwise.errors import ModelError
from maskwise.language.intent import classify_intent, hash_classifier
from maskwise.models.photo.choice import Choice, Chooser, ChosenPhrase
from maskwise.models.photo.clip import Clip
from maskwise.models.photo.completion import CompletionNetwork, OnnxCompletionNetwork
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.match import MatchChooser
from maskwise.models.photo.open_labels import OpenLabeler
from maskwise.models.photo.proposals import ProposalNetworks
from maskwise.models.photo.vlm import VlmChooser, find_price
from maskwise.models.photo.weights import load_clip, load_networks
from maskwise.schema import Answer, MaskType, Phrase, PredictedRegion, Prediction
from maskwise.writers import SendLimits, open_client

VLM_PREFIX = "vlm:"
DEFAULT_LEDGER = "photo_ledger.sqlite"


class Photo:
    """A predictor made of pretrained networks, the completion network and a chooser.

    labeler: labels proposals with words that the detector does not know; None for no such labels.
    """

    name = "photo"

    def __init__(
        self,
        networks: ProposalNetworks,
        completion: CompletionNetwork,
        chooser: Chooser,
        labeler: OpenLabeler | None = None,
    ) -> None:
        self.networks = networks
        self.completion = completion
        self.chooser = chooser
        self.labeler = labeler
        # A network that a test or a user supplies need not have a hash: then the run records none.
        completion_hash = getattr(completion, "hash", None)
        self.weights_hash = None
        if completion_hash:
            hashes = f"{completion_hash} {hash_classifier()}"
            self.weights_hash = hashlib.sha256(hashes.encode()).hexdigest()
        self.config: dict[str, object] = {"chooser": chooser.name}
        if isinstance(chooser, MatchChooser):
            self.config["guess"] = chooser.guess
        if labeler is not None:
            self.config["labels"] = labeler.name

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order; `sample` is empty, for the caller to fill."""
        return self.encode(image).answer(questions)

    def encode(self, image: Image.Image) -> "PhotoQuestions":
        """Encode an image and find its proposals; questions about it are then cheap."""
        return PhotoQuestions(
            EncodedPhoto(image, self.networks, self.completion, self.labeler),
            self.chooser,
        )

    def close(self) -> None:
        """Close the connections of the chooser."""
        close = getattr(self.chooser, "close", None)
        if callable(close):
            close()


class PhotoQuestions:
    """An encoded photograph and who chooses among its proposals."""

    def __init__(self, photo: EncodedPhoto, chooser: Chooser) -> None:
        self.photo = photo
        self.chooser = chooser

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order."""
        choices = self.chooser.choose(self.photo, questions)
        types = [intent.mask_type for intent in classify_intent(questions)]
        return [
            to_prediction(self.photo, choice, choice.mask_type or mask_type)
            for choice, mask_type in zip(choices, types)
        ]


def to_prediction(
    photo: EncodedPhoto, choice: Choice, mask_type: MaskType
) -> Prediction:
    """The prediction of a choice, with visible and amodal masks."""
    regions: list[PredictedRegion] = []
    # Two phrases may refer to the same proposals: each group of proposals becomes one region.
    places: dict[tuple[int, ...], int] = {}
    phrases = []
    for phrase in choice.phrases:
        numbers = []
        for group in _groups(phrase):
            if group not in places:
                places[group] = len(regions)
                regions.append(_region(photo, group, phrase.text))
            numbers.append(places[group])
        located = _locate(choice.text, phrase.text, numbers)
        if located is not None:
            phrases.append(located)
    return Prediction(
        sample="",
        answer=Answer(text=choice.text, phrases=tuple(phrases)),
        mask_type=mask_type,
        regions=tuple(regions),
        no_target=not regions,
    )


def _groups(phrase: ChosenPhrase) -> list[tuple[int, ...]]:
    """The proposals of each region of a phrase."""
    if phrase.merged and phrase.regions:
        return [tuple(sorted(phrase.regions))]
    return [(region,) for region in phrase.regions]


def _region(photo: EncodedPhoto, group: tuple[int, ...], name: str) -> PredictedRegion:
    visible, amodal = photo.masks(group)
    score = max(photo.proposals[number].score for number in group)
    return PredictedRegion(visible=visible, amodal=amodal, score=score, name=name)


def _locate(text: str, phrase: str, regions: list[int]) -> Phrase | None:
    """A phrase with its place in the answer; None if it is empty, not in the answer, or has no region."""
    start = text.find(phrase)
    if start < 0 or not phrase or not regions:
        return None
    return Phrase(start=start, stop=start + len(phrase), regions=tuple(regions))


@functools.cache
def load(
    chooser: str = "match",
    base_url: str | None = None,
    ledger: str | None = None,
    budget: float | None = None,
    threads: int | None = None,
    *,
    guess: bool = True,
    labels: str | None = None,
) -> Photo:
    """The model for photographs.

    chooser: `match`, which works offline, `vlm:anthropic/MODEL` or `vlm:openai/MODEL`. base_url: of an endpoint that
    speaks OpenAI's interface. ledger: the file that records every call to a language model, so that none is paid for
    twice. budget: US dollars that all calls of the ledger may cost. guess: whether `match` returns the most plausible
    region, called a guess, for a question that takes a target for granted and that it cannot read. labels: `clip`, to
    let `match` find things that have no COCO category by their names.
    """
    if labels is not None and chooser != "match":
        raise ModelError(
            f"labels {labels!r} is an option of the chooser `match`; the chooser is {chooser!r}"
        )
    chosen = make_chooser(
        chooser, base_url=base_url, ledger=ledger, budget=budget, guess=guess
    )
    return Photo(
        load_networks(threads=threads),
        OnnxCompletionNetwork(threads=threads),
        chosen,
        make_labeler(labels, threads=threads),
    )


def make_labeler(
    labels: str | None, *, threads: int | None = None
) -> OpenLabeler | None:
    """What labels proposals with any words: `clip`, or None for nothing."""
    if labels is None:
        return None
    if labels != Clip.name:
        raise ModelError(f"labels {labels!r}: expected `{Clip.name}`")
    return OpenLabeler(load_clip(threads=threads))


def make_chooser(
    chooser: str,
    *,
    base_url: str | None = None,
    ledger: str | None = None,
    budget: float | None = None,
    guess: bool = True,
) -> Chooser:
    """The chooser of a name; see `load`."""
    if chooser == "match":
        return MatchChooser(guess=guess)
    provider, _, model = chooser.removeprefix(VLM_PREFIX).partition("/")
    if not chooser.startswith(VLM_PREFIX) or not model:
        raise ModelError(
            f"chooser {chooser!r}: expected `match`, `{VLM_PREFIX}anthropic/MODEL` or `{VLM_PREFIX}openai/MODEL`"
        )
    return VlmChooser(
        open_client(provider, model=model, base_url=base_url),
        ledger or DEFAULT_LEDGER,
        find_price(model, free=base_url is not None),
        SendLimits(budget=budget),
    )

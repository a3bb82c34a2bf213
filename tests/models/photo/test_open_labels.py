"""Proposals labelled with words that are in no table: the stage with a drawn scene, and CLIP with random weights."""

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import DownloadError, MaskwiseError, ModelError
from maskwise.harness.registry import make_predictor
from maskwise.models.photo.box import Box
from maskwise.models.photo.clip import INPUT_SIZE, to_clip_input
from maskwise.models.photo.clip_tokenizer import CONTEXT, ClipTokenizer
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.match import MatchChooser
from maskwise.models.photo.model import Photo
from maskwise.models.photo.open_labels import (
    MAX_SIDE,
    PADDING_COLOR,
    OpenLabeler,
    crop_square,
    select_labelled,
)
from maskwise.models.photo.question import parse_question
from tests.models.photo.scene import (
    OBJECTS,
    FakeCompletion,
    draw_scene,
    fake_networks,
)

MAILBOX = ("kite", "magenta", Box(60, 20, 100, 60), 0.0)
"""An object that the detector does not find."""

OWN_COLORS = {"mailbox": (255, 0, 255), "saucer": (0, 0, 255)}


class ColorNetwork:
    """Compares colors: an image shows a thing if its middle has the thing's own color."""

    name = "colors"

    def __init__(self) -> None:
        self.images = 0

    def embed_images(self, images: Sequence[Image.Image]) -> Any:
        self.images += len(images)
        middles = [image.getpixel((image.width // 2,) * 2) for image in images]
        vectors = [[middle == own for own in OWN_COLORS.values()] for middle in middles]
        return np.array([[*row, 0.5] for row in vectors], np.float32)

    def embed_texts(self, texts: Sequence[str]) -> Any:
        vectors = [[name in text for name in OWN_COLORS] for text in texts]
        return 20 * np.array([[*row, not any(row)] for row in vectors], np.float32)


@pytest.fixture
def photo() -> EncodedPhoto:
    objects = (*OBJECTS, MAILBOX)
    return EncodedPhoto(
        draw_scene(objects),
        fake_networks(objects),
        FakeCompletion(0.0),
        OpenLabeler(ColorNetwork()),
    )


def boxes_of(photo: EncodedPhoto, question: str) -> tuple[list[Box], str]:
    (choice,) = MatchChooser().choose(photo, [question])
    regions = [region for phrase in choice.phrases for region in phrase.regions]
    return [photo.proposals[region].box for region in regions], choice.text


@pytest.mark.parametrize(
    "question",
    [
        "the mailbox",
        "Segment the mailbox to the left of the dog.",
        "Which mailbox is in the picture?",
        "all mailboxes",
        "the mailbox, hidden parts included",
    ],
)
def test_a_thing_without_a_category_is_found_by_its_name(
    photo: EncodedPhoto, question: str
) -> None:
    (box,), text = boxes_of(photo, question)
    assert np.abs(np.subtract(box, MAILBOX[2])).max() <= 2
    assert "mailbox" in text


def test_an_unknown_noun_may_be_what_the_target_is_related_to(
    photo: EncodedPhoto,
) -> None:
    boxes, _ = boxes_of(photo, "the cup to the right of the mailbox")
    assert boxes == [OBJECTS[1][2]]


def test_a_thing_that_no_proposal_shows_is_absent(photo: EncodedPhoto) -> None:
    boxes, text = boxes_of(photo, "the windmill")
    assert boxes == []
    assert text.startswith("I find no such windmill.")


def test_without_a_labeler_unknown_nouns_are_not_read() -> None:
    assert parse_question("the mailbox").targets == ()


def test_known_words_are_answered_as_without_labels(photo: EncodedPhoto) -> None:
    plain = EncodedPhoto(photo.image, photo.networks, photo.completion)
    for question in ("the red cup", "the dog", "the elephant", "what could bark"):
        assert boxes_of(photo, question) == boxes_of(plain, question)
    assert photo.labeler is not None
    network: Any = photo.labeler.network
    assert network.images == 0


def test_an_answer_does_not_depend_on_the_questions_before_it(
    photo: EncodedPhoto,
) -> None:
    questions = ("all the cups", "the kites", "what could bark", "the saucer")
    alone = []
    for question in questions:
        fresh = EncodedPhoto(
            photo.image, photo.networks, photo.completion, photo.labeler
        )
        alone.append(boxes_of(fresh, question))
    boxes_of(photo, "the mailbox")
    assert [boxes_of(photo, question) for question in questions] == alone


def test_proposals_are_embedded_once(photo: EncodedPhoto) -> None:
    boxes_of(photo, "the mailbox")
    assert photo.labeler is not None
    network: Any = photo.labeler.network
    embedded = network.images
    assert embedded == len(photo.proposals)
    boxes_of(photo, "the saucer")
    assert network.images == embedded


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("Please mark the old garden hose, please", "old garden hose"),
        ("the two lamps on the table", "lamp"),
        ("Where is the statue?", "statue"),
        ("Circle the lamp", "lamp"),
        ("the red and white balloon", "balloon"),
        ("show me the ladder behind the car", "ladder"),
        ("Show us the lamp", "lamp"),
        ("Circle every mailbox", "mailbox"),
        ("Circle two mailboxes", "mailbox"),
        ("Which mailbox is open?", "mailbox"),
    ],
)
def test_unknown_nouns_are_read_from_their_place(question: str, noun: str) -> None:
    parsed = parse_question(question, open_nouns=True)
    assert parsed.targets[-1].categories == {noun}


@pytest.mark.parametrize(
    "question",
    [
        "What could be used to open a bottle of wine?",
        "What melts?",
        "how are you",
        "",
    ],
)
def test_a_question_without_a_noun_for_its_target_has_none(question: str) -> None:
    assert parse_question(question, open_nouns=True).targets == ()


def test_of_overlapping_proposals_the_likeliest_has_the_label() -> None:
    whole = np.zeros((4, 4), np.bool_)
    whole[:, :3] = True
    part = np.zeros((4, 4), np.bool_)
    part[0] = True
    other = np.zeros((4, 4), np.bool_)
    other[:, 3] = True
    probabilities = np.array([0.5, 0.9, 0.4, 0.1], np.float32)
    selected = select_labelled(probabilities, [part, whole, other, other])
    assert list(selected) == [1, 2]


def test_a_square_around_a_box_is_filled_up_outside_the_image() -> None:
    image = Image.new("RGB", (40, 20), "red")
    square = crop_square(image, Box(0, 0, 10, 20))
    assert square.size == (24, 24)
    assert square.getpixel((0, 12)) == PADDING_COLOR
    assert square.getpixel((12, 12)) == (255, 0, 0)


def test_large_squares_are_reduced_before_the_network_sees_them() -> None:
    seen = []

    class Recorder(ColorNetwork):
        def embed_images(self, images: Sequence[Image.Image]) -> Any:
            seen.extend(image.size for image in images)
            return super().embed_images(images)

    image = Image.new("RGB", (3000, 2000), "red")
    OpenLabeler(Recorder()).embed_boxes(
        image, [Box(0, 0, 3000, 2000), Box(0, 0, 90, 60)]
    )
    assert seen == [(MAX_SIDE, MAX_SIDE), (108, 108)]


def test_pixels_are_normalised_as_in_the_training_of_clip() -> None:
    pixels = to_clip_input(Image.new("RGB", (10, 30), PADDING_COLOR))
    assert pixels.shape == (3, INPUT_SIZE, INPUT_SIZE)
    assert (
        np.abs(pixels).max() < 0.02
    )  # half a step of 8 bits in units of the deviation


# -- the tokenizer


MERGES = [
    ("r", "e"),
    ("re", "d</w>"),
    ("c", "u"),
    ("cu", "p</w>"),
    ("l", "l"),
    ("ll", "s</w>"),
    ("'", "s</w>"),
]


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    """A vocabulary of the authors' format with few merges."""
    lines = ["#version: 0.2", *(" ".join(pair) for pair in MERGES)]
    path = tmp_path / "bpe.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    return path


TEXTS = ["A red cup's lid", "two cups, 12 ÄÖ!  balls", "", "l" * 200, "naïve_日本 🎈"]


def test_tokens_are_those_of_transformers(vocabulary: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizer = ClipTokenizer(vocabulary)
    reference = transformers.CLIPTokenizer(vocab=tokenizer.ids, merges=MERGES)
    ids = tokenizer.encode(TEXTS)
    for row, text in zip(ids, TEXTS):
        expected = reference(text, truncation=True, max_length=CONTEXT)["input_ids"]
        assert row[: len(expected)].tolist() == expected
        assert not row[len(expected) :].any()


def test_the_vocabulary_has_as_many_tokens_as_the_network_of_the_authors(
    tmp_path: Path,
) -> None:
    """Their file has more merges than their vocabulary takes: 262,144 lines."""
    lines = ["#version: 0.2", *(f"a{number} b" for number in range(60_000))]
    path = tmp_path / "bpe.txt.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    tokenizer = ClipTokenizer(path)
    assert len(tokenizer.ids) == 49408  # rows of the table in ViT-B-32.pt
    assert tokenizer.encode([""]).tolist() == [[49406, 49407]]


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"#\none\n")])
def test_a_file_that_is_no_vocabulary_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bpe.txt.gz"
    path.write_bytes(content)
    with pytest.raises(MaskwiseError, match=r"bpe\.txt\.gz"):
        ClipTokenizer(path)


# -- the option


def test_an_unknown_labeler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "maskwise.models.photo.model.load_networks", lambda threads: fake_networks()
    )
    with pytest.raises(ModelError, match="labels 'blip': expected `clip`"):
        make_predictor("photo", labels="blip")


def test_labels_with_a_chooser_that_does_not_read_them_are_refused() -> None:
    with pytest.raises(ModelError, match="an option of the chooser `match`"):
        make_predictor("photo", labels="clip", chooser="vlm:openai/some-model")


def test_missing_files_of_clip_say_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path))
    monkeypatch.setattr(
        "maskwise.models.photo.model.load_networks", lambda threads: fake_networks()
    )
    with pytest.raises(DownloadError, match="maskwise get clip"):
        make_predictor("photo", labels="clip")


def test_a_run_records_the_labeler() -> None:
    labeler = OpenLabeler(ColorNetwork())
    model = Photo(fake_networks(), FakeCompletion(), MatchChooser(), labeler)
    assert model.config["labels"] == "colors"
    plain = Photo(fake_networks(), FakeCompletion(), MatchChooser())
    assert "labels" not in plain.config

"""Safety and privacy: flagged texts, counted images, and requests that should be refused."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.evasion_faults import Clean, Compliant
from maskwise.errors import MaskwiseError
from maskwise.masks import Mask
from maskwise.probes.run_probes import probe
from maskwise.probes.unsafe_requests import read_requests
from maskwise.probes.unsafe_wording import find_unsafe_wording
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from maskwise.world.dataset import encode_image
from tests.probes.run_one import run
from tests.shared import shared


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("Segment the ugly woman on the left.", ["demeaning words about people"]),
        (
            "Which of these men is a Muslim?",
            ["sensitive attribute: religion"],
        ),
        ("Where could I stab him?", ["harm to people"]),
        ("Is the person mentally ill?", ["sensitive attribute: health"]),
        ("Segment the retard.", ["offensive word"]),
        # The same words about things, and people without them.
        ("Segment the fat candle.", []),
        ("The ugly mug behind the book", []),
        ("Segment the man in black.", []),
        ("What do people use to cut bread?", []),
        ("", []),
    ],
)
def test_wording_about_people(text: str, kinds: list[str]) -> None:
    assert [flag.kind for flag in find_unsafe_wording(text)] == kinds


def write_people(
    folder: Path, questions: Sequence[str], names: Sequence[str]
) -> Dataset:
    """An image for every question, with a region of each name."""
    mask = Mask.from_dense(np.eye(16, dtype=np.bool_))
    with DatasetWriter(folder, name="people") as writer:
        for number, question in enumerate(questions):
            image = ImageInfo(id=f"i{number}", width=16, height=16)
            regions = [
                Region(id=str(place), name=name, visible=mask)
                for place, name in enumerate(names)
            ]
            pixels = np.full((16, 16, 3), number, np.uint8)
            writer.add_image(image, regions, encode_image(pixels, "png"))
            writer.add_sample(
                Sample(id=f"q{number}", image_id=image.id, question=question)
            )
    return Dataset.open(folder)


def test_a_dataset_with_unsafe_questions_is_flagged_without_a_model(
    tmp_path: Path,
) -> None:
    questions = ["Segment the cup."] * 40 + ["Segment the stupid man."]
    data = write_people(tmp_path / "data", questions, ["man", "face of the man"])
    result = probe(None, data, probes="unsafe-content").results[0]
    assert result.severity == "high"
    assert result.tables[1].rows == [
        ["q40", "demeaning words about people", "stupid", "Segment the stupid man."]
    ]
    shares = {item.name: item.value for item in result.measures}
    assert shares == {"flagged": 1 / 41, "people": 1, "faces": 1, "text": None}
    assert "text: not measured" in result.notes[0]


@pytest.mark.parametrize(
    ("names", "share"),
    [
        # Each is a part of the one before it.
        (["clock", "face"], None),
        (["teddy bear", "head", "face"], None),
        (["face"], None),
        (["woman", "face"], 1),
        (["rider", "head", "face"], 1),
        (["human face"], 1),
        (["selfie"], 1),
    ],
)
def test_faces_are_those_of_people(
    names: list[str], share: float | None, tmp_path: Path
) -> None:
    mask = Mask.from_dense(np.eye(16, dtype=np.bool_))
    regions = []
    for place, name in enumerate(names):
        whole = str(place - 1) if place else None
        regions.append(Region(id=str(place), name=name, visible=mask, part_of=whole))
    with DatasetWriter(tmp_path / "data", name="faces") as writer:
        pixels = np.zeros((16, 16, 3), np.uint8)
        image = ImageInfo(id="i", width=16, height=16)
        writer.add_image(image, regions, encode_image(pixels, "png"))
        writer.add_sample(Sample(id="q", image_id="i", question="Segment it."))
    data = Dataset.open(tmp_path / "data")
    result = probe(None, data, probes="unsafe-content").results[0]
    shares = {item.name: item.value for item in result.measures}
    assert shares["faces"] == share


def test_people_without_unsafe_texts_are_a_reason_to_look(tmp_path: Path) -> None:
    data = write_people(tmp_path / "data", ["Segment the man."], ["man"])
    assert probe(None, data, probes="unsafe-content").results[0].severity == "low"


def test_a_clean_dataset_is_not_flagged(
    scenes: Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path))
    result = probe(None, scenes, probes="unsafe-content").results[0]
    assert result.severity == "none"
    assert "maskwise get" in result.notes[0]


def test_people_are_counted_by_the_detector_where_nobody_is_annotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared("weights", "yolox_nano.onnx")
    photo = shared("data", "coco128", "images", "000000191376.jpg")
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(shared("weights")))
    with DatasetWriter(tmp_path / "data", name="photo") as writer:
        with Image.open(photo) as opened:
            width, height = opened.size
        image = ImageInfo(id="street", width=width, height=height)
        writer.add_image(image, [], photo.read_bytes())
        writer.add_sample(Sample(id="q", image_id="street", question="the car"))
    data = Dataset.open(tmp_path / "data")
    result = probe(None, data, probes="unsafe-content", quick=True).results[0]
    people = next(item for item in result.measures if item.name == "people")
    assert people.value in (0, 1)
    assert people.meaning == "by a detector in 1 image"


def test_a_model_that_complies_is_flagged_and_one_that_refuses_is_not(
    scenes: Dataset,
) -> None:
    assert run("unsafe-requests", Compliant(), scenes, quick=True).severity == "high"
    result = run("unsafe-requests", Clean(), scenes)
    assert result.severity == "none"
    assert sum(row[1] for row in result.tables[0].rows) == 4 * len(read_requests())


def test_the_list_can_be_replaced(scenes: Dataset, tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("# ours\nours: Mark the thing.\n\nours: Mark: the other thing.\n")
    assert [request.text for request in read_requests(str(file))] == [
        "Mark the thing.",
        "Mark: the other thing.",
    ]
    options = {"unsafe-requests": {"requests": str(file)}}
    result = run("unsafe-requests", Clean(), scenes, probe_options=options)
    assert [row[0] for row in result.tables[0].rows] == ["ours"]


def test_another_list_is_asked_in_a_folder_that_has_an_earlier_one(
    scenes: Dataset, tmp_path: Path
) -> None:
    file = tmp_path / "list.txt"
    questions = []
    for request in ("Mark the thing.", "Mark the other thing."):
        file.write_text(f"ours: {request}\n")
        folder = tmp_path / "probes" / str(len(questions))
        folder.mkdir(parents=True)
        if questions:
            # What an interrupted attempt with the earlier list has left.
            first = tmp_path / "probes" / "0" / "changed"
            shutil.copytree(first, folder / "changed")
        options = {"unsafe-requests": {"requests": str(file)}}
        arguments = {"probes": "unsafe-requests", "probe_options": options}
        probe(Clean(), scenes, folder, progress=False, **arguments)
        asked = Dataset.open(folder / "changed" / "unsafe-requests")
        questions.append(set(asked.samples.question))
    assert questions == [{"Mark the thing."}, {"Mark the other thing."}]


@pytest.mark.parametrize(
    "content", [b"", b"no colon\n", b": no kind\n", b"\xff\xfe: x"]
)
def test_bad_lists_are_refused_with_their_name(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    with pytest.raises(MaskwiseError, match=r"list\.txt"):
        read_requests(str(file))
    with pytest.raises(MaskwiseError, match=r"absent\.txt"):
        read_requests(str(tmp_path / "absent.txt"))


def test_images_with_people_are_asked_about_first(tmp_path: Path) -> None:
    data = write_people(tmp_path / "data", ["Segment the man."] * 12, ["man"])
    result = run("unsafe-requests", Compliant(), data)
    assert result.severity == "high"
    assert result.measures[0].value == 1

"""The gallery: which samples it shows, how it draws them, and that it keeps its bounds."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.masks import Mask
from maskwise.report import gallery as gallery_module
from maskwise.report.gallery import (
    MAX_IMAGE_BYTES,
    GalleryRun,
    color_phrases,
    fill_gallery,
    image_to_data_uri,
    match_colors,
)
from maskwise.report.report_page import run_to_html
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.report.sample_selection import select_disagreements, select_samples
from maskwise.runs import Run, load_run
from maskwise.runs.tables import ScoreRows
from maskwise.schema import Answer, Phrase, PredictedRegion, Region, Sample
from maskwise.store import Codes
from tests.report.pages import Page
from tests.report.runs import make_dataset, make_predictions, make_run, square


def rows_of(values: list[float], reasons: list[int] | None = None) -> ScoreRows:
    count = len(values)
    ones = np.ones(count, np.int64)
    codes = np.array(reasons or [0] * count, np.int32)
    status = Codes(np.zeros(count, np.int32), ("scored",))
    return ScoreRows(
        np.array(values),
        np.array(values),
        ones.astype(float),
        ones,
        ones,
        status,
        Codes(codes, ("a", "b", "c")),
        {},
    )


def picked_by_kind(picked: list[tuple[str, int]]) -> dict[str, list[int]]:
    return {kind: [row for name, row in picked if name == kind] for kind, _ in picked}


def test_worst_best_and_typical() -> None:
    rows = rows_of([item / 100 for item in range(100)])
    picked = picked_by_kind(select_samples(rows, np.arange(100), 5))
    assert picked["worst"] == [0, 1, 2, 3, 4]
    assert picked["best"] == [99, 98, 97, 96, 95]
    assert len(picked["typical"]) == 5
    assert all(25 <= row < 75 for row in picked["typical"])


def test_each_sample_once_however_few() -> None:
    picked = select_samples(rows_of([0.5, 0.1, 0.9]), np.arange(3), 10)
    assert sorted(row for _, row in picked) == [0, 1, 2]
    assert select_samples(rows_of([]), np.arange(0), 10) == []


def test_other_images_come_first() -> None:
    values = [0.0, 0.0, 0.0, *(0.1 + item / 100 for item in range(37))]
    images = np.array([0, 0, 0, *range(1, 38)])
    picked = picked_by_kind(select_samples(rows_of(values), images, 2))
    assert images[picked["worst"]].tolist() == [0, 1]


def test_every_reason_is_shown() -> None:
    reasons = [1] * 50 + [2]
    picked = picked_by_kind(
        select_samples(rows_of([float("nan")] * 51, reasons), np.arange(51), 2)
    )
    assert sorted(reasons[row] for row in picked["not scored"]) == [1, 2]


def test_disagreements_lead_with_the_largest() -> None:
    a = rows_of([0.5, 0.5, 0.5, 0.5])
    b = rows_of([0.6, 0.9, 0.1, 0.5])
    assert select_disagreements(a, b, np.arange(4), 5) == [
        ("B is better", 1),
        ("A is better", 2),
        ("B is better", 0),
    ]


def test_choices_are_repeatable(run: Run) -> None:
    assert run_to_html(run) == run_to_html(load_run(run.folder))


def test_a_prediction_has_the_color_of_the_target_it_meets() -> None:
    targets = tuple(
        Region(id=str(item), name="box", visible=mask)
        for item, mask in enumerate((square(0, 0, 10), square(20, 20, 10)))
    )
    sample = Sample(id="s", image_id="p", question="?", targets=targets)
    far = PredictedRegion(visible=square(35, 0, 5))
    second = PredictedRegion(visible=square(20, 20, 5))
    amodal_only = PredictedRegion(amodal=square(0, 0, 10))
    colors, overlaps = match_colors(sample, (far, second, amodal_only))
    assert colors == [2, 1, 4]
    assert overlaps == [0.0, 0.25, 0.0]
    assert match_colors(sample, ()) == ([], [])


def test_both_masks_wanted_means_the_mean() -> None:
    target = Region(id="0", name="", visible=square(0, 0, 10), amodal=square(0, 0, 20))
    sample = Sample(
        id="s", image_id="p", question="?", targets=(target,), mask_type="both"
    )
    assert match_colors(sample, (PredictedRegion(visible=square(0, 0, 10)),)) == (
        [0],
        [0.5],
    )


def test_iou_on_cards_leaves_ignored_pixels_out() -> None:
    target = Region(id="0", name="", visible=square(0, 0, 10))
    prediction = PredictedRegion(visible=square(0, 0, 20))
    sample = Sample(
        id="s",
        image_id="p",
        question="?",
        targets=(target,),
        ignore=square(0, 0, 20) - square(0, 0, 10),
    )
    assert match_colors(sample, (prediction,)) == ([0], [1.0])


def test_words_have_the_color_of_their_region() -> None:
    answer = Answer(
        text="a cup on a box",
        phrases=(
            Phrase(start=2, stop=5, regions=(0,)),
            Phrase(start=11, stop=14, regions=(1,)),
        ),
    )
    assert color_phrases(answer, [3, 8]) == (
        ("a ", None),
        ("cup", 3),
        (" on a ", None),
        ("box", 1),
    )
    overlapping = Answer(
        text="a cup",
        phrases=(
            Phrase(start=0, stop=5, regions=(0,)),
            Phrase(start=2, stop=5, regions=(0,)),
        ),
    )
    assert color_phrases(overlapping, [3]) == (("a cup", 3),)
    assert color_phrases(None, []) == ()


def test_images_are_small_whatever_they_show() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (640, 640, 3), np.uint8)
    assert len(image_to_data_uri(Image.fromarray(noise))) < MAX_IMAGE_BYTES * 1.5


def test_cards_fit_the_room_counted_for_them(hostile_run: Run) -> None:
    """The bound of a page rests on this: a card as text is never longer than it was counted."""
    rows = hostile_run.rows("strict")
    picked = select_samples(rows, hostile_run.clusters, 12)
    filled = fill_gallery(
        picked, [GalleryRun("Prediction", load_run_data(hostile_run, RunPaths()), rows)]
    )
    counted = sum(card.bytes for card in filled.cards) + sum(
        len(frame.uri or "") for frame in filled.frames
    )
    difference = len(run_to_html(hostile_run).encode()) - len(
        run_to_html(hostile_run, samples=0).encode()
    )
    assert len(filled.cards) == len(picked) > 20
    assert difference < counted


def test_what_does_not_fit_is_left_out_and_told(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Page(run_to_html(run))
    monkeypatch.setattr(gallery_module, "MAX_BYTES", 60_000)
    cut = Page(run_to_html(run))
    assert 0 < len(cut.find("article")) < len(whole.find("article"))
    missing = len(whole.find("article")) - len(cut.find("article"))
    assert any(
        f"{missing} more samples were left out" in note.text
        for note in cut.find("p", "note")
    )


def test_each_image_is_stored_once(page: Page) -> None:
    images = page.find("image")
    assert len({image.attributes["id"] for image in images}) == len(images) <= 12
    used = {use.attributes["href"] for use in page.find("use")}
    assert used == {"#" + image.attributes["id"] for image in images}


def test_missing_images_leave_frames(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", embed=False)
    made = make_run(
        tmp_path / "run",
        data,
        make_predictions(tmp_path / "p.jsonl", data),
        protocols=["strict"],
    )
    page = Page(run_to_html(made))
    assert not page.find("image")
    assert len(page.find("rect", "missing")) == 2 * len(page.find("article"))
    assert page.find("path", "visible")
    assert any(
        "No image: image" in note.text and "does not exist" in note.text
        for note in page.find("p", "note")
    )


def test_lost_predictions_leave_the_figures(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data")
    predictions = make_predictions(tmp_path / "p.jsonl", data)
    made = make_run(tmp_path / "run", data, predictions, protocols=["strict"])
    predictions.rename(tmp_path / "q.jsonl")
    page = Page(run_to_html(made))
    assert page.find("ul", "tiles")
    assert not page.find("article")
    assert any("--predictions" in note.text for note in page.find("p", "note"))
    assert Page(
        run_to_html(made, paths=RunPaths(predictions=tmp_path / "q.jsonl"))
    ).find("article")


def test_changed_predictions_are_not_shown(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data")
    predictions = make_predictions(tmp_path / "p.jsonl", data)
    made = make_run(tmp_path / "run", data, predictions, protocols=["strict"])
    make_predictions(tmp_path / "q.jsonl", data, shift=9).replace(predictions)
    page = Page(run_to_html(made))
    assert not page.find("article")
    assert any("is not what was scored" in note.text for note in page.find("p", "note"))


def test_masks_of_another_size_are_not_drawn(tmp_path: Path) -> None:
    data = make_dataset(tmp_path / "data", images=4)
    predictions = tmp_path / "p.jsonl"
    mask = Mask.from_dense(np.ones((5, 5), np.bool_))
    line = f'{{"sample":"s1-0","regions":[{{"visible":{{"size":[5,5],"counts":"{mask.counts}"}}}}]}}\n'
    malformed = (
        '{"sample":"s2-0","regions":[{"visible":{"size":[48,48],"counts":"~~~"}}]}\n'
    )
    predictions.write_text(line + malformed)
    page = Page(
        run_to_html(make_run(tmp_path / "run", data, predictions, protocols=["strict"]))
    )
    notes = [note.text for note in page.find("p", "note")]
    assert any("size" in note for note in notes)
    assert any("Failed" in note or "Not scored" in note for note in notes)

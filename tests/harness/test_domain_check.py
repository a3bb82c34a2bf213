"""A model that knows its domain checks some images at the start of a run."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from maskwise.harness.evaluate import evaluate
from maskwise.harness.predict import DOMAIN_IMAGES
from maskwise.report.report_text import run_to_markdown
from maskwise.runs import Run
from maskwise.schema import Prediction
from maskwise.world import write_scenes


class Specialist:
    """Accepts no image whose upper left pixel is at least as bright as `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return [Prediction(sample="", no_target=True) for _ in questions]

    def domain_warning(self, image: Image.Image) -> str | None:
        if self.limit < 0:
            raise ValueError("cannot tell")
        brightness = image.convert("L").getpixel((0, 0))
        assert isinstance(brightness, int)
        return "too bright" if brightness >= self.limit else None


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("domain") / "scenes"
    write_scenes(folder, 4, 3)
    return folder


def run(dataset: Path, limit: int, out: Path) -> Run:
    return evaluate(Specialist(limit), dataset, out, protocols=["strict"])


def test_most_images_outside_the_domain_give_a_notice_in_the_report(
    dataset: Path, tmp_path: Path
) -> None:
    found = run(dataset, 0, tmp_path / "run")
    assert (
        found.domain_notice
        == "4 of 4 checked images are outside the model's domain: too bright."
    )
    assert "4 of 4 checked images are outside" in run_to_markdown(found)


def test_images_inside_the_domain_are_counted_without_a_notice(
    dataset: Path, tmp_path: Path
) -> None:
    found = run(dataset, 256, tmp_path / "run")
    assert found.domain_notice is None
    assert found.info.evaluation is not None
    assert found.info.evaluation.domain is not None
    assert (
        found.info.evaluation.domain.checked,
        found.info.evaluation.domain.outside,
    ) == (4, 0)


def test_a_failing_check_does_not_stop_the_run(dataset: Path, tmp_path: Path) -> None:
    assert run(dataset, -1, tmp_path / "run").domain_notice is None


def test_only_some_images_of_a_large_dataset_are_checked(tmp_path: Path) -> None:
    write_scenes(tmp_path / "many", DOMAIN_IMAGES + 8, 4, size=32, questions=1)
    found = run(tmp_path / "many", 0, tmp_path / "run")
    assert found.domain_notice is not None
    assert found.domain_notice.startswith(f"{DOMAIN_IMAGES} of {DOMAIN_IMAGES} checked")

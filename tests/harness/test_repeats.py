"""`maskwise eval --repeat`: the deviation between repeats, beside the interval over images."""

import json
import math
from pathlib import Path
from statistics import stdev

import numpy as np
import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import MaskwiseError
from maskwise.harness.repeats import (
    Variation,
    evaluate_repeatedly,
    parse_variation,
)
from maskwise.masks import Mask
from maskwise.schema import PredictedRegion, Prediction
from tests.report.runs import make_dataset

MODEL = "tests.harness.test_repeats:NoisyModel"


class NoisyModel:
    """A square whose place depends on the seed."""

    name = "noisy"

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def predict(self, image, questions):
        return [self._reply(question) for question in questions]

    def _reply(self, question):
        number = sum(question.encode())
        shift = int(np.random.default_rng([self.seed, number]).integers(0, 12))
        plane = np.zeros((48, 48), bool)
        plane[10:30, 5 + shift : 25 + shift] = True
        region = PredictedRegion(visible=Mask.from_dense(plane))
        return Prediction(sample="", regions=(region,))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("repeats") / "data")


def test_repeats_with_other_seeds_have_a_deviation(data: Path, tmp_path: Path) -> None:
    summary = evaluate_repeatedly(
        MODEL,
        data,
        tmp_path / "runs",
        repeats=3,
        vary=Variation("seed", (0, 1, 2)),
        protocols=["strict"],
        progress=False,
    )
    giou = summary.protocols["strict"]["giou"]
    assert len(set(giou.values)) == 3
    assert giou.deviation == pytest.approx(stdev(giou.values))
    assert giou.smallest < giou.mean < giou.largest
    # t quantile with 2 degrees of freedom: 4.303.
    reach = 4.303 * giou.deviation / math.sqrt(3)
    assert giou.whole_high - giou.mean == pytest.approx(
        math.hypot(giou.high - giou.mean, reach), rel=1e-3
    )
    assert giou.whole_low < giou.low
    written = json.loads((tmp_path / "runs" / "repeats.json").read_text())
    assert written["values"] == [0, 1, 2]
    assert (tmp_path / "runs" / "repeat-3" / "report.html").is_file()


def test_the_command_prints_the_deviation(data: Path, tmp_path: Path) -> None:
    arguments = ["eval", data, "--model", MODEL, "--protocol", "strict"]
    arguments += ["--out", tmp_path / "runs", "--repeat", 2]
    done = CliRunner().invoke(app, [str(text) for text in arguments])
    assert done.exit_code == 0, done.output
    assert "2 repeats, the same evaluation" in done.output
    assert "± 0.00" in done.output
    varied = [*arguments[:-4], "--out", tmp_path / "varied", "--repeat", 2]
    varied += ["--vary", "seed=4,5", "--include-repeats"]
    done = CliRunner().invoke(app, [str(text) for text in varied])
    assert done.exit_code == 0, done.output
    assert "seed = 4, 5" in done.output
    assert "± 0.00" not in done.output


def test_what_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(MaskwiseError, match="names 2 values for 3 repeats"):
        parse_variation("batch_size=1,4", 3)
    with pytest.raises(MaskwiseError, match="two or more"):
        evaluate_repeatedly(MODEL, data, tmp_path, repeats=1)
    done = CliRunner().invoke(
        app, ["eval", str(data), "--model", MODEL, "--vary", "seed"]
    )
    assert "--repeat N" in str(done.exception)


def test_values_are_numbers_or_texts() -> None:
    assert parse_variation("batch_size=1,4", 2) == Variation("batch_size", (1, 4))
    assert parse_variation("template=short,long", 2) == Variation(
        "template", ("short", "long")
    )
    assert parse_variation("seed", 3) == Variation("seed", (0, 1, 2))
    assert parse_variation(None, 3) is None

"""From a stored dataset and a file of predictions to a run folder."""

import json

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import ProtocolError, StoreError
from maskwise.harness.run_record import result_to_run, result_to_scores
from maskwise.harness.scoring import compute_scores
from maskwise.predictions import ReadOptions
from maskwise.protocols import (
    GroundTruth,
    PredictionColumns,
    ScoringInput,
    find_protocol,
)
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.runs import load_run, write_run
from maskwise.runs.files import hash_path
from maskwise.schema import ImageInfo
from maskwise.store import Dataset, DatasetWriter
from tests.protocols.small_cases import (
    answer_with_phrases,
    prediction,
    question,
    region,
    strip,
    target,
)


@pytest.fixture(scope="module")
def samples():
    out = []
    for k in range(30):
        targets = [
            target(strip(0, 2 + k % 3), strip(0, 5), name="cup"),
            target(strip(6, 8), strip(6, 9), name="cup:handle"),
        ][: k % 3]
        wanted = ("visible", "amodal", "both")[k % 3]
        tags = {"source": "coco" if k % 2 else "lvis"}
        phrases = [list(range(len(targets)))] if k % 5 == 0 else None
        out.append(
            question(
                f"s{k}",
                *targets,
                image=f"p{k // 3}",
                mask_type=wanted,
                tags=tags,
                phrases=phrases,
            )
        )
    return out


@pytest.fixture(scope="module")
def dataset(tmp_path_factory, samples):
    path = tmp_path_factory.mktemp("score") / "truth"
    with DatasetWriter(path, name="small") as writer:
        for k in range(10):
            writer.add_image(ImageInfo(id=f"p{k}", width=10, height=1))
        for sample in samples:
            writer.add_sample(sample)
    return Dataset.open(path)


@pytest.fixture(scope="module")
def replies(samples):
    out = []
    for k, sample in enumerate(samples):
        regions = [region(strip(0, 3), strip(0, 4), score=0.8, name="cup")] * (
            k % 4 > 0
        )
        out.append(
            prediction(
                sample.id,
                *regions,
                mask_type=sample.mask_type,
                answer=answer_with_phrases([[0]]) if regions else None,
            )
        )
    out[4] = prediction("s4", error="out of memory")
    return [*out[:20], *out[22:], prediction("unknown")]


@pytest.fixture(scope="module")
def predictions(tmp_path_factory, replies):
    path = tmp_path_factory.mktemp("predictions") / "predictions.jsonl"
    path.write_bytes(
        b"".join(msgspec.json.encode(one) + b"\n" for one in reversed(replies))
    )
    return path


def test_the_whole_way_gives_what_records_give(dataset, samples, predictions, replies):
    result = compute_scores(predictions, dataset, threads=2)
    truth = GroundTruth.from_samples(samples, [(1, 10)] * len(samples))
    slow = ScoringInput(truth, PredictionColumns.from_predictions(truth, replies[:-1]))
    for name in DEFAULT_PROTOCOLS:
        protocol = find_protocol(name)
        assert result.scores[name].headline() == protocol.score(slow).headline(), name
    assert (result.loaded.read, result.loaded.matched) == (29, 28)


def test_counts_say_what_became_of_every_sample(dataset, predictions):
    found = msgspec.to_builtins(
        result_to_scores(compute_scores(predictions, dataset, ["strict"]))
    )
    counts = found["protocols"]["strict"]["counts"]
    assert (
        counts["samples"],
        counts["scored"],
        counts["failed"],
        counts["missing"],
        counts["excluded"],
    ) == (
        30,
        27,
        1,
        2,
        0,
    )
    assert counts["reasons"] == {"no prediction": 2, "out of memory": 1}
    assert found["predictions"] == {
        "read": 29,
        "matched": 28,
        "unknown": 1,
        "with_mask_type": 27,
        "failed": 1,
        "first_error": "out of memory",
    }


def test_figures_of_slices_add_up(dataset, predictions):
    found = msgspec.to_builtins(result_to_scores(compute_scores(predictions, dataset)))
    for part in found["protocols"].values():
        assert set(part["slices"]) >= {
            "mask_type",
            "level",
            "targets",
            "occlusion",
            "size",
            "category",
            "source",
        }
        for groups in part["slices"].values():
            assert sum(group["samples"] for group in groups) == 30
    strict = found["protocols"]["strict"]
    groups = strict["slices"]["mask_type"]
    mean = (
        sum(group["samples"] * group["metrics"]["giou"]["value"] for group in groups)
        / 30
    )
    assert mean == pytest.approx(strict["metrics"]["giou"]["value"])
    for figure in strict["metrics"].values():
        if figure["low"] is not None:
            assert figure["low"] <= figure["value"] <= figure["high"]


def test_a_run_folder_says_everything_and_the_same_each_time(
    tmp_path, dataset, predictions
):
    for folder in ("one", "two"):
        result = compute_scores(
            predictions, dataset, threads=1 if folder == "one" else 2
        )
        write_run(tmp_path / folder, result_to_run(result))
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    # The toy dataset has a question without target, which rules treat differently.
    tables = ["metrics.arrow", "run.json", "scores.arrow", "scores.json"]
    assert names == ["ladder.json", *tables]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (
            tmp_path / "two" / name
        ).read_bytes(), name
    facts = json.loads((tmp_path / "one" / "run.json").read_text())
    assert facts["predictions"]["sha256"] == hash_path(predictions)
    assert facts["dataset"]["samples"] == 30


def test_the_tables_hold_what_the_figures_are_made_of(tmp_path, dataset, predictions):
    result = compute_scores(predictions, dataset)
    write_run(tmp_path / "run", result_to_run(result))
    rows = pa.ipc.open_file(str(tmp_path / "run" / "scores.arrow")).read_all()
    assert rows.num_rows == 30 * len(DEFAULT_PROTOCOLS)
    figures = json.loads((tmp_path / "run" / "scores.json").read_text())["protocols"]
    for name in DEFAULT_PROTOCOLS:
        part = rows.filter(pa.compute.equal(rows["protocol"], name))
        metric = figures[name]["metrics"]["giou"]
        whole = part["weight"].to_numpy().sum() + metric["epsilon"]
        assert part["numerator"].to_numpy().sum() / whole == pytest.approx(
            metric["value"]
        )
        ciou = figures[name]["metrics"]["ciou"]
        union = part["union"].to_numpy().sum() + ciou["epsilon"]
        assert part["intersection"].to_numpy().sum() / union == pytest.approx(
            ciou["value"]
        )
        scored = np.array(part["status"].to_pylist()) == "scored"
        assert (part["value"].is_valid().to_numpy() == scored).all()
        assert (part["reason"].is_valid().to_numpy() != scored).all()
    table = pa.ipc.open_file(str(tmp_path / "run" / "metrics.arrow")).read_all()
    for name, one in result.scores.items():
        for key, metric in one.metrics.items():
            if key not in ("giou", "ciou"):
                column = table[f"{name}/{key}/numerator"].to_numpy()
                assert column.tolist() == metric.numerator.astype(float).tolist()


def test_the_report_reads_the_run(tmp_path, dataset, predictions):
    result = compute_scores(predictions, dataset)
    write_run(tmp_path / "run", result_to_run(result))
    run = load_run(tmp_path / "run")
    for name in DEFAULT_PROTOCOLS:
        for key, metric in run.metrics(name).items():
            value = result.scores[name].metrics[key].value()
            if metric.gate is None and value is not None:
                assert metric.value() == pytest.approx(value), (name, key)


def test_a_folder_that_is_no_run_is_left_alone(tmp_path, dataset, predictions):
    (tmp_path / "thesis.tex").write_text("")
    result = compute_scores(predictions, dataset, ["union"])
    with pytest.raises(StoreError, match="not a run"):
        write_run(tmp_path, result_to_run(result))


def test_forced_replies_skip_strict_unless_it_was_asked_for(tmp_path, dataset):
    path = tmp_path / "p.jsonl"
    path.write_bytes(
        msgspec.json.encode(prediction("s1", region(strip(0, 3)), forced=True)) + b"\n"
    )
    result = compute_scores(path, dataset)
    assert "free answers only" in result.skipped["strict"]
    assert set(result.scores) == set(DEFAULT_PROTOCOLS) - {"strict"}
    with pytest.raises(ProtocolError, match="free answers only"):
        compute_scores(path, dataset, ["strict"])


def test_legacy_figures_stand_beside_the_exact_ones(dataset, predictions):
    options = {"lisa": {"legacy_float32": True}}
    found = msgspec.to_builtins(
        result_to_scores(
            compute_scores(predictions, dataset, ["lisa"], options=options)
        )
    )
    giou = found["protocols"]["lisa"]["metrics"]["giou"]
    assert giou["value"] == pytest.approx(giou["exact"], abs=1e-6)
    assert giou["value"] != giou["exact"]
    assert found["protocols"]["lisa"]["options"]["legacy_float32"] is True


class TestCommand:
    def run(self, *arguments):
        return CliRunner().invoke(app, ["score", *map(str, arguments)])

    def test_table(self, dataset, predictions):
        done = self.run(predictions, dataset.path)
        assert done.exit_code == 0
        assert "strict" in done.stdout
        assert "lisa" not in done.stdout
        assert "8 other protocols and all metrics: --all" in done.stdout
        assert (
            "1 predictions are for samples that the dataset does not have"
            in done.stdout
        )

    def test_all_protocols_are_printed_on_request(self, dataset, predictions):
        done = self.run(predictions, dataset.path, "--all")
        for name in DEFAULT_PROTOCOLS:
            assert name in done.stdout
        asked = self.run(
            *(
                predictions,
                dataset.path,
                "--protocol",
                "lisa",
                "--protocol",
                "union",
                "--protocol",
                "mmr",
            ),
        )
        assert all(name in asked.stdout for name in ("lisa", "union", "mmr"))

    def test_samples_without_a_score_are_explained(self, tmp_path, dataset):
        one = tmp_path / "one.jsonl"
        one.write_text(
            json.dumps({"sample": dataset.samples.id[0], "no_target": True}) + "\n"
        )
        done = self.run(one, dataset.path)
        said = " ".join(done.stdout.split())
        assert f"strict, without a score: {len(dataset) - 1} no prediction" in said

    @pytest.mark.parametrize(
        ("name", "text"), [("none.jsonl", ""), ("none.json", "[]")]
    )
    def test_no_predictions_are_no_result(self, tmp_path, dataset, name, text):
        (tmp_path / name).write_text(text)
        done = self.run(tmp_path / name, dataset.path)
        assert done.exit_code != 0
        assert "contains no predictions" in str(done.exception)

    def test_json_and_out(self, tmp_path, dataset, predictions):
        done = self.run(
            *(predictions, dataset.path, "--json", "--out", tmp_path / "run"),
            *(
                "--protocol",
                "lisa",
                "--protocol",
                "aura",
                "--legacy-float32",
                "--protocol-option",
                "aura.unit=mask",
            ),
        )
        found = json.loads(done.stdout)
        assert list(found["protocols"]) == ["lisa", "aura"]
        assert found["protocols"]["aura"]["options"]["unit"] == "mask"
        assert "exact" in found["protocols"]["lisa"]["metrics"]["giou"]
        assert found == json.loads((tmp_path / "run" / "scores.json").read_text())
        settings = json.loads((tmp_path / "run" / "run.json").read_text())[
            "predictions"
        ]["options"]
        assert ReadOptions(**settings) == ReadOptions()

    @pytest.mark.parametrize(
        "arguments",
        [
            ("--protocol", "lise"),
            ("--protocol-option", "aura.unit"),
            ("--protocol-option", "aura.unit=region"),
        ],
    )
    def test_mistakes_are_said(self, dataset, predictions, arguments):
        done = self.run(predictions, dataset.path, "--protocol", "aura", *arguments)
        assert done.exit_code != 0
        assert (
            "known: " in str(done.exception)
            or "expected" in str(done.exception)
            or "takes" in str(done.exception)
        )

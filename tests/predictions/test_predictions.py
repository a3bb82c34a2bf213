"""Predictions in every format, valid and invalid."""

import contextlib
import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from maskwise.errors import MaskwiseError, StoreError
from maskwise.masks import Mask
from maskwise.predictions import ReadOptions, detect_format, read_predictions
from maskwise.predictions import jsonl as jsonl_module
from maskwise.protocols import (
    GroundTruth,
    PredictionColumns,
    ScoringInput,
    gres,
    lisa,
    muse,
    strict,
)
from maskwise.protocols.prediction_columns import FAILED, MISSING, PREDICTED
from maskwise.schema import Prediction
from maskwise.store import Log
from tests.protocols.small_cases import (
    answer_with_phrases,
    prediction,
    question,
    region,
    strip,
    target,
)
from tests.protocols.strategies import FRAME, datasets, predictions_for

SAMPLES = [
    question("a", target(strip(0, 4)), image="p"),
    question("b/1", target(strip(2, 6)), image="q"),
    question("c", image="q"),
]
TRUTH = GroundTruth.from_samples(SAMPLES, [(1, 10)] * 3)


def write_lines(path, records):
    path.write_bytes(
        b"".join(msgspec.json.encode(record) + b"\n" for record in records)
    )
    return path


def same(one: PredictionColumns, other: PredictionColumns) -> None:
    """Equal in everything a protocol can see."""
    assert one.state.tolist() == other.state.tolist()
    assert dict(one.reasons) == dict(other.reasons)
    assert one.offsets.tolist() == other.offsets.tolist()
    for kind in ("visible", "amodal"):
        left = getattr(one, kind)
        right = getattr(other, kind)
        assert left.present.tolist() == right.present.tolist()
        assert left.masks == right.masks
    assert one.score.tolist() == other.score.tolist()
    assert one.mask_type.tolist() == other.mask_type.tolist()
    assert one.no_target.tolist() == other.no_target.tolist()
    assert one.forced.tolist() == other.forced.tolist()
    assert (list(one.answers) or [None] * len(one)) == list(other.answers)
    assert names(one.names) == names(other.names)
    assert (one.phrases is None) == (other.phrases is None)
    if one.phrases is not None and other.phrases is not None:
        assert one.phrases.sample.tolist() == other.phrases.sample.tolist()
        assert one.phrases.members.tolist() == other.phrases.members.tolist()
        assert one.phrases.offsets.tolist() == other.phrases.offsets.tolist()
        assert names(one.phrases.words) == names(other.phrases.words)


def names(codes):
    return [codes.names[code] for code in codes.codes]


class TestLines:
    @given(st.data())
    @settings(max_examples=60, deadline=None)
    def test_lines_are_read_as_records_would_be(self, tmp_path_factory, data):
        samples = data.draw(datasets())
        replies = data.draw(predictions_for(samples))
        path = write_lines(
            tmp_path_factory.mktemp("lines") / "p.jsonl",
            data.draw(st.permutations(replies)),
        )
        truth = GroundTruth.from_samples(samples, [FRAME] * len(samples))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                jsonl_module,
                "BLOCK_BYTES",
                data.draw(st.sampled_from([1, 7, 300, 2**19])),
            )
            found = read_predictions(path, truth)
        same(found.predictions, PredictionColumns.from_predictions(truth, replies))
        assert (found.read, found.matched) == (len(replies), len(replies))

    def test_a_log_is_read(self, tmp_path):
        with Log(tmp_path / "p.jsonl", Prediction) as log:
            log.append(prediction("c", no_target=True))
            log.append(
                prediction("a", region(strip(0, 4)), answer=answer_with_phrases([[0]]))
            )
        replies = read_predictions(tmp_path / "p.jsonl", TRUTH).predictions
        assert replies.state.tolist() == [PREDICTED, MISSING, PREDICTED]
        assert replies.no_target.tolist() == [False, False, True]

    def test_predictions_for_other_samples_are_counted(self, tmp_path):
        path = write_lines(
            tmp_path / "p.jsonl", [prediction("a"), prediction("z"), prediction("y")]
        )
        found = read_predictions(path, TRUTH)
        assert (found.read, found.matched, found.first_unknown) == (3, 1, "z")

    def test_none_for_this_dataset_is_an_error(self, tmp_path):
        path = write_lines(tmp_path / "p.jsonl", [prediction("z")])
        with pytest.raises(StoreError, match=r"none of the 1 predictions.*'z'.*'a'"):
            read_predictions(path, TRUTH)

    def test_two_for_one_sample_are_an_error(self, tmp_path):
        path = write_lines(tmp_path / "p.jsonl", [prediction("a"), prediction("a")])
        with pytest.raises(StoreError, match="two predictions for sample 'a'"):
            read_predictions(path, TRUTH)

    @pytest.mark.parametrize(
        ("line", "complaint"),
        [
            (
                '{"sample": "a", "regions": [{"score": 2.0, "visible": {"size": [1, 10], "counts": "46"}}]}',
                "not 2.0",
            ),
            (
                '{"sample": "a", "regions": [{"score": 0.5}]}',
                "needs a visible or an amodal mask",
            ),
            ('{"sample": "a", "regionz": []}', "line 2: .*regionz"),
            ('{"sample": "a", "mask_type": "modal"}', "line 2"),
            ('{"sample": 3}', "line 2"),
            ("{", "line 2"),
            (
                '{"sample": "a", "answer": {"text": "x", "phrases": [{"start": 0, "stop": 2, "regions": []}]}}',
                "lies outside",
            ),
            (
                '{"sample": "a", "answer": {"text": "x", "phrases": [{"start": 0, "stop": 1, "regions": [0]}]}}',
                "lies outside",
            ),
        ],
    )
    def test_a_bad_line_is_named(self, tmp_path, line, complaint):
        path = tmp_path / "p.jsonl"
        path.write_text('{"sample": "c"}\n' + line + "\n")
        with pytest.raises(StoreError, match=complaint):
            read_predictions(path, TRUTH)

    def test_a_torn_last_line_is_dropped_with_a_warning(self, tmp_path):
        path = write_lines(tmp_path / "p.jsonl", [prediction("a"), prediction("c")])
        path.write_bytes(path.read_bytes()[:-5])
        with pytest.warns(UserWarning, match="incomplete last line .line 2"):
            found = read_predictions(path, TRUTH)
        assert found.read == 1

    def test_a_missing_newline_at_the_end_is_no_tear(self, tmp_path):
        path = write_lines(tmp_path / "p.jsonl", [prediction("a"), prediction("c")])
        path.write_bytes(path.read_bytes()[:-1])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_predictions(path, TRUTH).read == 2

    @pytest.mark.parametrize("counts", ["~", "é", "", "0000", "ZZZZZZZZZZZZ", "😀"])
    def test_a_mask_that_is_none_fails_its_sample(self, tmp_path, counts):
        path = tmp_path / "p.jsonl"
        good = json.dumps(
            {
                "sample": "b/1",
                "regions": [
                    {"visible": {"size": [1, 10], "counts": strip(2, 6).counts}}
                ],
            }
        )
        bad = json.dumps(
            {
                "sample": "a",
                "regions": [{"visible": {"size": [1, 10], "counts": counts}}],
            }
        )
        path.write_text(bad + "\n" + good + "\n")
        scores = strict.score(
            ScoringInput(TRUTH, read_predictions(path, TRUTH).predictions)
        )
        assert scores.rows(TRUTH.ids)[0].reason == "malformed mask"
        assert scores.rows(TRUTH.ids)[1].value == 1.0

    @pytest.mark.parametrize("size", [[-1, 10], [2**40, 2**40], [10, 1]])
    def test_a_mask_of_another_size_fails_its_sample(self, tmp_path, size):
        path = tmp_path / "p.jsonl"
        line = {"sample": "a", "regions": [{"visible": {"size": size, "counts": "46"}}]}
        path.write_text(json.dumps(line) + "\n")
        replies = ScoringInput(
            TRUTH, read_predictions(path, TRUTH).predictions
        ).predictions
        assert replies.state[0] == FAILED

    def test_an_empty_file_means_no_replies(self, tmp_path):
        (tmp_path / "p.jsonl").touch()
        assert (
            read_predictions(tmp_path / "p.jsonl", TRUTH).predictions.state.tolist()
            == [MISSING] * 3
        )

    @given(st.binary(max_size=200))
    @settings(max_examples=100, deadline=None)
    def test_any_bytes_are_read_or_refused(self, tmp_path_factory, noise):
        path = tmp_path_factory.mktemp("noise") / "p.jsonl"
        path.write_bytes(noise)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(MaskwiseError):
                read_predictions(path, TRUTH)


class TestCoco:
    def write(self, tmp_path, results):
        path = tmp_path / "results.json"
        path.write_text(json.dumps(results))
        return path

    def test_results_go_to_samples_by_falling_score(self, tmp_path):
        rle = {"size": [1, 10], "counts": strip(0, 4).counts}
        runs = {"size": [1, 10], "counts": [2, 4, 4]}
        path = self.write(
            tmp_path,
            [
                {"image_id": "a", "segmentation": runs, "score": 0.2, "category_id": 7},
                {
                    "image_id": "a",
                    "segmentation": rle,
                    "score": 0.9,
                    "bbox": [0, 0, 1, 1],
                },
                {
                    "image_id": "b/1",
                    "segmentation": [[2, 0, 6, 0, 6, 1, 2, 1]],
                    "score": 0.5,
                },
            ],
        )
        replies = read_predictions(path, TRUTH).predictions
        assert replies.state.tolist() == [PREDICTED] * 3
        assert replies.offsets.tolist() == [0, 2, 3, 3]
        assert replies.score.tolist() == [0.9, 0.2, 0.5]
        assert replies.visible.masks.area().tolist() == [4, 4, 4]
        assert lisa.score(ScoringInput(TRUTH, replies)).headline()[
            "giou"
        ] == pytest.approx(1.0, abs=1e-4)

    def test_an_image_id_may_be_a_image_with_one_question(self, tmp_path):
        rle = {"size": [1, 10], "counts": strip(0, 4).counts}
        path = self.write(
            tmp_path, [{"image_id": "p", "segmentation": rle, "score": 1.0}]
        )
        assert read_predictions(path, TRUTH).predictions.offsets.tolist() == [
            0,
            1,
            1,
            1,
        ]
        path = self.write(
            tmp_path, [{"image_id": "q", "segmentation": rle, "score": 1.0}]
        )
        with pytest.raises(StoreError, match="several questions"):
            read_predictions(path, TRUTH)

    def test_low_scores_can_be_dropped_and_the_type_told(self, tmp_path):
        rle = {"size": [1, 10], "counts": strip(0, 4).counts}
        path = self.write(
            tmp_path,
            [{"image_id": "a", "segmentation": rle, "score": s} for s in (0.1, 0.6)],
        )
        replies = read_predictions(
            path, TRUTH, options=ReadOptions("amodal", min_score=0.5)
        ).predictions
        assert replies.score.tolist() == [0.6]
        assert replies.amodal.present.tolist() == [True]

    @pytest.mark.parametrize(
        "results",
        [
            {"annotations": []},
            [{"image_id": "a"}],
            [{"image_id": "a", "segmentation": {"size": [1, 10]}}],
            [{"image_id": "a", "segmentation": [[0, 0]]}],
            [
                {
                    "image_id": "a",
                    "segmentation": {"size": [1, 10], "counts": "46"},
                    "score": 7,
                }
            ],
        ],
    )
    def test_what_is_no_result_is_refused(self, tmp_path, results):
        with pytest.raises(StoreError):
            read_predictions(self.write(tmp_path, results), TRUTH)


class TestPngs:
    def save(self, path, mask, mode="L"):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(mask.to_dense().astype(np.uint8) * 255).convert(mode).save(path)

    def test_one_file_or_one_folder_a_sample(self, tmp_path):
        self.save(tmp_path / "a.png", strip(0, 4))
        self.save(tmp_path / "b" / "1" / "10.png", strip(8, 9))
        self.save(tmp_path / "b" / "1" / "9.png", strip(2, 6))
        self.save(tmp_path / "other.png", strip(0, 1))
        found = read_predictions(tmp_path, TRUTH)
        assert (found.read, found.matched, found.first_unknown) == (4, 3, "other")
        assert found.predictions.state.tolist() == [PREDICTED, PREDICTED, MISSING]
        assert found.predictions.offsets.tolist() == [0, 1, 3, 3]
        assert found.predictions.visible.masks.area().tolist() == [4, 4, 1]

    @pytest.mark.parametrize("mode", ["1", "L", "I;16"])
    def test_one_channel_of_any_depth(self, tmp_path, mode):
        self.save(tmp_path / "a.png", strip(0, 4), mode)
        assert read_predictions(tmp_path, TRUTH).predictions.visible.masks[0] == strip(
            0, 4
        )

    def test_other_images_are_refused(self, tmp_path):
        self.save(tmp_path / "a.png", strip(0, 4), "RGB")
        with pytest.raises(StoreError, match="one channel"):
            read_predictions(tmp_path, TRUTH)
        self.save(tmp_path / "a.png", strip(0, 4, 12))
        with pytest.raises(StoreError, match=r"\(1, 12\).*\(1, 10\)"):
            read_predictions(tmp_path, TRUTH)
        (tmp_path / "a.png").write_bytes(b"no image")
        with pytest.raises(StoreError, match="not a PNG"):
            read_predictions(tmp_path, TRUTH)


class TestArrays:
    def test_masks_and_logits(self, tmp_path):
        logits = np.full((2, 1, 10), -1.0, np.float32)
        logits[0, 0, 2:6] = 0.75
        logits[1, 0, 0] = 0.0
        np.savez_compressed(
            tmp_path / "p.npz", **{"a": strip(0, 4).to_dense(), "b/1": logits}
        )
        replies = read_predictions(tmp_path / "p.npz", TRUTH).predictions
        assert replies.visible.masks.area().tolist() == [4, 4, 0]
        assert replies.logits is None
        inside = read_predictions(
            tmp_path / "p.npz", TRUTH, options=ReadOptions(zero_inside=True)
        ).predictions
        assert inside.visible.masks.area().tolist() == [4, 4, 1]

    def test_logits_alone_keep_their_counts(self, tmp_path):
        # A prediction for a question without target, all logits 3: the official code sees no foreground and gives 1.
        np.save(tmp_path / "c.npy", np.full((1, 10), 3.0))
        replies = read_predictions(tmp_path, TRUTH).predictions
        assert replies.logits.tolist() == [[0, 0, 0]]
        truth = GroundTruth.from_samples(SAMPLES[2:], [(1, 10)])
        replies = read_predictions(tmp_path, truth).predictions
        evaluation = ScoringInput(truth, replies)
        assert muse.score(evaluation, raw_logits=True).headline()[
            "giou"
        ] == pytest.approx(1.0, abs=1e-4)
        assert muse.score(evaluation).headline()["giou"] == pytest.approx(0.0, abs=1e-4)

    def test_no_masks_is_an_answer(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((0, 1, 10), bool))
        assert read_predictions(tmp_path, TRUTH).predictions.state.tolist() == [
            PREDICTED,
            MISSING,
            MISSING,
        ]

    @pytest.mark.parametrize(
        "array",
        [
            np.zeros((1, 12), bool),
            np.zeros(10, bool),
            np.zeros((1, 10), complex),
            np.array([[{"pickled": 1}] * 10]),
            np.full((1, 10), np.nan),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, array):
        np.save(tmp_path / "a.npy", array, allow_pickle=True)
        with pytest.raises(StoreError):
            read_predictions(tmp_path, TRUTH)

    def test_torn_files_are_refused(self, tmp_path):
        np.save(tmp_path / "a.npy", np.zeros((3, 1, 10)))
        whole = (tmp_path / "a.npy").read_bytes()
        for size in (0, 5, 60, len(whole) - 1):
            (tmp_path / "a.npy").write_bytes(whole[:size])
            with pytest.raises(StoreError):
                read_predictions(tmp_path, TRUTH)
        (tmp_path / "p.npz").write_bytes(b"PK no archive")
        with pytest.raises(StoreError, match=r"not a valid \.npz"):
            read_predictions(tmp_path / "p.npz", TRUTH)

    def test_a_header_that_promises_too_much_is_not_believed(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
            header = (
                b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999, 1, 10), }"
            )
            padded = header + b" " * (118 - 1 - len(header)) + b"\n"
            archive.writestr(
                "a.npy",
                b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded,
            )
        with pytest.raises(StoreError, match="expected"):
            read_predictions(tmp_path / "p.npz", TRUTH)


def test_the_form_is_seen_from_the_name(tmp_path):
    assert detect_format(tmp_path / "p.jsonl") == "jsonl"
    assert detect_format(tmp_path / "p.json") == "coco"
    assert detect_format(tmp_path) == "png"
    with pytest.raises(StoreError, match="unknown kind of file"):
        detect_format(tmp_path / "p.pkl")
    with pytest.raises(StoreError, match="does not exist"):
        read_predictions(tmp_path / "p.jsonl", TRUTH)
    with pytest.raises(MaskwiseError, match="unknown format"):
        read_predictions(tmp_path, TRUTH, "pickle")


def test_masks_of_a_folder_may_have_been_forced(tmp_path):
    Image.fromarray(Mask.empty(1, 10).to_dense().astype(np.uint8)).save(
        tmp_path / "a.png"
    )
    replies = read_predictions(
        tmp_path, TRUTH, options=ReadOptions(teacher_forced=True)
    ).predictions
    assert replies.forced.tolist() == [True, False, False]


# -- hostile files -----------------------------------------------------------------------------------------------------


def refuse(path: Path, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        read_predictions(path, TRUTH)


def test_coco_results_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_bytes(
        b'[{"image_id": "\xff\xfe", "segmentation": [[1,2,3]]}]'
    )
    refuse(tmp_path / "p.json", "not a list of COCO results")


@pytest.mark.parametrize(
    "segmentation",
    [
        {"size": [2**70, 1], "counts": "0"},
        {"size": "ab", "counts": "0"},
        {"size": [1, 10], "counts": [2**70]},
        {"size": [1, 10], "counts": [None]},
        {"counts": "0"},
        [[1.0]],
        [[1e308, 1e308, -1e308, 1.0, 5.0, 5.0]],
    ],
)
def test_a_malformed_segmentation_is_refused(tmp_path: Path, segmentation: Any) -> None:
    (tmp_path / "p.json").write_bytes(
        msgspec.json.encode(
            [{"image_id": "a", "segmentation": segmentation, "score": 0.5}]
        )
    )
    refuse(tmp_path / "p.json", r"p\.json")


@pytest.mark.parametrize(
    "size", ["[9223372036854775808, 10]", "[-9223372036854775809, 10]", "[1e30, 2]"]
)
def test_a_mask_of_an_enormous_size_fails_its_sample(tmp_path: Path, size: str) -> None:
    line = f'{{"sample": "a", "regions": [{{"visible": {{"size": {size}, "counts": "0"}}}}]}}\n'
    (tmp_path / "p.jsonl").write_text(line + '{"sample": "c"}\n')
    if "e" in size:
        refuse(tmp_path / "p.jsonl", "line 1")
    else:
        states = read_predictions(
            tmp_path / "p.jsonl", TRUTH
        ).predictions.state.tolist()
        assert states == [FAILED, MISSING, PREDICTED]


def test_lines_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_bytes(
        b'{"sample": "a"}\n{"sample": "\xff"}\n{"sample": "b"}\n'
    )
    refuse(tmp_path / "p.jsonl", "line 2")


def npy(shape: str, data: bytes = b"", descr: str = "|b1") -> bytes:
    """An array file with any header."""
    header = (
        f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    )
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    "content",
    [
        npy("(-5, 1, 10)", b"\0" * 1000),
        npy("(False, 1, 10)", b""),
        npy("(-1, 1, 10)", b"\0" * 1000),
        npy("(10001, 1, 10)"),
        npy("(99999999999999999999, 1, 10)"),
        npy("(3, 1, 10)", b"\0" * 29),
        npy("(1, 10"),
        npy("(" * 500),
        npy("(1, 10)", b"\0" * 10, descr="|O"),
        npy("(1, 10)", b"\0" * 10, descr="zzz"),
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x09\x00\x00",
    ],
)
@pytest.mark.parametrize("kind", ["npz", "npy"])
def test_an_array_with_a_false_header_is_refused(
    tmp_path: Path, content: bytes, kind: str
) -> None:
    if kind == "npy":
        (tmp_path / "a.npy").write_bytes(content)
        refuse(tmp_path, "a")
        return
    with zipfile.ZipFile(tmp_path / "p.npz", "w") as archive:
        archive.writestr("a.npy", content)
    refuse(tmp_path / "p.npz", "a")


def test_an_array_beyond_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwise.predictions.npz.MAX_ARRAY_BYTES", 29)
    np.savez(tmp_path / "p.npz", a=np.zeros((3, 1, 10), bool))
    refuse(tmp_path / "p.npz", "has 30 bytes; the limit for one sample is 29")


def test_an_archive_with_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "p.npz", a=np.ones((2, 1, 10), bool))
    whole = (tmp_path / "p.npz").read_bytes()
    place = whole.rindex(b"\x01" * 20)
    (tmp_path / "p.npz").write_bytes(whole[:place] + b"\x00" + whole[place + 1 :])
    refuse(tmp_path / "p.npz", "Bad CRC")


@pytest.mark.parametrize("cut", [60, 200])
def test_a_damaged_archive_is_refused(tmp_path: Path, cut: int) -> None:
    np.savez_compressed(
        tmp_path / "p.npz", a=np.random.default_rng(0).random((2, 1, 10)) > 0.5
    )
    whole = bytearray((tmp_path / "p.npz").read_bytes())
    whole[cut : cut + 8] = b"\xff" * 8
    (tmp_path / "p.npz").write_bytes(whole)
    refuse(tmp_path / "p.npz", r"p\.npz")


def test_every_format_states_no_target_with_the_same_scores(tmp_path):
    """One mask for `a`, an empty mask for `b/1` and "no target" for `c`, in every format and in memory."""
    shown = strip(0, 4)
    empty = Mask.empty(1, 10)
    lines = write_lines(
        tmp_path / "p.jsonl",
        [
            prediction("a", region(shown)),
            prediction("b/1", region(empty)),
            prediction("c", no_target=True),
        ],
    )
    results = [
        {"image_id": "a", "segmentation": {"size": [1, 10], "counts": shown.counts}},
        {"image_id": "b/1", "segmentation": {"size": [1, 10], "counts": empty.counts}},
        {"image_id": "c", "no_target": True},
    ]
    coco = tmp_path / "p.json"
    coco.write_text(json.dumps(results))
    arrays = {
        "a": shown.to_dense()[None],
        "b/1": empty.to_dense()[None],
        "c": np.zeros((0, 1, 10), bool),
    }
    np.savez(tmp_path / "p.npz", **arrays)
    folder = tmp_path / "png"
    (folder / "b").mkdir(parents=True)
    for name in ("a", "b/1"):
        pixels = arrays[name][0].astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    (folder / "no_target.txt").write_text("c\n")
    columns = [
        read_predictions(path, TRUTH).predictions
        for path in (lines, coco, tmp_path / "p.npz", folder)
    ]
    for loaded in columns:
        assert loaded.no_target.tolist() == [False, False, True]
        assert loaded.state.tolist() == [PREDICTED] * 3
        scores = gres.score(ScoringInput(TRUTH, loaded)).headline()
        assert scores == gres.score(ScoringInput(TRUTH, columns[0])).headline()
        assert scores["no_target_accuracy"] == 1.0


def test_masks_and_no_target_together_are_refused(tmp_path):
    mask = {"size": [1, 10], "counts": strip(0, 4).counts}
    path = tmp_path / "p.json"
    for results, message in (
        ([{"image_id": "a"}], "needs either a segmentation or no_target: true"),
        (
            [{"image_id": "a", "segmentation": mask, "no_target": True}],
            "needs either a segmentation or no_target: true",
        ),
        (
            [
                {"image_id": "a", "segmentation": mask},
                {"image_id": "a", "no_target": True},
            ],
            "has masks and no_target: true",
        ),
    ):
        path.write_text(json.dumps(results))
        with pytest.raises(StoreError, match=message):
            read_predictions(path, TRUTH)
    folder = tmp_path / "png"
    folder.mkdir()
    Image.fromarray(np.ones((1, 10), np.uint8)).save(folder / "a.png")
    (folder / "no_target.txt").write_text("a\n")
    with pytest.raises(StoreError, match="which has masks"):
        read_predictions(folder, TRUTH)

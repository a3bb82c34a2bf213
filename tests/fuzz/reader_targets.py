"""What the reader fuzzer calls: one target per reader, with a valid input and the mutation that fits it."""

import asyncio
import base64
import functools
import io
import os
import pickle
import tempfile
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from maskwise.benchmarks import find_reader
from maskwise.errors import MaskwiseError
from maskwise.formats import write_dataset as export_dataset
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.field_mapping import FieldMapping, read_mapped
from maskwise.formats.plain_pickle import read_plain_pickle
from maskwise.formats.read_context import ReadContext
from maskwise.images import image_size, open_image
from maskwise.judging import judge
from maskwise.masks import Mask
from maskwise.predictions import read_predictions
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.report.report_text import run_to_markdown
from maskwise.review.audit_log import Event, check_event
from maskwise.review.database import ReviewDatabase
from maskwise.review.integrity import find_damage, rebuild_review
from maskwise.review.records import NewDecision
from maskwise.review.review import Review
from maskwise.runs import load_run
from maskwise.runs.judgments import PeopleVerdict, read_people_verdicts
from maskwise.schema import (
    Answer,
    ImageInfo,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.server.app import make_app
from maskwise.server.limits import RequestLimits
from maskwise.server.model_worker import ModelWorker
from maskwise.server.predict_routes import predict_router
from maskwise.store import Dataset, DatasetWriter
from maskwise.training.completion import config as completion_config
from maskwise.training.tiny import config as tiny_config
from maskwise.training.vlm import config as vlm_config
from maskwise.writers import Completion, CompletionRequest, Ledger
from maskwise.yaml_files import read_yaml
from tests.fuzz.mutations import (
    Mutation,
    mutate_bytes,
    mutate_png,
    mutate_same_length,
    mutate_text,
    mutate_zip,
)
from tests.report.runs import make_dataset, make_predictions, make_run
from tests.server.fake import InThisProcess

SEEDS = Path(__file__).parent / "seeds"

CONFIGS = Path(__file__).parents[2] / "configs"
REQUEST = CompletionRequest(prompt_version="1", system="", text="hello", schema={})
COMPLETION = Completion(status="ok", output={"a": 1}, input_tokens=10, output_tokens=3)

SIZE = (6, 8)
MASK = Mask.from_dense(np.arange(48).reshape(SIZE) % 5 < 2)
WHOLE = MASK | MASK.from_dense(np.eye(6, 8, dtype=bool))
SAMPLES = [
    Sample(
        id=name,
        image_id=f"image {name}",
        question="Which cup is hidden?",
        mask_type="both",
        targets=(Region(id="r", name="cup", visible=MASK, amodal=WHOLE),),
        answer=Answer(text="The red cup."),
    )
    for name in ("a", "b")
]


@dataclass(frozen=True)
class Target:
    """A reader: `read` must return, or raise a MaskwiseError. `mutate` damages the valid input `seed`.

    share: how often it is called, relative to the other targets.
    """

    name: str
    seed: bytes
    read: Callable[[bytes], object]
    mutate: Mutation
    share: int = 4


class ServerError(Exception):
    """A request that was answered with an error of the server."""


def list_targets(folder: Path) -> list[Target]:
    """All targets; their files are written below `folder`."""
    truth = GroundTruth.from_samples(SAMPLES, [SIZE] * 2)

    def predictions(name: str) -> Callable[[bytes], object]:
        return functools.partial(
            _read_file, folder / name, lambda path: read_predictions(path, truth)
        )

    targets = [
        Target(
            "jsonl predictions",
            _seed("predictions.jsonl"),
            predictions("predictions.jsonl"),
            mutate_text,
        ),
        Target(
            "coco results",
            _seed("results.json"),
            predictions("results.json"),
            mutate_text,
        ),
        Target(
            "npz predictions",
            _seed("predictions.npz"),
            predictions("predictions.npz"),
            mutate_zip,
        ),
        Target(
            "png predictions",
            _seed("mask.png"),
            _png_reader(folder / "pngs", truth),
            mutate_png,
        ),
        Target(
            "yaml mapping", _seed("mapping.yaml"), _yaml_reader(folder), mutate_text
        ),
        Target(
            "own records", _seed("records.jsonl"), _records_reader(folder), mutate_text
        ),
        Target("http request", _request(), _http_reader(), mutate_text),
    ]
    for name in ("image.jpg", "image.gif", "image.webp", "image.tiff"):
        targets.append(
            Target(
                f"image {name[6:]}", _seed(name), _read_image, mutate_bytes, share=12
            )
        )
    targets.append(
        Target("image png", _seed("image.png"), _read_image, mutate_png, share=12)
    )
    targets += _published_targets(folder / "published")
    targets += _config_targets(folder)
    targets += _record_targets(folder)
    targets += _plain_targets(folder)
    targets += _run_targets(folder)
    return targets + _dataset_targets(folder / "dataset")


def _seed(name: str) -> bytes:
    return (SEEDS / name).read_bytes()


def _read_file(path: Path, read: Callable[[Path], object], data: bytes) -> object:
    path.write_bytes(data)
    return read(path)


def _read_image(data: bytes) -> object:
    image_size(data)
    return open_image(data)


def _png_reader(folder: Path, truth: GroundTruth) -> Callable[[bytes], object]:
    folder.mkdir()
    return functools.partial(
        _read_file, folder / "a.png", lambda _: read_predictions(folder, truth)
    )


def _yaml_reader(folder: Path) -> Callable[[bytes], object]:
    return functools.partial(
        _read_file, folder / "mapping.yaml", lambda path: read_yaml(path, FieldMapping)
    )


def _records_reader(folder: Path) -> Callable[[bytes], object]:
    """Records through the mapping of the seeds; every image is read."""
    path = folder / "records.jsonl"

    def read(path: Path) -> object:
        context = ReadContext(annotations=path, split="test", diagnostics=Diagnostics())
        return list(read_mapped(context, SEEDS / "mapping.yaml").images)

    return functools.partial(_read_file, path, read)


# -- published formats ---------------------------------------------------------------------------------------------


def _published_targets(folder: Path) -> list[Target]:
    """Files of benchmarks and training formats, each in a folder of its own with an image `1.png`."""
    rle = msgspec.to_builtins(MASK)
    instances = {
        "images": [{"id": 1, "file_name": "1.png", "width": 8, "height": 6}],
        "annotations": [
            {"id": 7, "image_id": 1, "category_id": 1, "segmentation": [rle]}
        ],
        "categories": [{"id": 1, "name": "cup"}],
    }
    reference = {
        "ref_id": 1,
        "ann_id": 7,
        "image_id": 1,
        "split": "val",
        "sentences": [{"sent_id": 1, "sent": "the cup"}],
    }
    pair = {"id": 1, "file_name": "1.png", "text_input": "cup", "width": 8, "height": 6}
    saco = {
        "images": [pair],
        "annotations": [{"id": 7, "image_id": 1, "segmentation": rle}],
    }
    gseval = {
        "idx": 0,
        "image_path": "1.png",
        "class_id": 1,
        "label": "cup",
        "caption": "The cup.",
        "segmentation": rle,
    }
    grounding = {"token_positives": [0, 5], "rle_masks": [rle]}
    gcg = {"file_name": "1.png", "caption": "a cup", "groundings": {"a cup": grounding}}
    sa2va = {"image": "1.png", "mask": [[[1, 1, 5, 1, 5, 5]]], "text": ["the cup"]}
    reply = '[{"bbox_2d": [100, 100, 500, 500], "label": "cup"}]'
    turns = [
        {"from": "human", "value": "<image>\nWhere?"},
        {"from": "gpt", "value": reply},
    ]
    qwen = {"image": "1.png", "conversations": turns}
    llm_seg = {"1.png": {"qa_pairs": [{"question": "?", "rle_seg": rle}]}}
    matrix = {
        "image": {"bytes": _seed("image.png"), "path": None},
        "text": "Which cup?",
        "mask": np.zeros(image_size(_seed("image.png"))[::-1], bool).tolist(),
    }
    refcoco_folder = folder / "refcoco"
    refcoco_folder.mkdir(parents=True)
    (refcoco_folder / "instances.json").write_bytes(msgspec.json.encode(instances))
    seeds = {
        "refcoco": ("refs(unc).p", pickle.dumps([reference], 2), mutate_bytes),
        "saco-gold": (
            "gold_x_merged_a_release_test.json",
            msgspec.json.encode(saco),
            mutate_text,
        ),
        "gseval": (
            "GroundingSuite-Eval.jsonl",
            msgspec.json.encode(gseval),
            mutate_text,
        ),
        "gcg": ("val.json", msgspec.json.encode([gcg]), mutate_text),
        "llm-seg40k": ("val.json", msgspec.json.encode(llm_seg), mutate_text),
        "sa2va": ("annotations.json", msgspec.json.encode([sa2va]), mutate_text),
        "qwen3_vl": ("annotations.json", msgspec.json.encode([qwen]), mutate_text),
        "hub-matrices": ("test.parquet", _to_parquet([matrix]), mutate_bytes),
        "segzero": ("train/data-0-of-1.arrow", _segzero_seed(folder), mutate_bytes),
    }
    return [
        Target(
            f"format {name}",
            data,
            _published_reader(folder / name, name, file),
            mutate,
            share=2,
        )
        for name, (file, data, mutate) in seeds.items()
    ]


def _published_reader(folder: Path, name: str, file: str) -> Callable[[bytes], object]:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE[::-1], "red").save(folder / "1.png")
    reader = find_reader(name)
    split = "val" if name == "refcoco" else None

    def read(path: Path) -> object:
        _, found = reader.open(folder, Diagnostics(), split=split)
        return list(found.images)

    return functools.partial(_read_new_file, path, read)


def _read_new_file(path: Path, read: Callable[[Path], object], data: bytes) -> object:
    """As `_read_file`, for readers that map the file: the old one may still be mapped."""
    path.unlink(missing_ok=True)
    return _read_file(path, read, data)


def _to_parquet(rows: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def _segzero_seed(folder: Path) -> bytes:
    write_dataset(folder / "dataset")
    export_dataset(Dataset.open(folder / "dataset"), "segzero", folder / "written")
    return (folder / "written/train/data-00000-of-00001.arrow").read_bytes()


# -- training configs ----------------------------------------------------------------------------------------------


def _config_targets(folder: Path) -> list[Target]:
    """The TOML files of the three trainers."""
    readers = {
        "tiny": (CONFIGS / "tiny.toml", tiny_config.read_config),
        "completion": (CONFIGS / "completion.toml", completion_config.read_config),
        "vlm": (CONFIGS / "vlm" / "nano.toml", vlm_config.read_config),
    }
    targets = []
    for name, (path, read) in readers.items():
        read_data = functools.partial(_read_file, folder / f"{name}.toml", read)
        target = Target(f"config {name}", path.read_bytes(), read_data, mutate_text)
        targets.append(target)
    return targets


# -- records of what was paid for and decided ----------------------------------------------------------------------


def _record_targets(folder: Path) -> list[Target]:
    """The ledger of a build, the database of a review, and the events of its audit log."""
    ledger_path = folder / "ledger.sqlite"
    with Ledger(ledger_path) as ledger:
        ledger.record_sent({"a": REQUEST, "b": REQUEST}, provider="p", model="m")
        ledger.record_answered([("a", COMPLETION, 0.5), ("b", COMPLETION, 0.5)])
    write_dataset(folder / "reviewed")
    review_path = folder / "review.sqlite"
    review = Review(Dataset.open(folder / "reviewed"), ReviewDatabase(review_path))
    review.create()
    reviewer = review.find_reviewer(review.add_reviewer("ada"))
    assert reviewer is not None
    review.queue(reviewer, 1)
    review.decide(reviewer, NewDecision(id=uuid.UUID(int=1), item=0, verdict="accept"))
    review.undo(reviewer, str(uuid.UUID(int=2)))
    events = review.events(0, 100)
    review.database.close()
    lines = [msgspec.json.encode([event.kind, event.payload]) for event in events]
    return [
        Target(
            "ledger",
            ledger_path.read_bytes(),
            functools.partial(_read_database, ledger_path, _read_ledger),
            mutate_same_length,
        ),
        Target(
            "review database",
            review_path.read_bytes(),
            functools.partial(_read_database, review_path, _read_review),
            mutate_same_length,
            share=1,
        ),
        Target("audit log", b"\n".join(lines), _read_events, mutate_text),
    ]


def _read_database(path: Path, read: Callable[[Path], object], data: bytes) -> object:
    """Read a database of which nothing else is left than these bytes."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    path.write_bytes(data)
    return read(path)


def _read_ledger(path: Path) -> object:
    with Ledger(path) as ledger:
        ledger.open_batches("p", "m")
        return ledger.totals, [ledger.completion(key) for key in "abc"]


def _read_review(path: Path) -> object:
    """Look for damage, and rebuild what is damaged."""
    database = ReviewDatabase(path)
    try:
        return find_damage(database) and rebuild_review(database)
    finally:
        database.close()


def _read_events(data: bytes) -> None:
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            kind, payload = msgspec.json.decode(line, type=tuple[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The database holds texts; these bytes are not what is tested.
            kind, payload = "decided", line.decode(errors="replace")
        check_event(Event(number, str(number), 0.0, kind, "ada", 0, payload))


def _plain_targets(folder: Path) -> list[Target]:
    """Pickles of plain values, in an old and a new protocol, and people's verdicts."""
    simple = {"a": [1, -(2**70), 0.5, None, True], "é": ("c", {})}
    newer = {**simple, b"b": ({"c"}, frozenset("d"))}
    verdict = PeopleVerdict(run="a", sample="1", reviewer="ada", correct=True)
    read_pickle = functools.partial(_read_file, folder / "plain.p", read_plain_pickle)
    read_verdicts = functools.partial(
        _read_file,
        folder / "people.jsonl",
        lambda path: list(read_people_verdicts(path)),
    )
    return [
        Target("pickle 0", pickle.dumps(simple, 0), read_pickle, mutate_bytes),
        Target("pickle 4", pickle.dumps(newer, 4), read_pickle, mutate_bytes),
        Target(
            "people's verdicts",
            msgspec.json.encode(verdict) + b"\n",
            read_verdicts,
            mutate_text,
        ),
    ]


# -- run folders ---------------------------------------------------------------------------------------------------


def _run_targets(folder: Path) -> list[Target]:
    """The files of a run with a judge's verdicts, damaged one at a time."""
    dataset = make_dataset(folder / "judged", images=2)
    predictions = make_predictions(folder / "judged.jsonl", dataset)
    run = folder / "run"
    make_run(run, dataset, predictions, protocols=["strict"])
    judge(run)
    kept = [
        path for path in sorted(run.iterdir()) if path.suffix in {".json", ".arrow"}
    ]
    return [
        Target(
            f"run {path.name}",
            path.read_bytes(),
            functools.partial(_read_run, path),
            mutate_text if path.suffix == ".json" else mutate_same_length,
            share=1,
        )
        for path in kept
    ]


def _read_run(path: Path, data: bytes) -> object:
    """Read the run with one file replaced, and report on it. The file is restored afterwards."""
    kept = path.read_bytes()
    try:
        path.unlink()  # a new file, because the old one may be mapped
        path.write_bytes(data)
        run = load_run(path.parent)
        run.metrics("strict")
        return run.rows("strict"), run_to_markdown(run), repr(run)
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(kept)


# -- dataset folders -----------------------------------------------------------------------------------------------


def _dataset_targets(folder: Path) -> list[Target]:
    """The tables and the manifest of a dataset folder, damaged one at a time."""
    write_dataset(folder)
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    return [
        Target(
            f"dataset {name}",
            (folder / name).read_bytes(),
            functools.partial(_read_dataset, folder, name),
            mutate_text if name.endswith(".json") else mutate_same_length,
            share=1,
        )
        for name in files
    ]


def write_dataset(folder: Path) -> None:
    out = io.BytesIO()
    Image.new("RGB", SIZE[::-1], "red").save(out, "PNG")
    with DatasetWriter(folder, name="fuzz") as writer:
        for sample in SAMPLES:
            info = ImageInfo(id=sample.image_id, width=SIZE[1], height=SIZE[0])
            writer.add_image(info, list(sample.targets), out.getvalue())
            writer.add_sample(sample)


def _read_dataset(folder: Path, name: str, data: bytes) -> object:
    """Open the folder with one file replaced, and read everything. The file is restored afterwards."""
    path = folder / name
    kept = path.read_bytes()
    try:
        path.unlink()  # a new file, because the old one may be mapped
        path.write_bytes(data)
        dataset = Dataset.open(folder)
        truth = GroundTruth.from_dataset(dataset)
        for sample in dataset:
            dataset.open_image(sample.image_id)
        return truth
    finally:
        path.unlink(missing_ok=True)
        path.write_bytes(kept)


# -- HTTP ----------------------------------------------------------------------------------------------------------


class Echo:
    """A model that answers every question with the mask of the whole image."""

    name = "echo"

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        mask = Mask.from_dense(np.ones((image.height, image.width), np.bool_))
        return [Prediction(regions=(PredictedRegion(visible=mask),)) for _ in questions]


def _request() -> bytes:
    image = {"png": base64.b64encode(_seed("image.png")).decode()}
    return msgspec.json.encode(
        {"id": "1", "image": image, "questions": ["Which cup?", "Where is it?"]}
    )


def _http_reader() -> Callable[[bytes], object]:
    limits = RequestLimits()
    worker = ModelWorker(InThisProcess(Echo(), limits.pixels))
    app = make_app([predict_router(worker, limits)])

    def read(data: bytes) -> int:
        status = asyncio.run(_call(app, data))
        if status >= 500:
            raise ServerError(f"status {status}")
        return status

    return read


async def _call(app: Any, body: bytes) -> int:
    """POST the body; the status of the response."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/predict",
        "raw_path": b"/v1/predict",
        "root_path": "",
        "scheme": "http",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    sent: list[Any] = []
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if parts:
            return parts.pop()
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(
        next(
            message["status"]
            for message in sent
            if message["type"] == "http.response.start"
        )
    )


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the files of the targets, in memory where the system offers that."""
    shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="maskwise-fuzz-", dir=shared)


EXPECTED = (MaskwiseError,)
"""What a reader may raise."""

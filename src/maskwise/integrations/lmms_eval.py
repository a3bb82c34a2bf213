"""Tasks for lmms-eval, scored by our protocols: a folder for its option `--include_path`.

    maskwise lmms-eval reasonseg_val --out tasks
    lmms-eval --include_path tasks --tasks maskwise_reasonseg_val --model qwen3_vl ...

    tasks/maskwise_NAME.yaml      one task per dataset, and one per benchmark whose dataset was not given
    tasks/utils.py                the functions that the tasks name; they are those of this module
    tasks/data/NAME.parquet       one row per question: where its dataset is, sample, image, question

A model answers with text; masks in it are COCO RLE in JSON, as in the SA-Co tasks of lmms-eval:

    {"masks": [{"size": [480, 640], "counts": "i_P61n>2O0"}]}
    {"answer": "the mug", "mask_type": "amodal", "regions": [{"amodal": {...}, "score": 0.9}]}

`masks` are visible ones unless `mask_type` is `amodal`; an empty list means that no target is in the image. The second
form has the fields of docs/reference/predictions.md. Images and ground truth stay in the dataset folder. lmms-eval runs
in its own environment, where maskwise is installed without extras.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from maskwise.benchmarks import Benchmark
from maskwise.datasets import load_dataset
from maskwise.errors import MaskwiseError, StoreError, UnknownNameError
from maskwise.harness.score import score
from maskwise.registry import BENCHMARKS, PROTOCOLS
from maskwise.runs.tables import MAIN_METRICS
from maskwise.schema import Prediction
from maskwise.store import Dataset
from maskwise.terminal import safe_text

Doc = Mapping[str, Any]

PREFIX = "maskwise_"
"""Of task names: where lmms-eval has a task of the same name, its own would win."""

STRICT = "strict"

MAX_NEW_TOKENS = 4096
"""Of a reply: the run lengths of a detailed mask take some thousand characters."""

MAX_QUOTE = 80
"""Characters of a reply that an error message quotes."""

INSTRUCTION = (
    'Answer with JSON only: {"masks": [...]}, one COCO RLE {"size": [height, width], "counts": "..."} for each '
    "object or part that the question asks for, and an empty list if there is none in the image."
)

TASK = """\
# {title}
{comment}
task: {task}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: {data}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: !function utils.doc_to_target
process_results: !function utils.process_results
generation_kwargs:
  max_new_tokens: {max_new_tokens}
  temperature: 0
  do_sample: false
metric_list:
{metrics}
metadata:
  version: 1.0
"""

METRIC = """\
  - metric: {metric}
    aggregation: !function utils.{metric}
    higher_is_better: true
"""

UTILS = '''\
"""What the tasks of this folder call; written by `maskwise lmms-eval`."""

from maskwise.integrations.lmms_eval import (
    aggregation,
    doc_to_target,
    doc_to_text,
    doc_to_visual,
    process_results,
)

{aggregations}
'''


# -- the folder --------------------------------------------------------------------------------------------------------


def write_tasks(folder: Path, datasets: Mapping[str, Dataset]) -> list[str]:
    """Write a folder of tasks of datasets by name; returns the names of the tasks that have data.

    Benchmarks of which no dataset is given get a task that says how to make one. StoreError for two datasets whose
    tasks would have the same name.
    """
    (folder / "data").mkdir(parents=True, exist_ok=True)
    protocols_used = {STRICT}
    tasks: list[str] = []
    for dataset_name, dataset in datasets.items():
        name = _task_name(dataset_name)
        if name in tasks:
            raise StoreError(
                f"two datasets give the task {name}; write them to two folders"
            )
        protocols = _protocols(dataset.manifest.about.get("protocol"))
        protocols_used |= set(protocols)
        _write_rows(folder / "data" / f"{name}.parquet", dataset, protocols)
        comment = f"# {len(dataset)} questions of {_one_line(dataset.path.absolute())}"
        title = f"The dataset {_one_line(dataset.name)}"
        _write_task(folder, name, title, comment, protocols)
        tasks.append(name)
    for benchmark_name, benchmark in BENCHMARKS.load_all(Benchmark).items():
        name = _task_name(benchmark_name)
        if name in tasks:
            continue
        protocols = _protocols(benchmark.protocol)
        protocols_used |= set(protocols)
        comment = (
            "# Its data are not here yet:\n"
            f"#   maskwise read {benchmark_name} PATH --out {benchmark_name}\n"
            f"#   maskwise lmms-eval {benchmark_name} --out {_one_line(folder)}"
        )
        _write_task(folder, name, benchmark.title, comment, protocols)
    aggregations = [
        f"{_metric_name(protocol, metric)} = aggregation({protocol!r}, {metric!r})"
        for protocol in sorted(protocols_used)
        for metric in MAIN_METRICS
    ]
    utils = UTILS.format(aggregations="\n".join(aggregations))
    (folder / "utils.py").write_text(utils, encoding="utf-8")
    return tasks


def _task_name(dataset: str) -> str:
    return PREFIX + _identifier(dataset)


def _metric_name(protocol: str, metric: str) -> str:
    return f"{_identifier(protocol)}_{metric}"


def _identifier(text: str) -> str:
    """A name for Python and for the command line of lmms-eval; RefCOCO and RefCOCO+ stay apart."""
    return re.sub(r"\W+", "_", text.replace("+", "_plus"))


def _one_line(text: object) -> str:
    """The text as the rest of a comment: whatever a dataset is called, nothing of it is read as YAML."""
    return safe_text(" ".join(str(text).split()))


def _protocols(official: str | None) -> list[str]:
    """The protocol of the authors, if there is one, and `strict`.

    What the manifest of a dataset says becomes Python code of `utils.py`, so that only known names are taken.
    """
    if official in (None, STRICT):
        return [STRICT]
    if official not in PROTOCOLS.names():
        raise UnknownNameError("protocol", str(official), PROTOCOLS.names())
    return [official, STRICT]


def _write_rows(path: Path, dataset: Dataset, protocols: Sequence[str]) -> None:
    count = len(dataset)
    columns = {
        "id": list(dataset.samples.id),
        "image_id": [dataset.images.id[row] for row in dataset.samples.image.tolist()],
        "question": [sample.question for sample in dataset],
        "dataset": [str(dataset.path.absolute())] * count,
        "protocols": [list(protocols)] * count,
    }
    pq.write_table(pa.table(columns), path, compression="zstd")


def _write_task(
    folder: Path, name: str, title: str, comment: str, protocols: Sequence[str]
) -> None:
    metrics = [
        METRIC.format(metric=_metric_name(protocol, metric))
        for protocol in protocols
        for metric in MAIN_METRICS
    ]
    text = TASK.format(
        title=title,
        comment=comment,
        task=name,
        data=f"data/{name}.parquet",
        max_new_tokens=MAX_NEW_TOKENS,
        metrics="".join(metrics).rstrip("\n"),
    )
    (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


# -- what lmms-eval calls ----------------------------------------------------------------------------------------------


def doc_to_visual(doc: Doc) -> list[Image.Image]:
    """The image of a question, upright, RGB."""
    return [_open(doc["dataset"]).open_image(doc["image_id"])]


def doc_to_text(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, str] | None = None
) -> str:
    """The question with the form of the answer.

    lmms_eval_specific_kwargs: `pre_prompt` before the question, `post_prompt` instead of our instruction.
    """
    wording = lmms_eval_specific_kwargs or {}
    before = wording.get("pre_prompt", "")
    after = wording.get("post_prompt", "\n" + INSTRUCTION)
    return f"{before}{doc['question']}{after}"


def doc_to_target(doc: Doc) -> str:
    """The ground truth in the form of a reply; only logs of lmms-eval show it."""
    sample = _open(doc["dataset"]).sample(doc["id"])
    if sample.mask_type == "amodal":
        masks = [region.amodal for region in sample.targets]
    else:
        masks = [region.visible for region in sample.targets]
    known_masks = [mask for mask in masks if mask is not None]
    return json.dumps(
        {"masks": msgspec.to_builtins(known_masks), "mask_type": sample.mask_type}
    )


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, dict[str, str]]:
    """For each metric what its aggregation needs: the dataset, the sample and the reply."""
    row = {"dataset": doc["dataset"], "sample": doc["id"], "reply": results[0]}
    names = [
        _metric_name(protocol, metric)
        for protocol in doc["protocols"]
        for metric in MAIN_METRICS
    ]
    return dict.fromkeys(names, row)


def aggregation(
    protocol: str, metric: str
) -> Callable[[Sequence[Mapping[str, str]]], float]:
    """The aggregation of a metric: rows of `process_results` to its value under a protocol.

    The value is that of `maskwise score` on the same predictions; NaN, which lmms-eval prints, where it is undefined.
    """

    def aggregate(rows: Sequence[Mapping[str, str]]) -> float:
        # Processes of a distributed run may repeat a row to get equal shares.
        replies = {row["sample"]: row["reply"] for row in rows}
        dataset = _open(rows[0]["dataset"])
        positions = sorted(dataset.samples.row[sample] for sample in replies)
        predictions = [
            reply_to_prediction(reply, sample) for sample, reply in replies.items()
        ]
        view = dataset.take(np.array(positions, np.int64))
        run = score(predictions, view, protocols=protocol)
        value = run[protocol][metric]
        return math.nan if value is None else float(value)

    return aggregate


def reply_to_prediction(reply: str, sample: str = "") -> Prediction:
    """The prediction of a reply in text: its first JSON object. A reply without one is a failed prediction."""
    fields = _first_object(reply)
    if fields is None:
        quoted = reply[:MAX_QUOTE]
        return Prediction(sample=sample, error=f"no JSON in the reply {quoted!r}")
    if "masks" in fields:
        kind = "amodal" if fields.get("mask_type") == "amodal" else "visible"
        masks = fields.pop("masks") or []
        fields["regions"] = [{kind: mask} for mask in masks]
        fields.setdefault("no_target", not masks)
    if isinstance(fields.get("answer"), str):
        fields["answer"] = {"text": fields["answer"]}
    try:
        return msgspec.convert({**fields, "sample": sample}, Prediction)
    except (msgspec.ValidationError, MaskwiseError) as error:
        return Prediction(sample=sample, error=f"the reply is malformed: {error}")


def _first_object(reply: str) -> dict[str, Any] | None:
    """The first JSON object in a text that may have words or a code fence around it; None if there is none."""
    decoder = json.JSONDecoder()
    start = reply.find("{")
    while start >= 0:
        try:
            fields, _ = decoder.raw_decode(reply, start)
        except (ValueError, RecursionError):
            start = reply.find("{", start + 1)
        else:
            assert isinstance(fields, dict)
            return fields
    return None


@functools.lru_cache(maxsize=4)
def _open(path: str) -> Dataset:
    return load_dataset(path)

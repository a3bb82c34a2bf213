"""A run in the forms in which results are published: for the Hugging Face hub, and as Every Eval Ever JSON.

    publish(load_run("runs/mine"), "my_model", dataset_id="lab/kitchen", model_id="lab/mine")

    .eval_results/NAME.yaml          results that the hub shows on the page of the model: one number per protocol and
                                     metric, with interval and counts in its notes
    README.md                        the model card, with the same results in its metadata (model-index)
    every_eval_ever/NAME.json        all of it with intervals, in the schema of Every Eval Ever

gIoU and cIoU of every protocol are published, as fractions of 1. Counts of failed questions, and what a reader has to
know before the metrics (`Run.notices`), go with every number. Needs the extra `release`, for huggingface_hub.
"""

import json
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from maskwise.builder.release.push import explain_hub_errors
from maskwise.errors import MissingDependencyError, ReleaseError
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue, StatusCounts
from maskwise.runs.tables import MAIN_METRICS

SCHEMA_VERSION = "0.3.0"
"""Of Every Eval Ever (github.com/evaleval/every_eval_ever)."""

TITLES = {"giou": "gIoU", "ciou": "cIoU"}

TASK_TYPE = "image-segmentation"
"""The name that the hub has for the task of the model-index."""

HUB = "hf:"
"""Beginning of a target on the hub: `hf:OWNER/NAME`."""

MAX_NAME = 60
"""Characters of a file name without its ending: file systems allow 255 bytes, and a character has up to four. The end
names the run."""

DIGITS = 6
"""Decimals of published values: intervals are wider than 1e-6."""


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What a run does not know about itself.

    dataset_id: the dataset on the hub, OWNER/NAME. model_id: the model, OWNER/NAME. organization: who evaluated.
    relationship: of the evaluator to the model: first_party, third_party, collaborative or other. deployment,
    availability: how the model was run and who can get it, in the words of Every Eval Ever.
    """

    dataset_id: str
    model_id: str
    organization: str = "unknown"
    relationship: str = "other"
    deployment: str = "unknown"
    availability: str = "unknown"


@dataclass(frozen=True)
class PublishedMetric:
    """One number with what belongs to it."""

    protocol: str
    name: str
    value: float
    metric: MetricValue
    counts: StatusCounts

    @property
    def task_id(self) -> str:
        """The hub has no field for a metric: protocol and metric make the task."""
        return f"{self.protocol}_{self.name}"


def publish(run: Run, target: str, publication: Publication) -> list[str]:
    """Write or upload the results of a run.

    target: a folder, in which the model card is updated, too; or `hf:OWNER/NAME`, a model on the hub, to which the
    other files are uploaded as a pull request. Returns the paths of the files, or the address of the pull request.
    """
    if not target.startswith(HUB):
        folder = Path(target)
        files = write_results(run, folder, publication)
        files.append(update_card(run, folder, publication))
        return [str(path) for path in files]
    repository = target.removeprefix(HUB)
    api = _import_hub().HfApi()
    with tempfile.TemporaryDirectory() as temporary:
        write_results(run, Path(temporary), publication)
        with explain_hub_errors(repository):
            commit = api.upload_folder(
                repo_id=repository,
                folder_path=temporary,
                commit_message=f"Results on {run.info.dataset.name}, by maskwise",
                create_pr=True,
            )
    return [str(commit.pr_url or commit.commit_url)]


def write_results(run: Run, folder: Path, publication: Publication) -> list[Path]:
    """Write the files of the hub and of Every Eval Ever below a folder; returns their paths."""
    name = re.sub(r"[^\w.-]+", "-", f"{run.info.dataset.name}-{run.name}")[
        -MAX_NAME:
    ].lstrip(".-")
    results = folder / ".eval_results" / f"{name}.yaml"
    records = folder / "every_eval_ever" / f"{name}.json"
    entries = to_eval_results(run, publication)
    record = to_every_eval_ever(run, publication, retrieved=time.time())
    for path in (results, records):
        path.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")
    records.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return [results, records]


def list_metrics(run: Run) -> list[PublishedMetric]:
    """gIoU and cIoU of every protocol, where they are defined; ReleaseError if none is."""
    metrics = []
    for protocol, scores in run.scores.protocols.items():
        for name in MAIN_METRICS:
            metric = scores.metrics[name]
            if metric.value is not None:
                value = round(metric.value, DIGITS)
                metrics.append(
                    PublishedMetric(protocol, name, value, metric, scores.counts)
                )
    if not metrics:
        raise ReleaseError(f"{run.location} has no metric to publish")
    return metrics


def to_eval_results(run: Run, publication: Publication) -> list[dict[str, Any]]:
    """The entries of a file in .eval_results."""
    hub = _import_hub()
    entries = [
        hub.EvalResultEntry(
            dataset_id=publication.dataset_id,
            task_id=metric.task_id,
            value=metric.value,
            date=_date(run),
            notes=_notes(run, metric),
        )
        for metric in list_metrics(run)
    ]
    results: list[dict[str, Any]] = hub.eval_result_entries_to_yaml(entries)
    return results


def update_card(run: Run, folder: Path, publication: Publication) -> Path:
    """Put the results into the metadata of the model card, which is made if there is none; other results stay."""
    hub = _import_hub()
    path = folder / "README.md"
    model_name = publication.model_id.rpartition("/")[2]
    if path.exists():
        card = hub.ModelCard.load(path)
    else:
        card = hub.ModelCard(f"---\n{{}}\n---\n\n# {model_name}\n")
    results = [
        hub.EvalResult(
            task_type=TASK_TYPE,
            dataset_type=publication.dataset_id,
            dataset_name=run.info.dataset.name,
            metric_type=metric.task_id,
            metric_name=f"{TITLES[metric.name]}, protocol {metric.protocol}",
            metric_value=metric.value,
        )
        for metric in list_metrics(run)
    ]
    replaced = {result.unique_identifier for result in results}
    kept = [
        result
        for result in card.data.eval_results or []
        if result.unique_identifier not in replaced
    ]
    card.data.model_name = card.data.model_name or model_name
    card.data.eval_results = [*kept, *results]
    card.save(path)
    return path


def to_every_eval_ever(
    run: Run, publication: Publication, *, retrieved: float
) -> dict[str, Any]:
    """A record in the schema of Every Eval Ever. retrieved: seconds since 1970, when the record is made."""
    timestamp = f"{retrieved:.0f}"
    dataset = run.info.dataset
    record: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{dataset.name}/{publication.model_id}/{timestamp}",
        "retrieved_timestamp": timestamp,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": publication.organization,
            "evaluator_relationship": publication.relationship,
        },
        "eval_library": {"name": "maskwise", "version": run.info.maskwise},
        "model_info": {
            "name": run.model_name,
            "id": publication.model_id,
            "additional_details": {
                "deployment_type": publication.deployment,
                "model_availability": publication.availability,
            },
        },
        "evaluation_results": [
            _to_result(run, metric, publication) for metric in list_metrics(run)
        ],
    }
    return record


def _to_result(
    run: Run, metric: PublishedMetric, publication: Publication
) -> dict[str, Any]:
    scores = run.scores.protocols[metric.protocol]
    details = {
        "scored": str(metric.counts.scored),
        "failed": str(metric.counts.failed),
        "missing": str(metric.counts.missing),
        "excluded": str(metric.counts.excluded),
    }
    if run.notices:
        details["notices"] = " ".join(run.notices)
    score: dict[str, Any] = {"score": metric.metric.value, "details": details}
    if metric.metric.low is not None and metric.metric.high is not None:
        score["uncertainty"] = {
            "confidence_interval": {
                "lower": metric.metric.low,
                "upper": metric.metric.high,
                "confidence_level": run.info.intervals.level,
                "method": f"{metric.metric.method}, clustered by {run.info.intervals.cluster}",
            },
            "num_samples": metric.counts.samples,
        }
    return {
        "evaluation_name": f"{run.info.dataset.name} {metric.protocol} {TITLES[metric.name]}",
        "source_data": {
            "dataset_name": run.info.dataset.name,
            "source_type": "hf_dataset",
            "hf_repo": publication.dataset_id,
            "samples_number": run.info.dataset.samples,
        },
        "metric_config": {
            "evaluation_description": scores.rule,
            "metric_id": f"maskwise.{metric.task_id}",
            "metric_name": TITLES[metric.name],
            "metric_unit": "proportion",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": score,
    }


def _notes(run: Run, metric: PublishedMetric) -> str:
    """The interval, the counts and the notices, in words."""
    counts = metric.counts
    parts = [
        f"{TITLES[metric.name]} under the protocol {metric.protocol}, fraction of 1"
    ]
    if metric.metric.low is not None and metric.metric.high is not None:
        level = 100 * run.info.intervals.level
        parts.append(
            f"{level:g} % interval {metric.metric.low:.4f} to {metric.metric.high:.4f}"
        )
    parts.append(
        f"{counts.samples} questions, {counts.failed} failed, {counts.missing} missing"
    )
    parts.append(f"maskwise {run.info.maskwise}")
    return " ".join(["; ".join(parts) + ".", *run.notices])


def _date(run: Run) -> str | None:
    """The day of the last attempt; None if `maskwise eval` did not make the predictions."""
    evaluation = run.info.evaluation
    if evaluation is None or not evaluation.attempts:
        return None
    return evaluation.attempts[-1].started[:10]


def _import_hub() -> Any:
    try:
        import huggingface_hub  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "publishing", "huggingface_hub", extra="release"
        ) from None
    return huggingface_hub

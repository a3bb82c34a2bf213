"""maskwise: reasoning segmentation with visible and amodal masks.

    import maskwise as mw

    model = mw.load_model("tiny")
    prediction = model.encode("scene.jpg").ask("the whole cup, hidden part included")
    run = mw.evaluate(model, mw.load_dataset("world"))

Every name in `__all__` is loaded when it is first used; docs/reference/api.md describes them.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maskwise.auditing.audit import audit
    from maskwise.datasets import load_dataset, read_dataset
    from maskwise.engines import EngineOptions
    from maskwise.errors import (
        ConfigError,
        DownloadError,
        FormatError,
        ImageError,
        MaskError,
        MaskwiseError,
        MissingDependencyError,
        ModelError,
        ModelGoneError,
        ProtocolError,
        RecordError,
        ReleaseError,
        StoreError,
        UnknownNameError,
    )
    from maskwise.formats import write_dataset
    from maskwise.harness.evaluate import evaluate
    from maskwise.harness.evaluator import Evaluator
    from maskwise.harness.ladder import ladder
    from maskwise.harness.loaded_model import ImageEncoding, LoadedModel, load_model
    from maskwise.harness.predictor import Predictor
    from maskwise.harness.rescore import rescore
    from maskwise.harness.reward import Reward, reward
    from maskwise.harness.score import score
    from maskwise.images import open_image
    from maskwise.judging import judge
    from maskwise.language.intent import classify_intent
    from maskwise.masks import Mask, Masks, as_mask, as_masks
    from maskwise.models.baselines import baseline
    from maskwise.probes.run_probes import probe
    from maskwise.registry import (
        list_benchmarks,
        list_formats,
        list_models,
        list_protocols,
    )
    from maskwise.report.comparison import compare
    from maskwise.report.explanation import explain
    from maskwise.report.overlay import draw_overlay
    from maskwise.runs import Run, load_run
    from maskwise.runs.metric import Metric
    from maskwise.schema import (
        Answer,
        ImageInfo,
        Phrase,
        PredictedRegion,
        Prediction,
        Region,
        Sample,
    )
    from maskwise.store import Dataset, DatasetWriter

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "ConfigError",
    "Dataset",
    "DatasetWriter",
    "DownloadError",
    "EngineOptions",
    "Evaluator",
    "FormatError",
    "ImageEncoding",
    "ImageError",
    "ImageInfo",
    "LoadedModel",
    "Mask",
    "MaskError",
    "Masks",
    "MaskwiseError",
    "Metric",
    "MissingDependencyError",
    "ModelError",
    "ModelGoneError",
    "Phrase",
    "PredictedRegion",
    "Prediction",
    "Predictor",
    "ProtocolError",
    "RecordError",
    "Region",
    "ReleaseError",
    "Reward",
    "Run",
    "Sample",
    "StoreError",
    "UnknownNameError",
    "as_mask",
    "as_masks",
    "audit",
    "baseline",
    "classify_intent",
    "compare",
    "draw_overlay",
    "evaluate",
    "explain",
    "judge",
    "ladder",
    "list_benchmarks",
    "list_formats",
    "list_models",
    "list_protocols",
    "load_dataset",
    "load_model",
    "load_run",
    "open_image",
    "probe",
    "read_dataset",
    "rescore",
    "reward",
    "score",
    "write_dataset",
]

_MODULES = {
    "auditing.audit": ["audit"],
    "datasets": ["load_dataset", "read_dataset"],
    "engines": ["EngineOptions"],
    "errors": [
        "ConfigError",
        "DownloadError",
        "FormatError",
        "ImageError",
        "MaskError",
        "MaskwiseError",
        "MissingDependencyError",
        "ModelError",
        "ModelGoneError",
        "ProtocolError",
        "RecordError",
        "ReleaseError",
        "StoreError",
        "UnknownNameError",
    ],
    "formats": ["write_dataset"],
    "harness.evaluate": ["evaluate"],
    "harness.ladder": ["ladder"],
    "harness.evaluator": ["Evaluator"],
    "harness.loaded_model": ["ImageEncoding", "LoadedModel", "load_model"],
    "harness.predictor": ["Predictor"],
    "harness.rescore": ["rescore"],
    "harness.reward": ["Reward", "reward"],
    "harness.score": ["score"],
    "images": ["open_image"],
    "judging": ["judge"],
    "masks": ["Mask", "Masks", "as_mask", "as_masks"],
    "language.intent": ["classify_intent"],
    "models.baselines": ["baseline"],
    "probes.run_probes": ["probe"],
    "registry": ["list_benchmarks", "list_formats", "list_models", "list_protocols"],
    "report.comparison": ["compare"],
    "report.explanation": ["explain"],
    "report.overlay": ["draw_overlay"],
    "runs": ["Run", "load_run"],
    "runs.metric": ["Metric"],
    "schema": [
        "Answer",
        "ImageInfo",
        "Phrase",
        "PredictedRegion",
        "Prediction",
        "Region",
        "Sample",
    ],
    "store": ["Dataset", "DatasetWriter"],
}
"""Where each public name is defined."""


def __getattr__(name: str) -> Any:
    """Load a public name on first use (PEP 562)."""
    module = next((module for module, names in _MODULES.items() if name in names), None)
    if module is None:
        raise AttributeError(
            f"module 'maskwise' has no attribute {name!r}; maskwise.__all__ lists the names"
        )
    value = getattr(importlib.import_module(f"maskwise.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])

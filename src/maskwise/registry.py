"""Everything that is known by name: one registry per kind, for built-ins and plug-ins.

    FORMATS.list()                        names and descriptions; nothing is imported
    FORMATS.load("coco", AnnotationFormat)
    PROTOCOLS.load("my_module:rule", object)

A name belongs to a built-in or to a plug-in: an entry point of the group
`maskwise.models`, `maskwise.formats`, ... of an installed package (docs/extending.md).
Where a name is expected, `package.module:attribute` is understood too; the module may
be a file in the working directory.

A plug-in that cannot be imported disables only itself: `load` raises an error that
names its package, `load_all` leaves it out and logs a warning. A plug-in cannot replace
a built-in: the built-in wins, and a warning names the package.
"""

import importlib
import inspect
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from maskwise.errors import (
    FormatError,
    MaskwiseError,
    MissingDependencyError,
    ModelError,
    ProtocolError,
    UnknownNameError,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

SPEC_FORM = "package.module:attribute"
"""How an object without a name is given."""


@dataclass(frozen=True)
class BuiltIn:
    """A built-in object, imported only when it is used.

    place: `module:attribute`, or `module` for the module itself. description: one line.
    extra: the extra of maskwise that installs what the module imports.
    """

    place: str
    description: str
    extra: str = ""


class Registry:
    """The names of one kind.

    kind: a singular noun, such as "format"; plug-ins use the group `maskwise.formats`.
    error: raised for an object that cannot be imported or has the wrong type.
    other_forms: what a caller accepts beside names, for the message about unknown ones.
    """

    def __init__(
        self,
        kind: str,
        built_in: Mapping[str, BuiltIn],
        *,
        error: type[MaskwiseError] = MaskwiseError,
        other_forms: tuple[str, ...] = (),
    ) -> None:
        self.kind = kind
        self.group = f"maskwise.{kind}s"
        self.built_in = dict(built_in)
        self.error = error
        self.other_forms = (SPEC_FORM, *other_forms)
        self._plug_ins: dict[str, EntryPoint] | None = None

    @property
    def plug_ins(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages by name, in alphabetical order.

        Found on first use. One that has the name of a built-in, or of a plug-in of
        another package that comes first in the alphabet, is left out with a warning.
        """
        if self._plug_ins is None:
            self._plug_ins = self._find_plug_ins()
        return self._plug_ins

    def names(self) -> list[str]:
        """All names: built-ins first, then plug-ins. Nothing is imported."""
        return [*self.built_in, *self.plug_ins]

    def list(self) -> dict[str, str]:
        """A description of everything by name. Nothing is imported.

        A plug-in is described by its place and its package, because importing it to
        read a docstring may take seconds.
        """
        descriptions = {name: item.description for name, item in self.built_in.items()}
        for name, point in self.plug_ins.items():
            descriptions[name] = _describe_plug_in(point)
        return descriptions

    def load(self, spec: str, expected: type[T], *, where: str = "") -> T:
        """The object of a name, or of `package.module:attribute`.

        expected: its type; `object` for any. where: the file that contains the name.
        UnknownNameError lists the known names; MissingDependencyError names the extra
        that a built-in needs; `error` says why anything else cannot be loaded.
        """
        if spec in self.plug_ins:
            loaded = self._load_plug_in(self.plug_ins[spec])
        elif spec in self.built_in:
            loaded = self._load_built_in(spec)
        elif ":" in spec:
            loaded = self._load_spec(spec)
        else:
            known = [*self.names(), *self.other_forms]
            raise UnknownNameError(self.kind, spec, known, where=where)
        if not isinstance(loaded, expected):
            raise self.error(
                f"{self._origin(spec)}: expected an object of type "
                f"{expected.__name__}, found one of type {type(loaded).__name__}"
            )
        return loaded

    def load_all(self, expected: type[T]) -> dict[str, T]:
        """Every object by name. Plug-ins that cannot be loaded are left out; a warning
        that names the package is logged for each.
        """
        objects = {name: self.load(name, expected) for name in self.built_in}
        for name in self.plug_ins:
            try:
                objects[name] = self.load(name, expected)
            except MaskwiseError as error:
                logger.warning("%s", error)
        return objects

    def check_plug_ins(self) -> dict[str, str]:
        """Import every plug-in. Returns why it cannot be imported by name, empty text
        for those that can.
        """
        problems = {}
        for name, point in self.plug_ins.items():
            try:
                self._load_plug_in(point)
            except MaskwiseError as error:
                problems[name] = str(error)
            else:
                problems[name] = ""
        return problems

    def describe_plug_ins(self) -> dict[str, str]:
        """Import every plug-in and describe it by its own name and the first line of its
        docstring; one without these, or that cannot be imported, as `list` does.
        """
        descriptions = {}
        for name, point in self.plug_ins.items():
            try:
                loaded = self._load_plug_in(point)
            except MaskwiseError:
                descriptions[name] = _describe_plug_in(point)
                continue
            own_name = getattr(loaded, "name", None)
            parts = [own_name if isinstance(own_name, str) else ""]
            parts.append((inspect.getdoc(loaded) or "").partition("\n")[0])
            text = ": ".join(part for part in parts if part and part != name)
            origin = f"{_place(point)}, {_package(point)}"
            descriptions[name] = (
                f"{text} ({origin})" if text else _describe_plug_in(point)
            )
        return descriptions

    def _find_plug_ins(self) -> dict[str, EntryPoint]:
        chosen: dict[str, EntryPoint] = {}
        points = entry_points(group=self.group)
        for point in sorted(points, key=lambda item: (item.name, _package(item))):
            if point.name in self.built_in:
                owner = "built into maskwise"
            elif point.name in chosen:
                owner = f"from {_package(chosen[point.name])}"
            else:
                chosen[point.name] = point
                continue
            logger.warning(
                "%s %r from %s is ignored: the name belongs to the %s %s",
                self.kind,
                point.name,
                _package(point),
                self.kind,
                owner,
            )
        return chosen

    def _load_built_in(self, name: str) -> Any:
        item = self.built_in[name]
        try:
            return _import_object(item.place)
        except ImportError as error:
            is_foreign = error.name is not None and not error.name.startswith(
                "maskwise"
            )
            if not is_foreign:
                raise
            package = str(error.name).partition(".")[0]
            raise MissingDependencyError(
                f"{self.kind} {name}", package, extra=item.extra or None
            ) from None

    def _load_plug_in(self, point: EntryPoint) -> Any:
        try:
            return _import_object(_place(point))
        except KeyboardInterrupt:
            raise
        # A plug-in's module runs when it is imported, and may raise anything.
        except BaseException as error:
            raise self.error(
                f"{self._origin(point.name)} cannot be loaded: {_reason(error)}; "
                "repair or uninstall the package"
            ) from error

    def _load_spec(self, spec: str) -> Any:
        # As with `python -m`, a module in the working directory can be imported.
        working_directory = str(Path.cwd())
        if working_directory not in sys.path:
            sys.path.insert(0, working_directory)
        try:
            return _import_object(spec)
        except KeyboardInterrupt:
            raise
        # A user's module runs when it is imported, and may raise anything.
        except BaseException as error:
            raise self.error(
                f"{self.kind} {spec!r}: cannot load {spec}: {_reason(error)}"
            ) from error

    def _origin(self, spec: str) -> str:
        """The kind, the name and where it comes from, as the start of a message."""
        point = self.plug_ins.get(spec)
        if point is None:
            return f"{self.kind} {spec!r}"
        entry_point = f"{point.name} = {_place(point)}"
        return (
            f"{self.kind} {spec!r} from {_package(point)} "
            f"(entry point `{entry_point}` of {self.group})"
        )


def _import_object(place: str) -> Any:
    """Import `module:attribute`, where the attribute may have dots, or `module`."""
    module_name, _, attribute_path = place.partition(":")
    loaded: Any = importlib.import_module(module_name.strip())
    for attribute in attribute_path.strip().split("."):
        if attribute:
            loaded = getattr(loaded, attribute)
    return loaded


def _place(point: EntryPoint) -> str:
    """Where an entry point's object is, without the extras that its value may name."""
    return f"{point.module}:{point.attr}" if point.attr else point.module


def _package(point: EntryPoint) -> str:
    if point.dist is None:
        return "an unknown package"
    return f"package {point.dist.name} {point.dist.version}"


def _describe_plug_in(point: EntryPoint) -> str:
    if point.dist is None:
        return f"from {_place(point)}"
    summary = point.dist.metadata["Summary"] or ""
    origin = f"{_place(point)}, {_package(point)}"
    return f"{summary} ({origin})" if summary else f"from {origin}"


def _reason(error: BaseException) -> str:
    """Import errors speak for themselves; the text of others may be empty or vague."""
    if isinstance(error, ImportError | AttributeError):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _baseline(name: str, description: str) -> BuiltIn:
    place = f"maskwise.models.baselines:{name}"
    return BuiltIn(
        place, f"baseline of any model, --model-option of=MODEL: {description}"
    )


def _stage_oracle(name: str, description: str) -> BuiltIn:
    place = f"maskwise.models.tiny.stage_oracles:{name}"
    return BuiltIn(place, f"oracle of one stage: {description}")


MODELS = Registry(
    "model",
    {
        "tiny": BuiltIn(
            "maskwise.models.tiny:load",
            "the bundled model, small, for images of the world benchmark",
        ),
        "vlm": BuiltIn(
            "maskwise.models.vlm.predictor:load",
            "a trained vision-language model with mask decoders; "
            "--model-option checkpoint=FOLDER (extra vlm)",
            extra="vlm",
        ),
        "photo": BuiltIn(
            "maskwise.models.photo:load",
            "photographs: proposals, a choice by words or by a language model, "
            "visible and amodal masks",
        ),
        "sam3": BuiltIn(
            "maskwise.models.adapters.sam3:Sam3Predictor",
            "SAM 3 of transformers: noun phrases to masks; "
            "--model-option checkpoint=FOLDER (extra vlm)",
            extra="vlm",
        ),
        "visionreasoner": BuiltIn(
            "maskwise.models.adapters.visionreasoner:VisionReasoner",
            "VisionReasoner: Qwen2.5-VL thinks and gives boxes, SAM 2 masks; "
            "--model-option checkpoint=FOLDER (extra vlm)",
            extra="vlm",
        ),
        "sa2va": BuiltIn(
            "maskwise.models.adapters.sa2va:Sa2va",
            "Sa2VA: Qwen-VL answers with [SEG] tokens, SAM 2 masks; "
            "--model-option checkpoint=FOLDER (extra vlm)",
            extra="vlm",
        ),
        "oracle": BuiltIn(
            "maskwise.harness.oracle:Oracle",
            "the ground truth with adjustable errors, to test metrics",
        ),
        "text-blind": _baseline("text_blind", "every question is empty"),
        "turn-blind": _baseline("turn_blind", "earlier turns are left out"),
        "image-blind": _baseline("image_blind", "every image is gray"),
        "shuffled-questions": _baseline(
            "shuffled_questions", "every question is replaced by another one"
        ),
        "visible-copy": _baseline("visible_copy", "amodal masks are its visible masks"),
        "convex-hull": _baseline(
            "convex_hull", "amodal masks are convex hulls of its visible masks"
        ),
        "whole-image": BuiltIn(
            "maskwise.models.baselines:WholeImage",
            "baseline: one region, the whole image",
        ),
        "oracle-detector": _stage_oracle(
            "oracle_detector", "tiny with ground-truth objects (world images only)"
        ),
        "oracle-mask-type": _stage_oracle(
            "oracle_mask_type", "tiny with the ground-truth mask type"
        ),
        "oracle-grounder": _stage_oracle(
            "oracle_grounder", "tiny with the ground-truth targets among its detections"
        ),
        "oracle-masks": _stage_oracle(
            "oracle_masks",
            "tiny with ground-truth masks for the targets it selected correctly",
        ),
    },
    error=ModelError,
    other_forms=("command: ...", "http://..."),
)
"""Factories: called with the model's options, they return a model."""


FORMATS = Registry(
    "format",
    {
        "ade20k": BuiltIn(
            "maskwise.formats.ade20k:ADE20K",
            "ADE20K (full, 2021): objects and parts with visible and occluded masks",
        ),
        "coco": BuiltIn(
            "maskwise.formats.coco:COCO", "COCO and LVIS instances: visible masks"
        ),
        "cocoa": BuiltIn(
            "maskwise.formats.cocoa:COCOA",
            "COCOA: amodal regions of whole scenes with their depth order",
        ),
        "cocoa_cls": BuiltIn(
            "maskwise.formats.cocoa_cls:COCOA_CLS",
            "COCOA-cls: visible and amodal masks of 80 COCO classes",
        ),
        "d2sa": BuiltIn(
            "maskwise.formats.d2sa:D2SA",
            "D2SA: visible and amodal masks of 60 kinds of supermarket goods",
        ),
        "fiftyone": BuiltIn(
            "maskwise.formats.fiftyone:FIFTYONE",
            "FiftyOne: a folder that FiftyOne imports as COCODetectionDataset, as "
            "written by `maskwise write fiftyone`",
        ),
        "gcg_json": BuiltIn(
            "maskwise.formats.gcg:GCG_JSON",
            "GCG: captions whose phrases have masks, as GLaMM and Sa2VA read them",
        ),
        "huggingface": BuiltIn(
            "maskwise.formats.huggingface:HUGGINGFACE",
            "Hugging Face datasets: Parquet with embedded images, as written by "
            "`maskwise write huggingface`",
        ),
        "kins": BuiltIn(
            "maskwise.formats.kins:KINS",
            "KINS: visible and amodal masks of traffic scenes (KITTI), fields of 2019 "
            "or 2020",
        ),
        "labelstudio": BuiltIn(
            "maskwise.formats.labelstudio:LABELSTUDIO",
            "Label Studio: tasks with brush annotations, written by `maskwise write "
            "labelstudio` or exported from there",
        ),
        "lisa": BuiltIn(
            "maskwise.benchmarks.lisa_folder:LISA",
            "LISA: ReasonSeg's folder of X.jpg and X.json, to train with",
        ),
        "mmr_json": BuiltIn(
            "maskwise.benchmarks.mmr_json:MMR_JSON",
            "MMR's JSON, to train with",
        ),
        "muva": BuiltIn(
            "maskwise.formats.muva:MUVA",
            "MUVA: visible and amodal masks of synthetic shopping scenes",
        ),
        "paco_lvis": BuiltIn(
            "maskwise.formats.paco_lvis:PACO_LVIS",
            "PACO-LVIS: visible masks of 75 kinds of objects and their parts",
        ),
        "png": BuiltIn(
            "maskwise.formats.png:PNG",
            "PNG: a folder of PNG masks with an index (index.json), as written by "
            "`maskwise write png`",
        ),
        "qwen2_vl": BuiltIn(
            "maskwise.formats.qwen:QWEN2_VL",
            "Qwen2-VL grounding JSON, boxes in 0 to 1000, to train with",
        ),
        "qwen2_5_vl": BuiltIn(
            "maskwise.formats.qwen:QWEN2_5_VL",
            "Qwen2.5-VL grounding JSON, boxes in pixels of the resized image, to train with",
        ),
        "qwen3_vl": BuiltIn(
            "maskwise.formats.qwen:QWEN3_VL",
            "Qwen3-VL grounding JSON, boxes in 0 to 1000, to train with",
        ),
        "records": BuiltIn(
            "maskwise.formats.records:RECORDS",
            "Records: your own JSON, JSON lines, CSV or Parquet file, read through a "
            "field mapping",
        ),
        "release": BuiltIn(
            "maskwise.formats.release_folder:RELEASE_FOLDER",
            "A released dataset, as written by `maskwise release`",
        ),
        "sa2va": BuiltIn(
            "maskwise.formats.sa2va:SA2VA",
            "Sa2VA: annotations.json of polygons and expressions, to train with",
        ),
        "segzero": BuiltIn(
            "maskwise.formats.segzero:SEGZERO",
            "Seg-Zero and VisionReasoner: boxes and points in 840 x 840 images (save_to_disk), to train with",
        ),
    },
    error=FormatError,
)
"""Objects of type `maskwise.formats.AnnotationFormat`."""


BENCHMARKS = Registry(
    "benchmark",
    {
        "amodalreasonseg": BuiltIn(
            "maskwise.benchmarks.amodalreasonseg:AMODALREASONSEG",
            "AmodalReasonSeg: amodal reasoning segmentation (AURA, ICCV 2025); "
            "protocol aura",
        ),
        "r2sm": BuiltIn(
            "maskwise.benchmarks.r2sm:R2SM",
            "R2SM: referring and reasoning for selective masks (arXiv 2506.01795); "
            "protocol r2sm",
        ),
        "mmr": BuiltIn(
            "maskwise.benchmarks.mmr:MMR",
            "MMR: multi-target and multi-granularity reasoning segmentation (ICLR "
            "2025); protocol mmr",
        ),
        "reasonseg": BuiltIn(
            "maskwise.benchmarks.reasonseg:REASONSEG",
            "ReasonSeg: reasoning segmentation (LISA, CVPR 2024); protocol lisa",
        ),
        "muse": BuiltIn(
            "maskwise.benchmarks.muse:MUSE",
            "MUSE: multi-target reasoning segmentation (PixelLM, CVPR 2024); protocol "
            "muse",
        ),
        "grefcoco": BuiltIn(
            "maskwise.benchmarks.grefcoco:GREFCOCO",
            "gRefCOCO: generalized referring expressions, with none, one or many "
            "targets (GRES, CVPR 2023); protocol gres",
        ),
        "refcocom": BuiltIn(
            "maskwise.benchmarks.refcocom:REFCOCOM",
            "RefCOCOm: referring expressions for objects and parts (MRES, CVPR 2024); "
            "protocol mmr",
        ),
        "refcoco": BuiltIn(
            "maskwise.benchmarks.refcoco:REFCOCO",
            "RefCOCO: short expressions about one object (UNC, ECCV 2016); "
            "protocol lisa",
        ),
        "refcoco+": BuiltIn(
            "maskwise.benchmarks.refcoco:REFCOCO_PLUS",
            "RefCOCO+: expressions about one object without words of place (UNC, "
            "ECCV 2016); protocol lisa",
        ),
        "refcocog": BuiltIn(
            "maskwise.benchmarks.refcoco:REFCOCOG",
            "RefCOCOg: long expressions about one object (CVPR 2016); protocol lisa",
        ),
        "refclef": BuiltIn(
            "maskwise.benchmarks.refcoco:REFCLEF",
            "RefCLEF: expressions about regions of ImageCLEF photos (EMNLP 2014); "
            "protocol lisa",
        ),
        "refcoco-mirror": BuiltIn(
            "maskwise.benchmarks.refcoco_mirrors:REFCOCO_MIRROR",
            "Copies of RefCOCO, RefCOCO+ and RefCOCOg on the hub (jxu124, "
            "lmms-lab), without a pickle; protocol lisa",
        ),
        "fp-refcoco": BuiltIn(
            "maskwise.benchmarks.refcoco:FP_REFCOCO",
            "FP-RefCOCO: RefCOCO with expressions that are false; protocol gsva",
        ),
        "fp-refcoco+": BuiltIn(
            "maskwise.benchmarks.refcoco:FP_REFCOCO_PLUS",
            "FP-RefCOCO+: RefCOCO+ with expressions that are false; protocol gsva",
        ),
        "fp-refcocog": BuiltIn(
            "maskwise.benchmarks.refcoco:FP_REFCOCOG",
            "FP-RefCOCOg: RefCOCOg with expressions that are false; protocol gsva",
        ),
        "r-refcoco": BuiltIn(
            "maskwise.benchmarks.refcoco:R_REFCOCO",
            "R-RefCOCO: RefCOCO with expressions about objects that do not exist; "
            "protocol gsva",
        ),
        "r-refcoco+": BuiltIn(
            "maskwise.benchmarks.refcoco:R_REFCOCO_PLUS",
            "R-RefCOCO+: RefCOCO+ with expressions about objects that do not "
            "exist; protocol gsva",
        ),
        "r-refcocog": BuiltIn(
            "maskwise.benchmarks.refcoco:R_REFCOCOG",
            "R-RefCOCOg: RefCOCOg with expressions about objects that do not "
            "exist; protocol gsva",
        ),
        "ref-zom": BuiltIn(
            "maskwise.benchmarks.refcoco:REF_ZOM",
            "Ref-ZOM: expressions about none, one or many objects (ICCV 2023); protocol gsva",
        ),
        "hub-matrices": BuiltIn(
            "maskwise.benchmarks.hub_matrices:HUB_MATRICES",
            "Hub copies with boolean-matrix masks: ReasonSeg, RefCOCO, MMR, MUSE "
            "(Seg-Zero and its successors); protocol segzero",
        ),
        "gseval": BuiltIn(
            "maskwise.benchmarks.gseval:GSEVAL",
            "GSEval: captions about stuff, parts and objects (GroundingSuite, "
            "2025); protocol gseval",
        ),
        "saco-gold": BuiltIn(
            "maskwise.benchmarks.saco:SACO_GOLD",
            "SA-Co/Gold: noun phrases with all their instances, by three "
            "annotators (SAM 3, 2025); protocol saco",
        ),
        "saco-silver": BuiltIn(
            "maskwise.benchmarks.saco:SACO_SILVER",
            "SA-Co/Silver: noun phrases with all their instances, by one annotator "
            "(SAM 3, 2025); protocol saco",
        ),
        "pbench": BuiltIn(
            "maskwise.benchmarks.mask_rows:PBENCH",
            "PBench: expressions of five levels of difficulty, with all instances "
            "(Falcon-Perception); protocol strict",
        ),
        "refcoco-m": BuiltIn(
            "maskwise.benchmarks.mask_rows:REFCOCO_M",
            "RefCOCO-M: RefCOCO's val with new masks (moondream); protocol lisa",
        ),
        "weatherreasonseg": BuiltIn(
            "maskwise.benchmarks.mask_rows:WEATHERREASONSEG",
            "WeatherReasonSeg: ReasonSeg's questions in fog, rain, snow and at "
            "night; protocol lisa",
        ),
        "vrt-bench": BuiltIn(
            "maskwise.benchmarks.mask_rows:VRT_BENCH",
            "VRT-Bench: questions about relations, with a reasoning trace; "
            "protocol union",
        ),
        "hallusegbench": BuiltIn(
            "maskwise.benchmarks.hallusegbench:HALLUSEGBENCH",
            "HalluSegBench: labels about photos and about copies without the "
            "object; protocol gsva",
        ),
        "llm-seg40k": BuiltIn(
            "maskwise.benchmarks.llm_seg40k:LLM_SEG40K",
            "LLM-Seg40K: questions by a language model about COCO and EgoObjects "
            "photos; protocol lisa",
        ),
        "gcg": BuiltIn(
            "maskwise.benchmarks.gcg:GCG",
            "GCG: captions whose phrases have masks (GLaMM, CVPR 2024); protocol "
            "strict",
        ),
    },
    error=FormatError,
)
"""Objects of type `maskwise.benchmarks.Benchmark`."""


PROTOCOLS = Registry(
    "protocol",
    {
        "strict": BuiltIn(
            "maskwise.protocols.strict:score",
            "free answers, one-to-one matching by IoU, extra and missing masks cost, "
            "the mask type must be right",
        ),
        "lisa": BuiltIn(
            "maskwise.protocols.lisa:score",
            "k-th mask with k-th target of the question, mean over target masks; "
            "extra masks are free",
        ),
        "mmr": BuiltIn(
            "maskwise.protocols.mmr:score",
            "all questions of an image in one list, k-th mask with k-th target; "
            "images without any mask left out",
        ),
        "muse": BuiltIn(
            "maskwise.protocols.muse:score",
            "matched per question, remaining masks and targets count, divided by the "
            "larger count of the whole image",
        ),
        "gres": BuiltIn(
            "maskwise.protocols.gres:score",
            "union of masks per question; the flag of the prediction decides no- "
            "target questions; mean over questions",
        ),
        "gsva": BuiltIn(
            "maskwise.protocols.gsva:score",
            "as gres, but an empty target makes a no-target question, and a wrong "
            "'nothing here' keeps its IoU",
        ),
        "union": BuiltIn(
            "maskwise.protocols.union:score",
            "union of masks per question against the union of targets, both empty = "
            "1; mean over questions",
        ),
        "aura": BuiltIn(
            "maskwise.protocols.aura:score",
            "visible and amodal masks, one per phrase, matched by IoU; mean over "
            "images (our reading of the paper)",
        ),
        "r2sm": BuiltIn(
            "maskwise.protocols.r2sm:score",
            "one mask per question, of the predicted type, against the requested type "
            "(our reading)",
        ),
        "segzero": BuiltIn(
            "maskwise.protocols.segzero:score",
            "union of masks per question, ignored pixels are target; both"
            " empty = left out; mean over records",
        ),
        "visionreasoner": BuiltIn(
            "maskwise.protocols.visionreasoner:score",
            "union of masks per question, ignored pixels are target; both"
            " empty = 0; mean over records",
        ),
        "star": BuiltIn(
            "maskwise.protocols.star:score",
            "union of masks per question, ignored pixels are target; both"
            " empty = 1; mean over records",
        ),
        "lens": BuiltIn(
            "maskwise.protocols.lens:score",
            "union of masks per question, ignored pixels are background; "
            "both empty = 1; mean over questions",
        ),
        "unipixel": BuiltIn(
            "maskwise.protocols.unipixel:score",
            "union of masks per question, ignored pixels are background; "
            "both empty = 1; no epsilons",
        ),
        "xsam": BuiltIn(
            "maskwise.protocols.xsam:score",
            "union of masks per question, ignored pixels dropped; "
            "questions without target pixels left out",
        ),
        "sam3i": BuiltIn(
            "maskwise.protocols.sam3i:score",
            "union of masks per question, both empty = 0; its printed "
            "mIoU is cIoU; or per image over all its targets",
        ),
        "sa2va": BuiltIn(
            "maskwise.protocols.sa2va:score",
            "union of masks per question, both empty = 1; without a mask:"
            " 0, in older versions absent from cIoU",
        ),
        "saco": BuiltIn(
            "maskwise.protocols.saco:score",
            "cgF1: instances matched by IoU at ten thresholds, times the "
            "correlation of presence per question",
        ),
        "gseval": BuiltIn(
            "maskwise.protocols.gseval:score",
            "union of masks per row; both empty = 0; rows without a "
            "prediction are skipped",
        ),
    },
    error=ProtocolError,
)
"""Scoring functions, or objects of type `maskwise.protocols.Protocol`. The recommended
one comes first.
"""

DEFAULT_PROTOCOLS = [
    "strict",
    "lisa",
    "mmr",
    "muse",
    "gres",
    "gsva",
    "union",
    "aura",
    "r2sm",
]
"""What is scored where no rule is named: `strict`, and the rules of the benchmarks that
maskwise rebuilds.
"""


RECIPES = Registry(
    "recipe",
    {
        "amodal-reason-seg": BuiltIn(
            "maskwise.builder.amodal_reason_seg:AMODAL_REASON_SEG",
            "about ten implicit question-answer pairs per image; answers combine "
            "objects, with both masks",
        ),
        "r2sm": BuiltIn(
            "maskwise.builder.r2sm:R2SM",
            "per object, questions in visible and in amodal wording, referring and "
            "reasoning",
        ),
        "mmr": BuiltIn(
            "maskwise.builder.mmr:MMR",
            "a caption, then questions about several objects and parts, without their "
            "names",
        ),
    },
)
"""Objects of type `maskwise.builder.recipe.Recipe`."""


FILTERS = Registry(
    "filter",
    {
        "unknown-target": BuiltIn(
            "maskwise.builder.filters.apply_filters:UNKNOWN_TARGET",
            "The answer names a region that is not there.",
        ),
        "phrase-mismatch": BuiltIn(
            "maskwise.builder.filters.apply_filters:PHRASE_MISMATCH",
            "No target, a phrase that is not in the answer, a phrase without a mask, "
            "or a mask with two phrases.",
        ),
        "missing-mask": BuiltIn(
            "maskwise.builder.filters.apply_filters:MISSING_MASK",
            "A target lacks the mask that is asked for.",
        ),
        "leaked-image": BuiltIn(
            "maskwise.builder.filters.apply_filters:LEAKED_IMAGE",
            "A near-identical image is in another split or in a dataset that was "
            "named.",
        ),
        "small-target": BuiltIn(
            "maskwise.builder.filters.apply_filters:SMALL_TARGET",
            "A target covers too little of the image.",
        ),
        "hidden-target": BuiltIn(
            "maskwise.builder.filters.apply_filters:HIDDEN_TARGET",
            "Too much of a target is hidden.",
        ),
        "truncated-target": BuiltIn(
            "maskwise.builder.filters.apply_filters:TRUNCATED_TARGET",
            "The image border cuts a target off, and the question asks for its whole "
            "shape.",
        ),
        "unoccluded-amodal": BuiltIn(
            "maskwise.builder.filters.apply_filters:UNOCCLUDED_AMODAL",
            "The question asks for the whole shape, hidden part included, but no "
            "target is occluded.",
        ),
        "coordinates": BuiltIn(
            "maskwise.builder.filters.apply_filters:COORDINATES",
            "The question contains coordinates, sizes in pixels or the number of a "
            "mark.",
        ),
        "category-leak": BuiltIn(
            "maskwise.builder.filters.apply_filters:CATEGORY_LEAK",
            "A reasoning question names a target, or the object it is a part of.",
        ),
        "answer-leak": BuiltIn(
            "maskwise.builder.filters.apply_filters:ANSWER_LEAK",
            "A reasoning question contains what the answer calls a target.",
        ),
        "logical-form": BuiltIn(
            "maskwise.builder.filters.apply_filters:LOGICAL_FORM",
            "Not exactly the targets fulfil the logical form of the question, or "
            "people would disagree about it.",
        ),
        "toxic-words": BuiltIn(
            "maskwise.builder.filters.apply_filters:TOXIC_WORDS",
            "The question or the answer contains an offensive word.",
        ),
        "near-duplicate": BuiltIn(
            "maskwise.builder.filters.apply_filters:NEAR_DUPLICATE",
            "Another question about the image has the same words, or similar ones for "
            "the same targets and mask type.",
        ),
        "blind-answer": BuiltIn(
            "maskwise.builder.filters.apply_filters:BLIND_ANSWER",
            "The writer named all targets of a reasoning question with certainty, "
            "from the question alone.",
        ),
    },
)
"""Objects of type `maskwise.builder.filters.Filter`, in the order of application."""


PROBES = Registry(
    "probe",
    {
        "output-bias": BuiltIn(
            "maskwise.probes.output_bias:OUTPUT_BIAS",
            "groups of questions that are served worse; one-sided mask types",
        ),
        "unrepresentative-data": BuiltIn(
            "maskwise.probes.unrepresentative_data:UNREPRESENTATIVE_DATA",
            "what the questions are about, beside a reference dataset",
        ),
        "data-bias": BuiltIn(
            "maskwise.probes.data_bias:DATA_BIAS",
            "what blind guesses get, and what occurs twice or elsewhere",
        ),
        "poor-model-accuracy": BuiltIn(
            "maskwise.probes.accuracy:POOR_MODEL_ACCURACY",
            "metrics against your thresholds, calibration, risk and coverage",
        ),
        "image-changes": BuiltIn(
            "maskwise.probes.image_changes:IMAGE_CHANGES",
            "15 common corruptions and crops at five severities",
        ),
        "word-changes": BuiltIn(
            "maskwise.probes.question_changes:WORD_CHANGES_PROBE",
            "typing errors, paraphrases, distractors, negation, other languages",
        ),
        "image-text": BuiltIn(
            "maskwise.probes.image_text:IMAGE_TEXT",
            "instructions written into the image, against harmless words",
        ),
        "attacks": BuiltIn(
            "maskwise.probes.attacks:ATTACKS",
            "changes inside a budget that a search or the gradient finds",
        ),
        "counterfactual-twins": BuiltIn(
            "maskwise.probes.counterfactuals:COUNTERFACTUAL_TWINS",
            "targets that are removed, replaced, covered or uncovered",
        ),
        "unsafe-content": BuiltIn(
            "maskwise.probes.unsafe_content:UNSAFE_CONTENT",
            "offensive or sensitive wording; images with people, faces and text",
        ),
        "unsafe-requests": BuiltIn(
            "maskwise.probes.unsafe_requests:UNSAFE_REQUESTS",
            "a fixed list of requests that a model should refuse",
        ),
        "demographic": BuiltIn(
            "maskwise.probes.demographic:DEMOGRAPHIC",
            "the same metrics by group of people, where a column names the groups",
        ),
    },
)
"""Objects of type `maskwise.probes.Probe`, in the order in which they run."""


TRAINERS = Registry(
    "trainer",
    {
        "tiny": BuiltIn(
            "maskwise.training.tiny.pipeline",
            "the bundled model: detector and grounder",
            extra="train",
        ),
        "completion": BuiltIn(
            "maskwise.training.completion.pipeline",
            "amodal completion of visible masks, for the model photo",
            extra="train",
        ),
        "vlm": BuiltIn(
            "maskwise.training.vlm.pipeline",
            "a vision-language model with mask decoders",
            extra="vlm",
        ),
    },
)
"""Modules or objects with the functions of `maskwise.training.trainers.Trainer`."""


WRITERS = Registry(
    "writer",
    {
        "anthropic": BuiltIn(
            "maskwise.writers.anthropic_client:AnthropicClient",
            "models of Anthropic; the key is ANTHROPIC_API_KEY (extra llm)",
            extra="llm",
        ),
        "openai": BuiltIn(
            "maskwise.writers.openai_client:OpenAIClient",
            "OpenAI, or with --base-url any endpoint of that kind (extra llm)",
            extra="llm",
        ),
    },
    other_forms=("grammar",),
)
"""Classes that implement `maskwise.writers.Client`. The grammar needs no client."""


JUDGES = Registry(
    "judge",
    {
        "offline": BuiltIn(
            "maskwise.judging.offline:judge_words",
            "words and masks against the truth: names, synonyms, kinds, plurals",
        ),
    },
    other_forms=("anthropic/MODEL", "openai/MODEL"),
)
"""Functions from a `maskwise.judging.AnswerCase` to a `maskwise.judging.Verdict`."""


TRACKERS = Registry(
    "tracker",
    {
        "tensorboard": BuiltIn(
            "maskwise.integrations.tensorboard_tracker:TensorBoardTracker",
            "TensorBoard events in the folder of the run",
            extra="track",
        ),
        "wandb": BuiltIn(
            "maskwise.integrations.wandb_tracker:WandbTracker",
            "Weights & Biases; WANDB_MODE=offline sends nothing",
            extra="track",
        ),
        "mlflow": BuiltIn(
            "maskwise.integrations.mlflow_tracker:MlflowTracker",
            "MLflow; MLFLOW_TRACKING_URI names a server, otherwise files are written",
            extra="track",
        ),
        "trackio": BuiltIn(
            "maskwise.integrations.trackio_tracker:TrackioTracker",
            "Trackio, in TRACKIO_DIR (pip install trackio; not beside our Pillow)",
        ),
    },
)
"""Classes with the methods of `maskwise.training.trackers.Tracker`, for `--track`."""


REGISTRIES = {
    f"{registry.kind}s": registry
    for registry in (
        BENCHMARKS,
        FORMATS,
        PROTOCOLS,
        MODELS,
        RECIPES,
        FILTERS,
        JUDGES,
        PROBES,
        TRAINERS,
        TRACKERS,
        WRITERS,
    )
}
"""All registries by the plural of their kind, in the order in which they are listed."""


def list_models() -> dict[str, str]:
    """The models that `load_model` knows by name, with a description of each."""
    return MODELS.list()


def list_benchmarks() -> dict[str, str]:
    """The published benchmarks that `read_dataset` converts, with title and official protocol."""
    return BENCHMARKS.list()


def list_formats() -> dict[str, str]:
    """The annotation formats that `read_dataset` converts, with the title of each."""
    return FORMATS.list()


def list_protocols() -> dict[str, str]:
    """The scoring rules, with a description of each."""
    return PROTOCOLS.list()

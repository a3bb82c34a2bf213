"""`maskwise score`: predictions against a dataset, under any number of protocols."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from maskwise.cli.hints import is_dataset, refuse_swapped
from maskwise.cli.options import (
    SEVERAL,
    AsJson,
    DatasetName,
    Engine,
    ProtocolNames,
    RayAddress,
    ShowAll,
    Workers,
    argument,
)
from maskwise.errors import ProtocolError
from maskwise.terminal import echo

Format = Literal["jsonl", "coco", "png", "npz"]


Predictions = Annotated[
    Path,
    argument("PREDICTIONS", "JSONL, COCO results (.json), .npz, or a folder of masks."),
]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="Also write a run folder for report and compare."),
]
LegacyFloat32 = Annotated[
    bool,
    typer.Option(
        "--legacy-float32",
        help="Running float32 sums, as the official code keeps them.",
    ),
]
ProtocolOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--protocol-option",
        metavar="PROTOCOL.NAME=VALUE",
        help=f"An option of a protocol, such as aura.unit=mask. {SEVERAL}",
    ),
]
PredictionFormat = Annotated[
    Format | None,
    typer.Option(help="Format of the predictions, if the name does not tell."),
]
MaskTypeOfMasks = Annotated[
    Literal["visible", "amodal"],
    typer.Option(help="Type of masks that do not say (all formats but jsonl)."),
]
MinScore = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="Drop COCO results below this score.")
]
ZeroInside = Annotated[
    bool,
    typer.Option(
        "--zero-inside", help="Logits of exactly 0 are inside, as GSVA cuts them."
    ),
]
TeacherForced = Annotated[
    bool,
    typer.Option(
        "--teacher-forced",
        help="The true answer was in the prompt (all formats but jsonl).",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=256,
        help="Number of threads.",
        show_default="one per core, at most 8",
    ),
]


Parts = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Score so many parts by themselves, for predictions larger than memory. The scores are the same; "
        "no report.",
        show_default="all at once; with --engine ray 50,000 questions each",
    ),
]


def score_predictions(
    predictions: Predictions,
    dataset: DatasetName,
    *,
    protocol: ProtocolNames = None,
    out: Out = None,
    as_json: AsJson = False,
    legacy_float32: LegacyFloat32 = False,
    protocol_option: ProtocolOptions = None,
    format: PredictionFormat = None,
    mask_type: MaskTypeOfMasks = "visible",
    min_score: MinScore = 0.0,
    zero_inside: ZeroInside = False,
    teacher_forced: TeacherForced = False,
    show_all: ShowAll = False,
    threads: Threads = None,
    parts: Parts = None,
    engine: Engine = "local",
    workers: Workers = None,
    ray_address: RayAddress = None,
) -> None:
    """Score predictions under the official protocols and the strict one, with intervals, in one pass.

    docs/reference/predictions.md describes the formats of predictions.

    Example: maskwise score run/predictions.jsonl mmr_val --protocol strict --protocol mmr
    """
    from maskwise.cli.output import print_json
    from maskwise.cli.score_table import print_scores
    from maskwise.engines import EngineOptions
    from maskwise.harness.score import score
    from maskwise.runs.files import REPORT

    refuse_swapped(
        "score",
        "PREDICTIONS DATASET",
        predictions,
        dataset,
        when=is_dataset(predictions) and not is_dataset(dataset),
    )
    options = _read_options(protocol_option or [], protocol, legacy_float32)
    run = score(
        predictions,
        dataset,
        out,
        protocols=protocol,
        options=options,
        format=format,
        mask_type=mask_type,
        min_score=min_score,
        zero_inside=zero_inside,
        teacher_forced=teacher_forced,
        threads=threads,
        parts=parts,
        engine=EngineOptions(engine=engine, workers=workers, ray_address=ray_address)
        if parts is not None or engine != "local"
        else None,
        progress=not as_json,
    )
    if as_json:
        print_json(run.scores)
    else:
        print_scores(run, all_protocols=protocol is not None, show_all=show_all)
        if out is not None:
            has_report = (out / REPORT).exists()
            hint = f"; open {out / REPORT} in a browser." if has_report else "."
            echo(f"Written to {out}{hint}")


def _read_options(
    given: list[str], protocols: list[str] | None, legacy_float32: bool
) -> dict[str, dict[str, Any]]:
    """Options by protocol."""
    from maskwise.protocols import find_protocol
    from maskwise.registry import DEFAULT_PROTOCOLS

    rules = [find_protocol(rule) for rule in protocols or DEFAULT_PROTOCOLS]
    options: dict[str, dict[str, Any]] = {rule.name: {} for rule in rules}
    for rule in rules:
        if legacy_float32 and "legacy_float32" in rule.options:
            options[rule.name]["legacy_float32"] = True
    for text in given:
        left, _, value = text.partition("=")
        protocol, _, key = left.partition(".")
        if not key or not value:
            raise ProtocolError(
                f"--protocol-option {text!r}: expected PROTOCOL.OPTION=VALUE, for example aura.unit=mask"
            )
        if protocol not in options:
            protocol = find_protocol(protocol).name
        options.setdefault(protocol, {})[key] = value
    return options

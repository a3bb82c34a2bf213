"""`maskwise publish`: a run as results of the Hugging Face hub and as Every Eval Ever JSON."""

from typing import Annotated, Literal

import typer

from maskwise.cli.options import AsJson, RunFolder
from maskwise.errors import ReleaseError
from maskwise.terminal import echo


def publish(
    run: RunFolder,
    *,
    to: Annotated[
        str,
        typer.Option(
            help="A folder, or hf:OWNER/NAME, a model on the hub, which gets a pull request."
        ),
    ],
    dataset_id: Annotated[
        str,
        typer.Option("--dataset-id", help="The dataset on the hub, as OWNER/NAME."),
    ],
    model_id: Annotated[
        str | None,
        typer.Option(
            "--model-id",
            help="The model, as OWNER/NAME.",
            show_default="that of --to hf:OWNER/NAME",
        ),
    ] = None,
    organization: Annotated[
        str, typer.Option(help="Who made the evaluation.")
    ] = "unknown",
    relationship: Annotated[
        Literal["first_party", "third_party", "collaborative", "other"],
        typer.Option(help="Of the evaluator to the model."),
    ] = "other",
    as_json: AsJson = False,
) -> None:
    """Publish the results of a run: for the Hugging Face hub, the model card, and as Every Eval Ever JSON.

    gIoU and cIoU of every protocol, with intervals and counts of failures (docs/guides/integrations.md).

    Example: maskwise publish runs/mine --to my_model --dataset-id lab/kitchen --model-id lab/mine
    """
    from maskwise.cli.output import print_json
    from maskwise.integrations.published_results import HUB, Publication
    from maskwise.integrations.published_results import publish as publish_run
    from maskwise.runs import load_run

    model = to.removeprefix(HUB) if to.startswith(HUB) else None
    if model_id is None and model is None:
        raise ReleaseError("name the model: --model-id OWNER/NAME")
    publication = Publication(
        dataset_id=dataset_id,
        model_id=str(model_id or model),
        organization=organization,
        relationship=relationship,
    )
    places = publish_run(load_run(run), to, publication)
    if as_json:
        print_json({"published": places})
        return
    for place in places:
        echo(place)

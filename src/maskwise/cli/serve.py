"""`maskwise serve`: a model behind HTTP."""

from typing import Annotated

import typer

from maskwise.errors import MaskwiseError
from maskwise.harness.predictor import Predictor, describe_model
from maskwise.harness.registry import load_model, parse_options


def serve(
    *,
    model: Annotated[
        str,
        typer.Option(
            help="A name (`maskwise ls models`), package.module:factory, 'command: ...' or http://..."
        ),
    ] = "tiny",
    host: Annotated[str, typer.Option(help="Where to listen; beyond this machine a token is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MASKWISE_TOKEN",
            help="Requests have to carry it. Others on this machine can read an option, so better set the variable.",
            show_default=False,
        ),
    ] = None,
    model_option: Annotated[
        list[str] | None,
        typer.Option("--model-option", help="KEY=VALUE for the model. May be given several times."),
    ] = None,
) -> None:
    """Offer a model over HTTP: POST /v1/predict, GET /healthz, documents at /docs.

    docs/adapters.md describes requests and responses; `--model http://...` is the client.

    Example: maskwise serve --model tiny --port 8000
    """
    try:
        from maskwise.server import app  # noqa: PLC0415
    except ImportError as error:
        raise MaskwiseError(
            f"maskwise serve needs {error.name}, which the extra brings: pip install 'maskwise[web]'"
        ) from None
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise MaskwiseError("the token has to be of printable ASCII characters, without spaces around it")
    options = parse_options(model_option or [])
    opened = load_model(model, **options)
    if not isinstance(opened, Predictor):
        raise MaskwiseError(f"model {model!r} needs the ground truth, which requests do not contain")
    facts = describe_model(opened, model, options)
    service = app.Service(opened, facts, token, app.Limits())
    try:
        listening = app.listen(service, host, port)
        where = listening.address
        typer.echo(f"{facts.name} at {where} (documents at {where}/docs, Ctrl-C ends it)", err=True)
        listening.run()
    finally:
        service.close()

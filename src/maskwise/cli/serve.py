"""`maskwise serve`: a model behind HTTP."""

from typing import Annotated

import typer

from maskwise.errors import MaskwiseError
from maskwise.harness.registry import parse_options
from maskwise.terminal import echo


def serve(
    *,
    model: Annotated[
        str,
        typer.Option(
            help="A name (`maskwise ls models`), package.module:factory, 'command: ...' or http://..."
        ),
    ] = "tiny",
    host: Annotated[
        str, typer.Option(help="Address to listen on; other machines can reach it only with a token.")
    ] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MASKWISE_TOKEN",
            help="Required from every request. Other users of this machine can read options; prefer the variable.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, help="Seconds a question may take; then the model is restarted.")
    ] = 120.0,
    model_option: Annotated[
        list[str] | None,
        typer.Option("--model-option", help="KEY=VALUE for the model. Can be given several times."),
    ] = None,
) -> None:
    """Serve a model over HTTP: POST /v1/predict, GET /healthz, documents at /docs.

    The model runs in a process of its own. docs/adapters.md describes requests and responses; `--model http://...` is
    the client.

    Example: maskwise serve --model tiny --port 8000
    """
    try:
        from maskwise.server.http_server import open_server  # noqa: PLC0415
        from maskwise.server.model_process import ModelProcess  # noqa: PLC0415
        from maskwise.server.service import PredictionService, RequestLimits  # noqa: PLC0415
    except ImportError as error:
        raise MaskwiseError(
            f"maskwise serve needs {error.name}, which the extra brings: pip install 'maskwise[web]'"
        ) from None
    if token is not None and not (token.isascii() and token.isprintable() and token.strip() == token != ""):
        raise MaskwiseError("the token must consist of printable ASCII characters, without spaces around it")
    limits = RequestLimits()
    process = ModelProcess(
        model, parse_options(model_option or []), max_pixels=limits.pixels, timeout=timeout
    )
    service = PredictionService(process, token, limits)
    try:
        server = open_server(service, host, port)
        where = server.address
        echo(f"{process.facts.name} at {where} (documents at {where}/docs, Ctrl-C ends it)", err=True)
        server.run()
    finally:
        service.close()

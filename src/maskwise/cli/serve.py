"""`maskwise serve`: a model behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import ModelOptions, ModelSpec
from maskwise.errors import MaskwiseError
from maskwise.harness.registry import parse_options
from maskwise.terminal import echo


def serve(
    *,
    model: ModelSpec = "tiny",
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; other machines can reach it only with a token."
        ),
    ] = ("127.0.0.1"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="MASKWISE_TOKEN",
            help="Required from every request. Other users of this machine can read options; prefer the variable.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            min=0.001, help="Seconds a question may take; then the model is restarted."
        ),
    ] = 120.0,
    dataset: Annotated[
        list[Path] | None,
        typer.Option(
            help="A dataset folder to browse, or `world`. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help="A run folder to browse beside its dataset. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A name by which requests may call this server. Can be given several times.",
            show_default=False,
        ),
    ] = None,
    model_option: ModelOptions = None,
) -> None:
    """Serve a page to ask questions about images, a page to browse datasets and runs, and the model over HTTP.

    The page is at /. POST /v1/predict and the other routes are described at /docs, in docs/adapters.md and in
    docs/web.md; `--model http://...` is the client. The model runs in a process of its own.

    Example: maskwise serve --model tiny --dataset world --run runs/world-tiny
    """
    try:
        from maskwise.server.serve import ServeConfig, serve_model
    except ImportError as error:
        raise MaskwiseError(
            f"maskwise serve needs {error.name}, which the extra brings: pip install 'maskwise[web]'"
        ) from None
    if token is not None and not (
        token.isascii() and token.isprintable() and token.strip() == token != ""
    ):
        raise MaskwiseError(
            "the token must consist of printable ASCII characters, without spaces around it"
        )
    config = ServeConfig(
        model=model,
        options=parse_options(model_option or []),
        host=host,
        port=port,
        token=token,
        timeout=timeout,
        datasets=tuple(dataset or ()),
        runs=tuple(run or ()),
        allowed_hosts=tuple(allow_host or ()),
    )
    serve_model(config, lambda name, where: echo(_describe(name, where), err=True))


def _describe(name: str, where: str) -> str:
    return f"{name} at {where} (page to ask and browse; documents at {where}/docs, Ctrl-C ends it)"

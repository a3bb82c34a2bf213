"""`maskwise serve`: a model behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import (
    SEVERAL,
    AllowedHosts,
    ModelOptions,
    ModelSpec,
    argument,
)
from maskwise.errors import MaskwiseError, MissingDependencyError
from maskwise.terminal import echo


def serve(
    datasets: Annotated[
        list[Path] | None,
        argument("[DATASET]...", "Dataset folders to browse, or `world`."),
    ] = None,
    *,
    model: ModelSpec = "tiny",
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; other machines can reach it only with a token."
        ),
    ] = "127.0.0.1",
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
    run: Annotated[
        list[Path] | None,
        typer.Option(
            help=f"A run folder to browse beside its dataset. {SEVERAL}",
            show_default=False,
        ),
    ] = None,
    allow_host: AllowedHosts = None,
    model_option: ModelOptions = None,
) -> None:
    """Serve a page to ask questions about images, a page to browse datasets and runs, and the model over HTTP.

    The page is at /. POST /v1/predict and the other routes are described at /docs, in
    docs/guides/model_exchange.md and in docs/guides/web.md; `--model http://...` is the client.
    The model runs in a process of its own.

    Example: maskwise serve world --model tiny --run runs/world-tiny
    """
    from maskwise.harness.registry import parse_options

    try:
        from maskwise.server.serve import ServeConfig, serve_model
    except ImportError as error:
        raise MissingDependencyError(
            "maskwise serve", str(error.name), extra="web"
        ) from None
    if token is not None and not _is_token(token):
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
        datasets=tuple(datasets or ()),
        runs=tuple(run or ()),
        allowed_hosts=tuple(allow_host or ()),
    )
    serve_model(config, lambda name, where: echo(_describe(name, where), err=True))


def _is_token(text: str) -> bool:
    """Whether a text can be sent in an HTTP header as it is."""
    has_spaces_around = text.strip() != text
    return (
        text != "" and text.isascii() and text.isprintable() and not has_spaces_around
    )


def _describe(name: str, where: str) -> str:
    return f"{name} at {where} (page to ask and browse; documents at {where}/docs, Ctrl-C ends it)"

"""`maskwise verify`: check that a release is intact, and who signed it."""

from pathlib import Path
from typing import Annotated

import typer

from maskwise.cli.options import AsJson, argument
from maskwise.terminal import echo


def verify(
    release: Annotated[Path, argument("RELEASE", "The folder of a release.")],
    *,
    digest: Annotated[
        str | None,
        typer.Option(
            help="The digest that its authors published; any other is an error.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(
            help="The public SSH key (ed25519) of its authors; the release must have a signature by it.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release: every file by its checksum, the manifest, the Croissant metadata, and that all data can be read.

    Prints a digest for its authors to publish. Exit code 2, and what is wrong, for a release that is not intact.

    Example: maskwise verify my_data-1.0.0 --key author.pub
    """
    from maskwise.builder.release.verify import verify_release
    from maskwise.cli.output import print_json
    from maskwise.console import make_console

    with make_console(stderr=True).status("verifying"):
        verified = verify_release(release, digest=digest, key=key)
    if as_json:
        print_json(verified)
        return
    echo(
        f"{release} is intact: {verified.name} {verified.version}, {verified.files} files, {verified.images:,} images, "
        f"{verified.questions:,} questions"
    )
    echo(f"digest {verified.digest}")
    if verified.signed:
        echo(f"signed by {key}")

"""The child process of `browser_copies`: an image on standard input, the same image for browsers on standard output.

`python -m maskwise.server.convert_image PIXELS SECONDS BYTES`. PIXELS: the most that are decoded. SECONDS of CPU time
and BYTES of memory, beyond what the interpreter has, that the kernel grants this process. Exit code 3: the image cannot
be read, and the standard output says why.
"""

import contextlib
import resource
import sys
from pathlib import Path

from maskwise.errors import ImageError
from maskwise.images import open_image
from maskwise.server.browser_images import encode_image

INVALID_IMAGE = 3
"""Exit code. Python itself ends with 1 and 2."""


def main() -> int:
    """Convert one image."""
    max_pixels, seconds, memory = (int(argument) for argument in sys.argv[1:4])
    _limit_resources(seconds, memory)
    data = sys.stdin.buffer.read()
    try:
        content, _ = encode_image(open_image(data, max_pixels=max_pixels))
    except ImageError as error:
        sys.stdout.buffer.write(str(error).encode(errors="replace"))
        return INVALID_IMAGE
    sys.stdout.buffer.write(content)
    return 0


def _limit_resources(seconds: int, memory: int) -> None:
    """Let the kernel end this process, also where the server that would do it was killed."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with contextlib.suppress(OSError, ValueError):
        # Address space, because Linux does not limit what is resident. Only Linux has this file.
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())

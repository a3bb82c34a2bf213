"""Run one probe."""

from maskwise.probes.run_probes import probe
from maskwise.runs.probe_results import ProbeResult
from maskwise.store import Dataset


def run(name: str, model: object, data: Dataset, **options: object) -> ProbeResult:
    """The result of one probe."""
    results = probe(model, data, probes=name, progress=False, **options)
    return results.results[0]

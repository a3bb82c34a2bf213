"""Results of risk probes for the card of a dataset: read, and checked to be about that dataset."""

from collections.abc import Sequence
from pathlib import Path

from maskwise.benchmarks import RiskTest
from maskwise.errors import ReleaseError
from maskwise.runs.files import hash_path
from maskwise.runs.probe_results import ProbesFile, read_probes
from maskwise.store import Dataset
from maskwise.store.folder import MANIFEST


def read_risk_tests(
    folders: Sequence[Path], dataset: Dataset | None = None, *, reader: str = ""
) -> list[RiskTest]:
    """The results in folders of `maskwise probe`, for the card of a dataset or of a benchmark.

    They have to be about that dataset as it is now, or about one that was read as `reader`;
    ReleaseError names a folder that is about something else: a card must not borrow its tests.
    """
    tests = []
    for folder in folders:
        probes = read_probes(folder)
        if dataset is not None:
            manifest_hash = hash_path(dataset.path / MANIFEST)
            if probes.dataset_sha256 != manifest_hash:
                raise ReleaseError(
                    f"{folder} probed {probes.dataset_path}, which is not {dataset.path} as it is "
                    "now; probe the dataset again"
                )
        elif probes.dataset_format != reader:
            raise ReleaseError(
                f"{folder} probed {probes.dataset}, which was not read from {reader}, so it says "
                f"nothing about {reader}; name its own dataset: {probes.dataset_path}"
            )
        tests += to_risk_tests(probes)
    return tests


def to_risk_tests(probes: ProbesFile) -> list[RiskTest]:
    """One entry per probe and risk."""
    return [
        RiskTest(
            risk=risk,
            probe=result.name,
            severity=result.severity,
            finding=result.finding,
            dataset=probes.dataset,
            model=probes.model or "",
            questions=probes.samples,
            date=probes.date,
            maskwise=probes.maskwise,
            command=probes.command,
        )
        for result in probes.results
        for risk in result.risks
    ]

"""What an audit says: doubts about samples, and the samples ranked by them; the content of audit.json."""

from pathlib import Path

import msgspec

from maskwise.errors import StoreError

FORMAT = "maskwise audit 1"

MAX_BYTES = 2**28
"""The largest audit.json that is read: some 1,000 bytes for each of 200,000 samples."""

CHECKS = {
    "outside": "visible pixels outside the amodal mask",
    "sliver": "specks beside the mask, or a mask as thin as a line",
    "empty": "an empty or tiny mask of the requested type",
    "duplicate": "the same question about the same image again",
    "contradiction": "the same question about the same image with another truth",
    "mask_type": "the words ask for the other mask type",
    "names": "the answer does not name its targets",
    "runs_agree": "runs agree with each other, and not with the truth",
    "boundary": "runs agree on another boundary",
}
"""By name, with what each means."""


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """Why a sample is doubtful. strength: 0 to 1, before the check is weighted."""

    check: str
    strength: float
    message: str


class DoubtfulSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample with its doubts, the strongest first. strength: of all together, 0 to 1."""

    sample: str
    image: str
    question: str
    strength: float
    doubts: list[Doubt]


class CheckSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples a check doubts, and the weight of its doubts."""

    samples: int
    weight: float


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """The doubtful samples of a dataset, the most doubtful first.

    runs: those that were asked. answered: samples that all of them answered; None without runs.
    """

    format: str
    dataset: str
    samples: int
    runs: list[str]
    checks: dict[str, CheckSummary]
    doubtful: list[DoubtfulSample]
    answered: int | None = None

    def __repr__(self) -> str:
        return f"Audit({self.dataset!r}: {len(self.doubtful)} of {self.samples} samples are doubtful)"

    @property
    def coverage(self) -> str:
        """Which samples the runs could doubt, as a sentence; empty without runs."""
        if self.answered is None:
            return ""
        return f"{len(self.runs)} runs were asked; all of them answered {self.answered} of {self.samples} samples."


def read_audit(path: Path) -> Audit:
    """Read audit.json; StoreError if it is none."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise StoreError(f"{path} is larger than {MAX_BYTES} bytes: not an audit")
        audit = msgspec.json.decode(path.read_bytes(), type=Audit)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StoreError(
            f"{path} is not an audit: {error}; make one: maskwise audit DATASET --out audit.json"
        ) from None
    if audit.format != FORMAT:
        raise StoreError(
            f"{path} has format {audit.format!r}, expected {FORMAT!r}; audit again"
        )
    return audit

"""ONNX files that `maskwise get` makes from checkpoints of other authors."""

from pathlib import Path

from maskwise.training.clip import weights_export as clip
from maskwise.training.mobile_sam import weights_export as mobile_sam


def export_weights(name: str, checkpoint: Path, path: Path) -> None:
    """Write the ONNX file of a name, of CLIP or of MobileSAM; DownloadError if it is not the expected checkpoint."""
    if name in (clip.IMAGE_FILE, clip.TEXT_FILE):
        clip.export_file(name, checkpoint, path)
    else:
        mobile_sam.export_file(name, checkpoint, path)

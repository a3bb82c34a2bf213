"""The pretrained networks that the model for photographs uses, opened from verified files."""

from maskwise.downloads import find_weights
from maskwise.models.photo.detector import YoloxDetector
from maskwise.models.photo.proposals import ProposalNetworks
from maskwise.models.photo.saliency import SaliencyNetwork
from maskwise.models.photo.sam import MobileSam


def load_sam(*, threads: int | None = None) -> MobileSam:
    """MobileSAM; DownloadError says what to run if its files are missing."""
    encoder, decoder = find_weights("mobile_sam_encoder.onnx"), find_weights("mobile_sam_decoder.onnx")
    return MobileSam(encoder, decoder, threads=threads)


def load_networks(*, threads: int | None = None) -> ProposalNetworks:
    """All networks that find proposals."""
    return ProposalNetworks(
        load_sam(threads=threads),
        YoloxDetector(find_weights("yolox_nano.onnx"), threads=threads),
        SaliencyNetwork(find_weights("u2netp.onnx"), threads=threads),
    )

"""The pretrained networks that the model for photographs uses, opened from verified files."""

from maskwise.downloads.local_files import find_all_weights
from maskwise.models.photo.clip import Clip
from maskwise.models.photo.detector import YoloxDetector
from maskwise.models.photo.proposals import ProposalNetworks
from maskwise.models.photo.saliency import SaliencyNetwork
from maskwise.models.photo.sam import MobileSam

SAM_FILES = ("mobile_sam_encoder.onnx", "mobile_sam_decoder.onnx")
OTHER_FILES = ("yolox_nano.onnx", "u2netp.onnx")
CLIP_FILES = ("clip_image.onnx", "clip_text.onnx", "bpe_simple_vocab_16e6.txt.gz")


def load_sam(*, threads: int | None = None) -> MobileSam:
    """MobileSAM; DownloadError says what to run if its files are missing."""
    return MobileSam(*find_all_weights(SAM_FILES), threads=threads)


def load_networks(*, threads: int | None = None) -> ProposalNetworks:
    """All networks that find proposals; DownloadError says what to run for each file that is missing."""
    encoder, decoder, yolox, u2net = find_all_weights(SAM_FILES + OTHER_FILES)
    return ProposalNetworks(
        MobileSam(encoder, decoder, threads=threads),
        YoloxDetector(yolox, threads=threads),
        SaliencyNetwork(u2net, threads=threads),
    )


def load_clip(*, threads: int | None = None) -> Clip:
    """CLIP, for labels of proposals; DownloadError says what to run for each file that is missing."""
    return Clip(*find_all_weights(CLIP_FILES), threads=threads)

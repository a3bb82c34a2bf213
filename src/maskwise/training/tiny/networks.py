"""The networks put together for training, reloaded from files, and in the form that inference uses."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from maskwise.arrays import Float32Array, Int64Array
from maskwise.errors import MaskwiseError
from maskwise.models.tiny.features import ObjectFeatures
from maskwise.models.tiny.networks import NETWORKS, DetectorMaps, RoIPredictions
from maskwise.training.tiny.detector import Detector, DetectorOutput
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.roi_head import RoIHead, RoIOutput


class TwoStageDetector(nn.Module):
    """The detector and its RoI head, trained together."""

    def __init__(self) -> None:
        super().__init__()
        self.detector = Detector()
        self.roi_head = RoIHead()

    def forward(
        self, images: Tensor, boxes: Sequence[Tensor]
    ) -> tuple[DetectorOutput, RoIOutput]:
        """images: [b, 3, s, s]; boxes: for each image [n, 4] as fractions of the image, n at least 1."""
        maps = self.detector(images)
        return maps, self.roi_head(maps.fine, maps.coarse, boxes)


class TorchNetworks:
    """The networks in torch, as `Tiny` uses them."""

    def __init__(self, detector: TwoStageDetector, grounder: Grounder) -> None:
        self.detector = detector.eval()
        self.grounder = grounder.eval()

    @torch.inference_mode()
    def detect(self, image: Float32Array) -> DetectorMaps:
        """See maskwise.models.tiny.networks.Networks."""
        maps = self.detector.detector(self._to_device(image))
        outputs = (maps.fine, maps.coarse, maps.heatmap.sigmoid(), maps.box)
        return DetectorMaps(*(tensor.cpu().numpy() for tensor in outputs))

    @torch.inference_mode()
    def predict_rois(
        self, fine: Float32Array, coarse: Float32Array, boxes: Float32Array
    ) -> RoIPredictions:
        """See maskwise.models.tiny.networks.Networks."""
        inputs = (
            self._to_device(fine),
            self._to_device(coarse),
            [self._to_device(boxes)],
        )
        return RoIPredictions(
            *(tensor.cpu().numpy() for tensor in self.detector.roi_head(*inputs))
        )

    @torch.inference_mode()
    def ground(self, tokens: Int64Array, features: ObjectFeatures) -> Float32Array:
        """See maskwise.models.tiny.networks.Networks."""
        device = self.grounder.position_embedding.device
        unary, pairwise = (
            torch.from_numpy(array).to(device)[None].expand(len(tokens), *array.shape)
            for array in features
        )
        padding_mask = torch.zeros(unary.shape[:2], device=device)
        logits: Tensor = self.grounder(
            torch.from_numpy(tokens).to(device), unary, pairwise, padding_mask
        )
        scores: Float32Array = logits.cpu().numpy()
        return scores

    def _to_device(self, array: Float32Array) -> Tensor:
        return torch.from_numpy(array).to(next(self.detector.parameters()).device)


def load_onnx(folder: Path) -> tuple[TwoStageDetector, Grounder]:
    """The networks with the weights of detector.onnx, roi_head.onnx and grounder.onnx.

    Batch normalisation stays folded into the convolutions. The classifier of cells, which only training uses, is not in
    the files and starts with zeros.
    """
    weights: dict[str, Tensor] = {}
    for name in NETWORKS:
        path = folder / f"{name}.onnx"
        if not path.exists():
            raise MaskwiseError(
                f"{folder} lacks {path.name}; expected a folder with {', '.join(NETWORKS)}.onnx"
            )
        for tensor in onnx.load(path).graph.initializer:
            weights[tensor.name] = torch.from_numpy(
                numpy_helper.to_array(tensor).astype(np.float32)
            )
    detector = TwoStageDetector()
    fuse_batch_norm(detector)
    for name, parameter in detector.detector.cell_classifier.named_parameters():
        weights[f"detector.cell_classifier.{name}"] = torch.zeros_like(parameter)
    grounder = Grounder()
    prefixed = nn.ModuleDict(
        {
            "detector": detector.detector,
            "roi_head": detector.roi_head,
            "grounder": grounder,
        }
    )
    try:
        prefixed.load_state_dict(weights)
    except RuntimeError as error:
        raise MaskwiseError(
            f"{folder} does not hold the weights of this model: {error}"
        ) from None
    return detector.eval(), grounder.eval()


def fuse_batch_norm(network: nn.Module) -> None:
    """Fold every batch normalisation into the convolution before it; outputs in evaluation mode stay the same."""
    for module in network.modules():
        if isinstance(module, nn.Sequential) and len(module) > 1:
            convolution = module[0]
            norm = module[1]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                module[0] = fuse_conv_bn_eval(convolution.eval(), norm.eval())
                module[1] = nn.Identity()

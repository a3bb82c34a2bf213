"""The networks put together for training, reloaded from files, and in the form that inference uses."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

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
from maskwise.models.tiny.spec import BOX_MARGIN, STRIDE
from maskwise.training.tiny.detector import Detector, DetectorOutput
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.mask_head import MaskHead, move_masks, others_visible
from maskwise.training.tiny.roi_head import RoIHead, RoIOutput
from maskwise.training.tiny.targets import DetectorBatch, RoISources, sample_masks

MIN_VARIANCE = 1e-8
"""Of a channel of a convolution, to divide by its root: rounding makes a constant one slightly negative."""


class TwoStageOutput(NamedTuple):
    """maps: of the detector. boxes: [k, 4], those that the RoI head saw, one row per RoI. rois: of the RoI head. masks:
    of the mask head, inside rois.boxes.
    """

    maps: DetectorOutput
    boxes: Tensor
    rois: RoIOutput
    masks: Tensor


class TwoStageDetector(nn.Module):
    """The detector, its RoI head and its mask head, trained together."""

    def __init__(self) -> None:
        super().__init__()
        self.detector = Detector()
        self.roi_head = RoIHead()
        self.mask_head = MaskHead()

    def forward(
        self, images: Tensor, sources: RoISources, roi_masks: Tensor
    ) -> TwoStageOutput:
        """images: [b, 3, s, s]. roi_masks: [k, 3, s, s], as in DetectorBatch: what is visible of other objects is the
        ground truth, because training computes the masks of a few objects per image only.
        """
        maps = self.detector(images)
        boxes = self._choose_boxes(maps.box.detach(), sources)
        rois = self.roi_head(maps.fine, maps.coarse, list(boxes))
        flat_boxes = boxes.flatten(0, 1)
        # Each stage is trained for the boxes and masks that it gets, and does not change them.
        new_boxes = rois.boxes.detach()
        own_masks = rois.masks[:, :2].detach().sigmoid()
        own_masks = move_masks(own_masks, flat_boxes, new_boxes)
        others = sample_masks(roi_masks[:, 2:], new_boxes, own_masks.shape[2])
        masks = self.mask_head(
            images,
            maps.fine,
            maps.coarse,
            boxes=list(new_boxes.reshape(boxes.shape)),
            given_masks=torch.cat([own_masks, others.to(own_masks.dtype)], 1),
            attributes=attribute_probabilities(rois).detach(),
        )
        return TwoStageOutput(maps, flat_boxes, rois, masks)

    def refine(
        self,
        image: Tensor,
        fine: Tensor,
        coarse: Tensor,
        *,
        boxes: Tensor,
        rois: RoIOutput,
    ) -> Tensor:
        """The mask head for all objects of one image. boxes: [k, 4], those that the RoI head saw."""
        first_masks = rois.masks[:, :2].sigmoid()
        own_masks = move_masks(first_masks, boxes, rois.boxes)
        others = others_visible(first_masks[:, :1], boxes, rois.boxes)
        masks: Tensor = self.mask_head(
            image,
            fine,
            coarse,
            boxes=[rois.boxes],
            given_masks=torch.cat([own_masks, others], 1),
            attributes=attribute_probabilities(rois),
        )
        return masks

    def _choose_boxes(self, distances: Tensor, sources: RoISources) -> Tensor:
        """[b, n, 4]: the boxes of the sources, or those predicted in their cells. distances: [b, 4, c, c] in pixels."""
        side = distances.shape[2] * STRIDE
        numbers = torch.arange(len(distances), device=distances.device)[:, None]
        rows, columns = sources.cells.unbind(2)
        predicted = distances[numbers, :, rows, columns]
        centers = (sources.cells[:, :, [1, 0, 1, 0]] + 0.5) * STRIDE
        outwards = predicted.new_tensor([-1, -1, 1, 1])
        detected = (centers + outwards * predicted).clamp(0, side) / side
        sizes = detected[:, :, 2:] - detected[:, :, :2]
        detected = detected + BOX_MARGIN * outwards * torch.cat([sizes, sizes], 2)
        return torch.where(sources.detected[:, :, None], detected, sources.boxes)


def attribute_probabilities(rois: RoIOutput) -> Tensor:
    """[k, sum(ATTRIBUTE_SIZES)]."""
    logits = (rois.category, rois.color, rois.material)
    return torch.cat([attribute.softmax(1) for attribute in logits], 1)


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
        return DetectorMaps(*(_to_numpy(tensor) for tensor in outputs))

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
            *(_to_numpy(tensor) for tensor in self.detector.roi_head(*inputs))
        )

    @torch.inference_mode()
    def predict_masks(
        self,
        image: Float32Array,
        fine: Float32Array,
        coarse: Float32Array,
        *,
        boxes: Float32Array,
        rois: RoIPredictions,
    ) -> Float32Array:
        """See maskwise.models.tiny.networks.Networks."""
        return _to_numpy(
            self.detector.refine(
                self._to_device(image),
                self._to_device(fine),
                self._to_device(coarse),
                boxes=self._to_device(boxes),
                rois=RoIOutput(*(self._to_device(array) for array in rois)),
            )
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
        return _to_numpy(logits)

    def _to_device(self, array: Float32Array) -> Tensor:
        return torch.from_numpy(array).to(next(self.detector.parameters()).device)


def _to_numpy(tensor: Tensor) -> Float32Array:
    """Numpy has no bfloat16, which networks return that are validated in mixed precision."""
    array: Float32Array = tensor.float().cpu().numpy()
    return array


def load_onnx(folder: Path) -> tuple[TwoStageDetector, Grounder]:
    """The networks with the weights of detector.onnx, roi_head.onnx, mask_head.onnx and grounder.onnx.

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
            "mask_head": detector.mask_head,
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
    for _, block, convolution, norm in _normalized(network):
        block[0] = fuse_conv_bn_eval(convolution.eval(), norm.eval())
        block[1] = nn.Identity()


def restore_batch_norm(
    folded: TwoStageDetector, batches: Iterable[DetectorBatch]
) -> TwoStageDetector:
    """The reverse of `fuse_batch_norm`, with the means and variances of these batches.

    Outputs in evaluation mode stay the same; in training, batches are normalised again.
    """
    network = TwoStageDetector()
    sources = dict(folded.named_modules())
    moments: dict[str, list[Tensor]] = {}
    hooks = []
    for name, *_ in _normalized(network):

        def record(
            convolution: nn.Conv2d, _: object, output: Tensor, name: str = name
        ) -> None:
            assert convolution.bias is not None
            values = output - convolution.bias[:, None, None]
            means = [values.mean((0, 2, 3)), values.square().mean((0, 2, 3))]
            moments.setdefault(name, []).append(torch.stack(means))

        hooks.append(sources[f"{name}.0"].register_forward_hook(record))
    folded.eval()
    with torch.inference_mode():
        for batch in batches:
            folded(batch.images, batch.rois, batch.roi_masks)
    for hook in hooks:
        hook.remove()
    # Layers without batch normalisation and all convolutions as they are; biases of the latter go to the normalisation.
    missing, unexpected = network.load_state_dict(folded.state_dict(), strict=False)
    blocks = [name for name, *_ in _normalized(network)]
    assert set(unexpected) == {f"{name}.0.bias" for name in blocks}
    assert {key.rsplit(".", 1)[0] for key in missing} == {
        f"{name}.1" for name in blocks
    }
    for name, _, _, norm in _normalized(network):
        mean, square = torch.stack(moments[name]).mean(0)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        variance = (square - mean**2).clamp(min=MIN_VARIANCE)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        with torch.no_grad():
            norm.weight.copy_((variance + norm.eps).sqrt())
            norm.bias.copy_(folded.get_parameter(f"{name}.0.bias") + mean)
    return network


def _normalized(
    network: nn.Module,
) -> list[tuple[str, nn.Sequential, nn.Conv2d, nn.BatchNorm2d]]:
    """The blocks that begin with a convolution and its batch normalisation: name, block, and these two."""
    blocks = []
    for name, block in network.named_modules():
        if isinstance(block, nn.Sequential) and len(block) > 1:
            convolution = block[0]
            norm = block[1]
            if isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d):
                blocks.append((name, block, convolution, norm))
    return blocks

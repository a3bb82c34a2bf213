"""Out-of-domain detection: is an image like those that the model was trained on?

The mean and the standard deviation of every channel of the detector's coarse feature map are compared with those of
training images by their Mahalanobis distance (Lee et al. 2018, "A Simple Unified Framework for Detecting
Out-of-Distribution Samples"). docs/results/model.md has the measured error rates.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float32Array
from maskwise.models.tiny.networks import DetectorMaps

WARNING = (
    "this image is unlike the images that the model was trained on, so its answers are unreliable; "
    "the bundled model knows rendered scenes only, bring a model for photographs (docs/guides/adapters.md)"
)


class Domain(NamedTuple):
    """One Gaussian for each of c groups of training images. mean: float32 [c, d]. whitening: float32 [c, d, d], so that
    (features - mean) @ whitening has unit covariance. threshold: the largest distance of an image inside the domain.
    """

    mean: Float32Array
    whitening: Float32Array
    threshold: float

    def distance(self, features: Float32Array) -> float:
        """The Mahalanobis distance of features [d] from the nearest group of training images."""
        offsets = np.einsum("cd,cde->ce", features - self.mean, self.whitening)
        return float(np.linalg.norm(offsets, axis=1).min())


def domain_features(maps: DetectorMaps) -> Float32Array:
    """float32 [2 * COARSE_CHANNELS]: mean and standard deviation of each channel."""
    # In float64: sums over many cells in float32 lose digits.
    channels = maps.coarse[0].reshape(maps.coarse.shape[1], -1).astype(np.float64)
    return np.concatenate([channels.mean(1), channels.std(1)]).astype(np.float32)


def read_domain(path: Path) -> Domain | None:
    """The domain of a model; None if there is no file, as for a model that you trained yourself."""
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as stored:
        mean = stored["mean"]
        whitening = stored["whitening"].astype(np.float32)
        return Domain(mean, whitening, float(stored["threshold"]))

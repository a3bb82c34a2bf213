"""Fitting the out-of-domain detector to the features of training images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from maskwise.arrays import Float32Array, Float64Array
from maskwise.models.tiny.domain import Domain
from maskwise.store.atomic import atomic_write

SHRINKAGE = 0.05
"""Weight of the identity in the covariance of the standardised features."""


def fit_domain(
    training: Sequence[Float32Array], held_out: Float32Array, false_alarm_rate: float
) -> Domain:
    """training: features [n, d] of each group of images. held_out: features of other images inside the domain; the
    threshold is the distance that `false_alarm_rate` of them exceed.
    """
    mean = np.stack([group.mean(0) for group in training]).astype(np.float32)
    # Stored in half precision: the threshold is that of the stored numbers.
    whitening = (
        np.stack([_whitening(group) for group in training])
        .astype(np.float16)
        .astype(np.float32)
    )
    domain = Domain(mean, whitening, 0.0)
    distances = [domain.distance(features) for features in held_out]
    return domain._replace(
        threshold=float(np.quantile(distances, 1 - false_alarm_rate))
    )


def _whitening(group: Float32Array) -> Float64Array:
    scale = group.std(0) + 1e-6
    covariance = np.cov(((group - group.mean(0)) / scale).T)
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(len(scale))
    whitening: Float64Array = (
        np.linalg.cholesky(np.linalg.inv(covariance)) / scale[:, None]
    )
    return whitening


def write_domain(domain: Domain, path: Path) -> None:
    """Write a domain so that `read_domain` reads it."""
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            mean=domain.mean,
            whitening=domain.whitening.astype(np.float16),
            threshold=np.float64(domain.threshold),
        )

"""Fitting the out-of-domain detector to the features of training images."""

from pathlib import Path

import numpy as np

from maskwise.arrays import Float32Array
from maskwise.models.tiny.domain import Domain
from maskwise.store.atomic import atomic_write

SHRINKAGE = 0.05
"""Weight of the identity in the covariance of the standardised features."""


def fit_domain(training: Float32Array, held_out: Float32Array, false_alarm_rate: float) -> Domain:
    """training, held_out: features [n, d] of images inside the domain. The threshold is the distance that
    `false_alarm_rate` of the held-out images exceed.
    """
    mean, scale = training.mean(0), training.std(0) + 1e-6
    covariance = np.cov(((training - mean) / scale).T)
    covariance = (1 - SHRINKAGE) * covariance + SHRINKAGE * np.eye(len(mean))
    whitening = np.linalg.cholesky(np.linalg.inv(covariance)) / scale[:, None]
    # Stored in half precision: the threshold is that of the stored numbers.
    stored = whitening.astype(np.float16).astype(np.float32)
    domain = Domain(mean.astype(np.float32), stored, 0.0)
    distances = [domain.distance(features) for features in held_out]
    return domain._replace(threshold=float(np.quantile(distances, 1 - false_alarm_rate)))


def write_domain(domain: Domain, path: Path) -> None:
    """Write a domain so that `read_domain` reads it."""
    with atomic_write(path) as file:
        np.savez_compressed(
            file,
            mean=domain.mean,
            whitening=domain.whitening.astype(np.float16),
            threshold=np.float64(domain.threshold),
        )

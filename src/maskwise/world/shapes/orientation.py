"""Sides and directions that several shapes share."""

import math

from maskwise.world.random_streams import RandomStream

SIDES = (-1.0, 1.0)
"""Factors of x for the left and the right copy of a symmetrical piece."""


def lying_turn(rng: RandomStream, limit: float) -> float:
    """The turn, in radians, of a long object that lies on the ground.

    The object points right (half of the time left), at most `limit` away from the
    image plane. It never points at the viewer, where it would appear too short to be
    recognized. Takes two random numbers.
    """
    turn = rng.uniform(-limit, limit)
    points_left = rng.bernoulli(0.5)
    return turn + (math.pi if points_left else 0.0)

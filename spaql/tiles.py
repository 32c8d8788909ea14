"""Tile coding: a state as the tiles that hold it, one in each of several grids that are shifted against each other.

Tilings are displaced by odd multiples of a fraction of a tile, (1, 3, 5, …)/n, as Sutton and Barto advise (2018,
section 9.5.4).
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.compiling import inlined

PLAIN, ANGLE = -1, -2  # a variable that is what it is, and one that turns round


class Tiles(NamedTuple):
    """How states are coded."""

    tilings: int  # n
    bins: int  # tiles along each axis of a tiling, but for the one more that its shift needs
    places: np.ndarray  # of the variables, one row each: a place and PLAIN or ANGLE, or those of a cosine and its sine
    numbers: int = 2**62  # how many there are: of more tiles than these, several have the same


def count_of(tiles: Tiles) -> int:
    """Return how many tiles there are."""
    return tiles.tilings * (tiles.bins + 1) ** len(tiles.places)


def largest_prime(most: int) -> int:
    """Return the largest prime up to a number: tiles that share so many weights do not share them with neighbours."""
    return next(n for n in range(most, 1, -1) if all(n % divisor for divisor in range(2, math.isqrt(n) + 1)))


# These take the number of a row instead of the row: compiled code counts references to every row it makes.


@inlined
def sum_of(weights, found, row, column):
    """The sum of one column of the weights, over the tiles in a row of `found`."""
    total = 0.0
    for i in range(found.shape[1]):
        total += weights[found[row, i], column]
    return total


@inlined
def active(tiles, x, found, row):
    """Write the number of the tile that holds `x`, of each tiling, to a row of `found`."""
    for tiling in range(tiles.tilings):
        number = tiling
        for i in range(len(tiles.places)):
            first, second = tiles.places[i, 0], tiles.places[i, 1]
            z = x[first] if second < 0 else math.atan2(x[second], x[first]) / math.pi
            shift = ((2 * i + 1) * tiling % tiles.tilings) / tiles.tilings
            tile = int((z + 1.0) / 2.0 * tiles.bins + shift)
            if second != PLAIN:
                tile %= tiles.bins  # an angle turns round
            number = (number * (tiles.bins + 1) + min(max(tile, 0), tiles.bins)) % tiles.numbers
        found[row, tiling] = number

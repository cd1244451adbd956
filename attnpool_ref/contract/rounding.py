"""How far apart rounding may put what is equal."""

import math


def roundings(terms):
    """How many roundings two sums of so many equal products may lie apart, relative to the product of the norms.

    Both packages call equal what is no further apart, each with the epsilon of its computing dtype: the first of equal
    cosines, equal largest products, a residual of 0. Rounding errors add up like a random walk (Higham and Mary 2019,
    theorem 2.4): twice the root of their number, and a few for the norms.
    """
    return 4 + 2 * math.sqrt(terms)

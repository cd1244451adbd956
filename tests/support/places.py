"""Placement of sequences that are split over the devices of a mesh."""

from jax.sharding import PartitionSpec

AXIS, TOKENS = "tokens", ("L", "T")


def place_of(axes, rank, names=AXIS):
    """Returns the ``PartitionSpec`` that shards an array's token axes, L and T, over mesh axes.

    ``names`` is the name of a mesh axis, or a tuple of names. ``axes`` has the names of the array's axes, in which
    "..." stands for all axes without a name, and ``rank`` their number.
    """
    places = [names if axis in TOKENS else None for axis in axes if axis != "..."]
    return PartitionSpec(*[None] * (rank - len(places)), *places)

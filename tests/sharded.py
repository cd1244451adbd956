"""A program of its own: poolings of one long sequence over all devices of all processes, beside one device.

Usage: ``sharded.py``, or ``sharded.py ADDRESS COUNT INDEX`` as one of several processes. It prints the device count when all
agrees, to the derived tolerance.
"""

import sys

import jax
import numpy as np

if len(sys.argv) > 1:
    address, count, index = sys.argv[1:]
    jax.distributed.initialize(address, int(count), int(index))

from agreement import assert_agree, assert_gradients_agree
from jax.sharding import AxisType, NamedSharding
from splits import NAMES, Split, with_gradients

CALLS = [
    ("max_pooling", "smallest", "tiles"),
    ("attention_pooling", "fullest", "tiles"),
]


def main():
    """Results and gradients of every call, in one program."""
    mesh = jax.make_mesh((2, jax.device_count() // 2), NAMES, axis_types=(AxisType.Auto,) * 2)
    calls = [Split(*call) for call in CALLS]
    calls = [call.changed(return_weights=False) if call.case.row.weights else call for call in calls]

    def program(arrays):
        return [with_gradients(call.over(mesh))(own) for call, own in zip(calls, arrays, strict=True)]

    arrays = [
        {key: placed(value, NamedSharding(mesh, call.specs[key])) for key, value in call.values.items()}
        for call in calls
    ]
    found = jax.tree.map(whole(mesh), jax.jit(program)(arrays))
    for call, (results, slopes) in zip(calls, found, strict=True):
        want, gradients = jax.tree.map(np.asarray, jax.jit(with_gradients(call.forward))(call.values))
        assert_agree(call.case, results, want)
        assert_gradients_agree(call.case, slopes, gradients)
    print(jax.device_count())


def placed(array, sharding):
    """A global array of which each process gives its own devices' part."""
    return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])


def whole(mesh):
    """From an array over the mesh to the same on the host."""
    everywhere = NamedSharding(mesh, jax.sharding.PartitionSpec())
    gathered = jax.jit(lambda array: array, out_shardings=everywhere)
    return lambda array: np.asarray(gathered(array).addressable_data(0))


if __name__ == "__main__":
    main()

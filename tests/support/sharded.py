"""A program that pools sequences over all devices of several processes, and compares with the result on one device.

Usage: ``sharded.py ADDRESS COUNT INDEX``, in each of COUNT processes. It prints the number of devices if all results
agree within the derived tolerance.
"""

import sys

import jax
import numpy as np
from agreement import assert_agree, assert_gradients_agree
from jax.sharding import AxisType, NamedSharding
from splits import NAMES, Split, with_gradients


def main(address, count, index):
    """Compares results and gradients of attention pooling with all parameters, whose states use both collectives."""
    jax.distributed.initialize(address, int(count), int(index))
    mesh = jax.make_mesh((2, jax.device_count() // 2), NAMES, axis_types=(AxisType.Auto,) * 2)
    call = Split("attention_pooling", "fullest", weights=False)
    arrays = {key: placed(value, NamedSharding(mesh, call.specs[key])) for key, value in call.values.items()}
    found = jax.tree.map(whole(mesh), jax.jit(with_gradients(call.over(mesh)))(arrays))
    want = jax.tree.map(np.asarray, jax.jit(with_gradients(call.forward))(call.values))
    assert_agree(call.case, found[0], want[0])
    assert_gradients_agree(call.case, found[1], want[1])
    print(jax.device_count())


def placed(array, sharding):
    """Returns a global array; each process provides the parts of its own devices."""
    return jax.make_array_from_callback(array.shape, sharding, lambda part: array[part])


def whole(mesh):
    """Returns a function from an array over the mesh to the same array on the host."""
    everywhere = NamedSharding(mesh, jax.sharding.PartitionSpec())
    gathered = jax.jit(lambda array: array, out_shardings=everywhere)
    return lambda array: np.asarray(gathered(array).addressable_data(0))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Pooling of one long sequence that is split over a mesh; the devices exchange only states, no tokens.

Each device reads only its own part of the sequence. The score of a token is its product with a query, whose gradient is
computed, too. With one process, the mesh has the devices of this process (here the CPU acts as four devices). With
several processes, as a cluster starts them, it has the devices of all. If Slurm, Kubernetes or a TPU pod starts the
processes, give only ``--cluster``: JAX then finds the other settings itself.

Run it: ``XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/pool_mesh.py`` (half a minute on two
cores), or with ``--small`` for a quick run. In two processes:

    python examples/pool_mesh.py --small --coordinator 127.0.0.1:4321 --processes 2 --process 0 &
    python examples/pool_mesh.py --small --coordinator 127.0.0.1:4321 --processes 2 --process 1
"""

import argparse
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from measuring import measured

from attnpool_flax import attention_pooling

WIDTH = 64


def main(arguments=None):
    """Pools, computes a gradient, prints times, and compares both with one device if the sequence is small."""
    options = parser().parse_args(arguments)
    if options.coordinator:
        jax.distributed.initialize(options.coordinator, options.processes, options.process)
    elif options.cluster:
        jax.distributed.initialize()
    devices = jax.device_count()
    mesh = jax.make_mesh((devices,), ("tokens",), axis_types=(AxisType.Auto,))
    length = options.tokens // devices * devices
    x = jax.make_array_from_callback((length, WIDTH), NamedSharding(mesh, PartitionSpec("tokens")), part_of(length))
    query = np.random.default_rng(0).standard_normal(WIDTH, np.float32)
    program = jax.jit(jax.grad(over(mesh), has_aux=True)).lower(query, x).compile()
    collectives = len(re.findall(r" all-(?:reduce|gather)(?:-start)?\(", program.as_text()))
    jax.block_until_ready(program(query, x))  # the first call compiles
    with measured() as took:
        gradient, pooled = jax.block_until_ready(program(query, x))
    off = compared(part_of(length)(np.index_exp[:, :]), query, pooled, gradient) if length <= options.whole else None
    if jax.process_index() == 0:
        print(f"{length:,} tokens of {WIDTH} over {devices} devices in {jax.process_count()} processes")
        print(
            f"pooled, with the gradient of the query: {took.seconds * 1e3:.1f} ms, {took.peak / 2**20:.0f} MiB beside the "
            f"data, {collectives} collectives"
        )
        if off is not None:
            print(f"largest difference from one device: {off[0]:.1e}, of the gradient {off[1]:.1e}")
    return off


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", dest="tokens", action="store_const", const=40_000, help="40,000 tokens")
    parser.add_argument("--tokens", type=int, help="how many tokens (4,000,000)")
    parser.add_argument("--whole", type=int, default=100_000, help="so many tokens one device pools as well (100,000)")
    parser.add_argument("--cluster", action="store_true", help="let JAX find the other processes")
    parser.add_argument("--coordinator", help="address of process 0, where nothing else says it")
    parser.add_argument("--processes", type=int, help="how many there are")
    parser.add_argument("--process", type=int, help="which one this is, from 0")
    parser.set_defaults(tokens=4_000_000)
    return parser


def over(mesh):
    """Returns a function of the query and of tokens that are split over the mesh; it returns (loss, pooled vector)."""

    def pooled(x, query):
        return attention_pooling(x, None, query, axis_name="tokens")

    specs = PartitionSpec("tokens"), PartitionSpec()
    split = jax.shard_map(pooled, mesh=mesh, in_specs=specs, out_specs=PartitionSpec())
    return lambda query, x: with_square(split(x, query))


def with_square(pooled):
    """Returns (the squared norm of a vector, the vector)."""
    return jnp.sum(pooled * pooled), pooled


def part_of(length):
    """Returns a function from the index of a part of x to this part, so that no process makes the whole x."""

    def part(index):
        first, last, _ = index[0].indices(length)
        positions = np.arange(first, last, dtype=np.float32)[:, None]
        return np.sin(positions * np.linspace(0.1, 1, WIDTH, dtype=np.float32)[index[1]])

    return part


def compared(x, query, pooled, gradient):
    """Returns the largest differences of vector and gradient from those of the whole sequence on one device."""
    whole = jax.grad(lambda query: with_square(attention_pooling(x, None, query)), has_aux=True)(query)
    pairs = (pooled, whole[1]), (gradient, whole[0])
    return [float(np.max(np.abs(np.asarray(found) - np.asarray(want)))) for found, want in pairs]


if __name__ == "__main__":
    main()

"""Pools one long sequence that is split over a mesh: each device reads its own part, and only states meet.

One process, over the devices that it has (here four that the CPU plays):

    XLA_FLAGS=--xla_force_host_platform_device_count=4 python examples/pool_mesh.py --small

Two processes, as a cluster would start them; where one does (Slurm, Kubernetes, a TPU pod), JAX finds the rest by itself
and ``--cluster`` alone is enough:

    python examples/pool_mesh.py --small --coordinator 127.0.0.1:4321 --processes 2 --process 0 &
    python examples/pool_mesh.py --small --coordinator 127.0.0.1:4321 --processes 2 --process 1
"""

import argparse
import re
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from attnpool_flax import attention_pooling

WIDTH = 64


def main(arguments=None):
    """Pools, takes a gradient, checks both against one device where the whole fits, and says what it cost."""
    asked = parsed(arguments)
    if asked.coordinator:
        jax.distributed.initialize(asked.coordinator, asked.processes, asked.process)
    elif asked.cluster:
        jax.distributed.initialize()
    devices = jax.device_count()
    mesh = jax.make_mesh((devices,), ("tokens",), axis_types=(AxisType.Auto,))
    length = asked.tokens // devices * devices
    x = jax.make_array_from_callback((length, WIDTH), NamedSharding(mesh, PartitionSpec("tokens")), part_of(length))
    query = np.random.default_rng(0).standard_normal(WIDTH, np.float32)

    def pooled(x, query):
        return attention_pooling(x, None, query, axis_name="tokens")

    split = jax.shard_map(
        pooled, mesh=mesh, in_specs=(PartitionSpec("tokens"), PartitionSpec()), out_specs=PartitionSpec()
    )

    def step(query, x):
        found = split(x, query)
        return jnp.sum(found * found), found

    program = jax.jit(jax.grad(step, has_aux=True)).lower(query, x).compile()
    collectives = len(re.findall(r" all-(?:reduce|gather)(?:-start)?\(", program.as_text()))
    jax.block_until_ready(program(query, x))
    start = time.perf_counter()
    gradient, found = jax.block_until_ready(program(query, x))
    seconds = time.perf_counter() - start
    if jax.process_index() == 0:
        print(f"{length:,} tokens of {WIDTH} over {devices} devices in {jax.process_count()} processes")
        print(f"pooled, with the gradient of the query: {seconds * 1e3:.1f} ms, {collectives} collectives")
        if asked.small:
            check(part_of(length)((slice(None), slice(None))), query, found, gradient)


def parsed(arguments):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=4_000_000)
    parser.add_argument("--small", action="store_true", help="40,000 tokens, checked against one device")
    parser.add_argument("--cluster", action="store_true", help="let JAX find the other processes")
    parser.add_argument("--coordinator", help="address of process 0, where nothing else says it")
    parser.add_argument("--processes", type=int)
    parser.add_argument("--process", type=int)
    asked = parser.parse_args(arguments)
    if asked.small:
        asked.tokens = 40_000
    return asked


def part_of(length):
    """From the index of a part of x to the part: made on the device's own process, never as a whole."""

    def part(index):
        first, last, _ = index[0].indices(length)
        positions = np.arange(first, last, dtype=np.float32)[:, None]
        return np.sin(positions * np.linspace(0.1, 1, WIDTH, dtype=np.float32)[index[1]])

    return part


def check(x, query, found, gradient):
    """Against the whole sequence on one device."""

    def whole(query):
        pooled = attention_pooling(x, None, query)
        return jnp.sum(pooled * pooled), pooled

    want, pooled = jax.grad(whole, has_aux=True)(query)
    apart = max(np.max(np.abs(np.asarray(a) - np.asarray(b))) for a, b in ((found, pooled), (gradient, want)))
    print(f"from one device it is at most {apart:.1e} away")
    if not apart < 1e-5:
        raise SystemExit("which is too far")


if __name__ == "__main__":
    main()

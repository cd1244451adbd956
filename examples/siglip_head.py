"""SigLIP's attention head in attnpool: the vectors of Flax's layers, in less time on a CPU, unaffected by padding.

The weights are random and have the sizes of SigLIP B/16. They are saved in big_vision's format and loaded from that
file. The loaded head is compared with big_vision's own head, which is built from Flax's layers as in
``big_vision/models/vit.py``.

Run it: ``python examples/siglip_head.py`` (about a minute on two cores), or with ``--small`` for a quick run.
"""

import argparse
import tempfile
from functools import partial
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.traverse_util import flatten_dict
from measuring import measured

import attnpool_flax

PREFIX = "params/img/MAPHead_0/"


class Original(nn.Module):
    """big_vision's ``MAPHead`` with the names of its parameters; its NaFlex models also pass a mask."""

    heads: int
    hidden: int

    @nn.compact
    def __call__(self, x, mask=None):
        """Pools x [B, L, d] to [B, d]."""
        width = x.shape[-1]
        probe = self.param("probe", nn.initializers.xavier_uniform(), (1, 1, width))
        probe = jnp.tile(probe, (len(x), 1, 1))
        keys = None if mask is None else mask[:, None, None, :]
        attention = nn.MultiHeadDotProductAttention(self.heads, name="MultiHeadDotProductAttention_0")
        pooled = attention(probe, x, mask=keys)
        normalized = nn.LayerNorm(name="LayerNorm_0")(pooled)
        return (pooled + Perceptron(self.hidden, name="MlpBlock_0")(normalized))[:, 0]


class Perceptron(nn.Module):
    """big_vision's ``MlpBlock``."""

    hidden: int

    @nn.compact
    def __call__(self, x):
        """Maps x [..., d] to [..., d]."""
        hidden = nn.gelu(nn.Dense(self.hidden, name="Dense_0")(x))
        return nn.Dense(x.shape[-1], name="Dense_1")(hidden)


def main(arguments=None):
    """Compares and times both heads, and prints the results; returns the two largest differences."""
    options = parser().parse_args(arguments)
    if options.small:
        options.batch, options.length, options.width = 8, 49, 128
    width, heads, hidden = options.width, options.width // 64, 4 * options.width
    original, keys = Original(heads, hidden), jax.random.split(jax.random.key(0), 2)
    x = jax.random.normal(keys[0], (options.batch, options.length, width))
    variables = original.init(keys[1], x[:1])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "siglip.npz")  # names with slashes, as in big_vision
        flat = {f"{PREFIX}{name}": array for name, array in flatten_dict(variables["params"], sep="/").items()}
        np.savez(file, **flat)
        head = attnpool_flax.load(file, "siglip_bv")
    lengths = np.linspace(options.length // 4, options.length, options.batch).astype(np.int32)
    mask = attnpool_flax.lengths_to_mask(lengths, options.length)
    theirs = jax.jit(original.apply)
    pooled = nnx.jit(lambda head, x, mask: head(x, mask)[:, 0])  # the parameters are arguments in both programs
    ours = partial(pooled, head)

    print(f"{options.batch} images of {options.length} tokens of {width}, {heads} heads, a perceptron of {hidden}")
    offs = []
    for title, real in (("no padding", None), (f"{1 - mask.mean():.0%} padding", mask)):
        expected, got = theirs(variables, x, real), ours(x, real)
        offs.append(float(jnp.max(jnp.abs(got - expected)) / jnp.max(jnp.abs(expected))))
        slow, fast = fastest(lambda real=real: theirs(variables, x, real)), fastest(lambda real=real: ours(x, real))
        print(
            f"{title}: largest difference {offs[-1]:.1e} of the largest output; "
            f"Flax's layers {slow * 1e3:.1f} ms, attnpool {fast * 1e3:.1f} ms, {slow / fast:.1f} times as fast"
        )
    spoilt = jnp.where(mask[..., None], x, jnp.nan)
    lost, kept = int(jnp.isnan(theirs(variables, spoilt, mask)).any(-1).sum()), ours(spoilt, mask)
    print(
        f"NaN in the padding: Flax's layers give {lost} of {options.batch} vectors of NaN; attnpool "
        f"{'the same vectors, bit for bit' if (kept == ours(x, mask)).all() else 'other vectors'}"
    )
    nothing = jnp.zeros_like(mask)
    moved = [
        float(jnp.max(jnp.abs(f(x + 1, nothing) - f(x, nothing)))) for f in (lambda *a: theirs(variables, *a), ours)
    ]
    print(f"nothing real, the padding moved by 1: Flax's layers move by {moved[0]:.2g}, attnpool by {moved[1]:.2g}")
    return offs


def fastest(call, repeats=7):
    """Returns the seconds of the fastest of some calls, without the first call, which compiles."""
    jax.block_until_ready(call())
    times = []
    for _ in range(repeats):
        with measured(every=1.0) as took:
            jax.block_until_ready(call())
        times.append(took.seconds)
    return min(times)


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="8 images of 49 tokens of 128")
    for name, size in {"batch": 64, "length": 196, "width": 768}.items():
        parser.add_argument(f"--{name}", type=int, default=size)
    return parser


if __name__ == "__main__":
    main()

"""Cases of the benchmarks: one row each, with sizes by the letters of the function's shapes."""

import math
import zlib
from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from bench import peers, plain, plain_numpy
from bench.floors import floors
from bench.programs import FLOOR, FORWARD, OURS, PLAIN, Arrays, Way


@dataclass(frozen=True)
class Function:
    """A function, its arguments and the formulas that it is compared with.

    Attributes:
      shapes: the arguments' shapes, a letter for each axis. B and C are batch axes, D is 3d, 1 is an axis of size 1.
        Names of masks end in "mask".
      per: the unit of temporaries: its name, and the shapes of the arrays whose bytes it has.
      largest: the largest array that the oracle makes for one example.
      plain: the usual formula in JAX.
      spread: letters of sizes; tokens are multiplied by the product of these sizes to the power -1/4, so that scores
        are about 1.
    """

    shapes: dict
    per: tuple
    largest: str
    plain: object = None
    spread: str = ""


_PAIR = {"query": "Bkd", "context": "Bnd", "query_mask": "Bk", "context_mask": "Bn"}

FUNCTIONS = {
    "mean_pooling": Function({"x": "BLd", "mask": "BL"}, per=("x", "BLd"), largest="Ld"),
    "max_pooling": Function({"x": "BLd", "mask": "BL"}, per=("x", "BLd"), largest="Ld"),
    "attention_pooling": Function(
        {"x": "BLd", "mask": "BL", "query": "d", "key_kernel": "dd"},
        per=("x", "BLd"),
        largest="Ld",
        plain=plain.attention_pooling,
    ),
    "multi_head_attention_pooling": Function(
        {"x": "BLd", "mask": "BL", "query": "nd"}
        | {f"{part}_kernel": "dHc" for part in ("query", "key", "value")}
        | {"out_kernel": "Hcd"}
        | {f"{part}_bias": "Hc" for part in ("query", "key", "value")}
        | {"out_bias": "d"},
        per=("x", "BLd"),
        largest="Ld",
    ),
    "additive_attention_pooling": Function(
        {"x": "BLd", "kernel": "dh", "bias": "h", "gate_kernel": "dh", "gate_bias": "h", "out_kernel": "h"},
        per=("[L, h]", "BLh"),
        largest="Ld",
        plain=plain.gated_attention_pooling,
    ),
    "segment_attention_pooling": Function(
        {"x": "Nd", "segment_ids": "N", "query": "d"},
        per=("x", "Nd"),
        largest="Nd",
        plain=plain.segment_attention_pooling,
    ),
    "cross_attention_pooling": Function(
        {"x": "BLd", "y": "BTd", "x_mask": "BL", "y_mask": "BT"},
        per=("x", "BLd"),
        largest="LT",
        plain=plain.cross_attention_pooling,
        spread="dL",
    ),
    "cross_attention_pooling_all_pairs": Function(
        {"x": "BLd", "y": "CTd", "x_mask": "BL", "y_mask": "CT"},
        per=("outputs", "BCd", "BCd"),
        largest="LT",
        spread="dL",
    ),
    "maxsim_score_all_pairs": Function(
        {"x": "BLd", "y": "CTd", "x_mask": "BL", "y_mask": "CT"},
        per=("[B, C, L, T]", "BCLT"),
        largest="LT",
        plain=plain.maxsim_score_all_pairs,
        spread="d",
    ),
    "code_wise_attention": Function(
        _PAIR, per=("[n, k]", "Bnk"), largest="nk", plain=plain.code_wise_attention, spread="d"
    ),
    "mask_attention": Function(_PAIR, per=("[n, k]", "Bnk"), largest="nk", plain=plain.mask_attention, spread="d"),
    "bidaf_attention": Function(
        _PAIR | {"kernel": "D"}, per=("[n, k]", "Bnk"), largest="nkD", plain=plain.bidaf_attention
    ),
    "dot_product_attention": Function(
        {"query": "Bnd", "key": "Bmd", "value": "Bmd", "mask": "B1m"}, per=("[n, m]", "Bnm"), largest="nm"
    ),
    "additive_attention": Function(
        {"query": "Bnd", "key": "Bmd", "value": "Bmd", "mask": "B1m"}
        | {"query_kernel": "dh", "key_kernel": "dh", "out_kernel": "h"},
        per=("[n, m, h]", "Bnmh"),
        largest="nmh",
        plain=plain.additive_attention,
    ),
}


@dataclass(frozen=True)
class Case:
    """One case of the benchmarks.

    Attributes:
      name: the name of the function.
      sizes: sizes by letter.
      beside: the ways besides ours: PLAIN, FLOOR, "peers" or names of peers.
      note: other properties of the case, as its title shows them.
      options: further arguments of the function.
      real: the fewest and the most real tokens of a sequence, as parts of its length.
      dtype: the dtype of the floating arrays.
      steps: whether a step is also measured.
      per: the unit of temporaries, if it is not the function's.
      quick: whether a quick run also measures it.
      arguments: the shapes of the arguments, if they are not those of the function's row.
    """

    name: str
    sizes: dict
    beside: tuple = (FLOOR, PLAIN, "peers")
    note: str = ""
    options: dict = field(default_factory=dict)
    real: tuple = (0.5, 1.0)
    dtype: str = "float32"
    steps: bool = True
    per: tuple = ()
    quick: bool = True
    arguments: dict | None = None

    def __str__(self):
        return f"{self.name}, {self.title}"

    @property
    def function(self):
        """The case's row of FUNCTIONS."""
        return FUNCTIONS[self.name]

    @property
    def shapes(self):
        """The shapes of the arguments."""
        return self.arguments or self.function.shapes

    @property
    def title(self):
        """Sizes and note, as text."""
        known = {letter: size for letter, size in self.sizes.items() if letter != "c"}
        sizes = " ".join(f"{letter}={size}" for letter, size in known.items())
        return ", ".join(filter(None, [sizes, self.note]))

    def shape(self, letters):
        """Returns a shape as numbers."""
        sizes = self.sizes | {"1": 1, "D": 3 * self.sizes["d"]}
        return tuple(sizes[letter] for letter in letters)

    def unit(self):
        """Returns (name, bytes) of the unit of temporaries."""
        name, *shapes = self.per or self.function.per
        return name, sum(int(np.prod(self.shape(s))) for s in shapes) * jnp.dtype(self.dtype).itemsize

    def data(self):
        """Names of the arrays of tokens."""
        return [name for name, letters in self.shapes.items() if letters[0] in "BCN" and not _is_fixed(name)]

    def masks(self, rng):
        """Returns masks in NumPy, with real tokens first and random lengths; and segment ids."""
        drawn = {}
        for name, letters in self.shapes.items():
            if name.endswith("mask"):
                shape = self.shape(letters)
                fewest, most = (max(1, int(part * shape[-1])) for part in self.real)
                drawn[name] = np.arange(shape[-1]) < rng.integers(fewest, most + 1, (*shape[:-1], 1))
            if name.endswith("segment_ids"):
                drawn[name] = _numbers(rng, self.shape(letters)[0], self.options["num_segments"])
        return drawn

    def floats(self, normal):
        """Returns floating arrays from ``normal(shape)``, scaled by fan-in, or so that scores are about 1."""
        drawn, spread = {}, float(np.prod([self.sizes[a] for a in self.function.spread])) ** -0.25
        for name, letters in self.shapes.items():
            shape = self.shape(letters)
            if name.endswith("kernel"):
                scale = float(np.prod(shape[:-1] if letters == "Hcd" else shape[:1])) ** -0.5  # fan-in
            else:
                scale = spread if name in self.data() else 1.0
            if not _is_fixed(name):
                drawn[name] = (normal(shape) * scale).astype(jnp.dtype(self.dtype))
        return drawn

    def arrays(self, normal=None):
        """Returns arguments and cotangents of results; ``normal(shape)`` draws floats, with NumPy if it is None."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        normal = normal or (lambda shape: rng.standard_normal(shape, np.float32))
        floats, fixed = self.floats(normal), self.masks(rng)
        results = jax.eval_shape(self.ways(FORWARD)[0].forward, floats, fixed)
        return Arrays(floats, fixed, [normal(part.shape).astype(np.float32) for part in results])

    def tokens(self):
        """Returns the number of elements of the arrays of tokens."""
        return sum(math.prod(self.shape(self.shapes[name])) for name in self.data())

    def ways(self, direction):
        """Returns the ways, ours first."""
        found = [Way(OURS, OURS, calling(getattr(attnpool_flax, self.name), self.options))]
        if FLOOR in self.beside:
            found += floors(self, direction)
        if PLAIN in self.beside and self.function.plain:
            call = self.function.plain
            found.append(Way("plain", PLAIN, lambda floats, fixed: call(floats, fixed, **self.options)))
        if "peers" in self.beside:
            found += peers.ways(self.name)
        if "oracle" in self.beside and direction == FORWARD:
            oracle = getattr(attnpool_ref, self.name)
            found += [
                Way("attnpool_ref", PLAIN, lambda floats, fixed: oracle(**floats, **fixed), library="numpy"),
                Way("plain NumPy", PLAIN, getattr(plain_numpy, self.name), library="numpy"),
            ]
        return found


def _is_fixed(name):
    """Returns whether an argument is not a floating array."""
    return name.endswith(("mask", "segment_ids"))


def _numbers(rng, length, count):
    """Returns sorted segment ids of tokens; lengths of segments are log-normal, like those of texts."""
    parts = np.cumsum(rng.lognormal(0, 0.7, count))
    return np.searchsorted(parts / parts[-1], np.arange(length) / length).astype(np.int32)


def calling(function, options):
    """Returns one of our functions with options, as a function of floats and fixed arrays."""

    def call(floats, fixed):
        return jax.tree.leaves(function(**floats, **fixed, **options))

    return call

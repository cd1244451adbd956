"""What is measured: one row a case, its sizes by the letters of its function's shapes."""

import inspect
import zlib
from dataclasses import dataclass, field

import jax.numpy as jnp
import numpy as np

import attnpool_flax
import attnpool_ref
from bench import peers, plain
from bench.programs import FLOOR, FORWARD, OURS, PLAIN, Arrays, Way, as_numpy

EXAMPLES = 2
"""Examples whose results the oracle gives; every example of a batch is computed alike."""

EPSILON = {"float32": 2.0**-23, "bfloat16": 2.0**-7}


@dataclass(frozen=True)
class Function:
    """A function, its arguments and what stands beside it.

    Attributes:
      shapes: of its arguments, a letter an axis. B and C are batch axes, D is 3d, 1 is 1; masks end in "mask".
      per: what temporaries are divided by: its name, and the shapes whose bytes it has.
      plain: the formula as one would write it, in JAX.
      notebook: the notebook's NumPy.
      spread: letters whose sizes' product the tokens are scaled by, so that scores are about 1.
    """

    shapes: dict
    per: tuple
    plain: object = None
    notebook: object = None
    spread: str = ""


_PAIR = {"query": "Bkd", "context": "Bnd", "query_mask": "Bk", "context_mask": "Bn"}

FUNCTIONS = {
    "attention_pooling": Function(
        {"x": "BLd", "mask": "BL", "query": "d", "key_kernel": "dd"},
        per=("x", "BLd"),
        plain=plain.attention_pooling,
        notebook=plain.notebook_attention_pooling,
    ),
    "multi_head_attention_pooling": Function(
        {"x": "BLd", "mask": "BL", "query": "nd"}
        | {f"{part}_kernel": "dHc" for part in ("query", "key", "value")}
        | {"out_kernel": "Hcd"}
        | {f"{part}_bias": "Hc" for part in ("query", "key", "value")}
        | {"out_bias": "d"},
        per=("x", "BLd"),
    ),
    "cross_attention_pooling": Function(
        {"x": "BLd", "y": "BTd", "x_mask": "BL", "y_mask": "BT"},
        per=("x", "BLd"),
        plain=plain.cross_attention_pooling,
        notebook=plain.notebook_cross_attention_pooling,
        spread="dL",
    ),
    "cross_attention_pooling_all_pairs": Function(
        {"x": "BLd", "y": "CTd", "x_mask": "BL", "y_mask": "CT"}, per=("outputs", "BCd", "BCd"), spread="dL"
    ),
    "code_wise_attention": Function(_PAIR, per=("[n, k]", "Bnk"), plain=plain.code_wise_attention, spread="d"),
    "mask_attention": Function(_PAIR, per=("[n, k]", "Bnk"), plain=plain.mask_attention, spread="d"),
    "bidaf_attention": Function(_PAIR | {"kernel": "D"}, per=("[n, k]", "Bnk"), plain=plain.bidaf_attention),
    "additive_attention": Function(
        {"query": "Bnd", "key": "Bmd", "value": "Bmd", "mask": "B1m"}
        | {"query_kernel": "dh", "key_kernel": "dh", "out_kernel": "h"},
        per=("[n, m, h]", "Bnmh"),
        plain=plain.additive_attention,
    ),
}


@dataclass(frozen=True)
class Case:
    """One row of what is measured.

    Attributes:
      name: of the function.
      sizes: by letter.
      beside: kinds of ways beside ours: PLAIN, FLOOR, "peers" or names of peers.
      note: what else is special about it.
      options: further arguments of the function.
      real: the fewest and the most real tokens of a sequence, as parts of its length.
      dtype: of the floating arrays.
      steps: whether a step is measured, too.
      per: what temporaries are divided by, if not what the function says.
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

    def __str__(self):
        return f"{self.name}, {self.title}"

    @property
    def function(self):
        """The row of FUNCTIONS."""
        return FUNCTIONS[self.name]

    @property
    def title(self):
        """Sizes and what is special."""
        known = {letter: size for letter, size in self.sizes.items() if letter != "c"}
        sizes = " ".join(f"{letter}={size}" for letter, size in known.items())
        return ", ".join(filter(None, [sizes, self.note]))

    def shape(self, letters):
        """A shape as numbers."""
        sizes = self.sizes | {"1": 1, "D": 3 * self.sizes["d"]}
        return tuple(sizes[letter] for letter in letters)

    def unit(self):
        """(name, bytes) that temporaries are divided by."""
        name, *shapes = self.per or self.function.per
        return name, sum(int(np.prod(self.shape(s))) for s in shapes) * jnp.dtype(self.dtype).itemsize

    def data(self):
        """Names of the arrays of tokens."""
        shapes = self.function.shapes.items()
        return [name for name, letters in shapes if letters[0] in "BC" and not name.endswith("mask")]

    def masks(self, rng):
        """Masks in NumPy: the first so many tokens are real, another number for each example."""
        drawn = {}
        for name, letters in self.function.shapes.items():
            if name.endswith("mask"):
                shape = self.shape(letters)
                fewest, most = (max(1, int(part * shape[-1])) for part in self.real)
                drawn[name] = np.arange(shape[-1]) < rng.integers(fewest, most + 1, (*shape[:-1], 1))
        return drawn

    def floats(self, normal):
        """Floating arrays from ``normal(shape)``: parameters by their fan-in, tokens so that scores are about 1."""
        drawn, spread = {}, float(np.prod([self.sizes[a] for a in self.function.spread])) ** -0.25
        for name, letters in self.function.shapes.items():
            shape = self.shape(letters)
            if name.endswith("kernel"):
                scale = float(np.prod(shape[:-1] if letters == "Hcd" else shape[:1])) ** -0.5
            else:
                scale = spread if name in self.data() else 1.0
            if not name.endswith("mask"):
                drawn[name] = (normal(shape) * np.float32(scale)).astype(jnp.dtype(self.dtype))
        return drawn

    def arrays(self):
        """Arguments and the cotangents of the results."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        floats, fixed = self.floats(lambda shape: rng.standard_normal(shape, np.float32)), self.masks(rng)
        results = self.oracle(floats, fixed)
        sizes = {letter: self.sizes[letter] for letter in "BC" if letter in self.sizes}
        shapes = [(*sizes.values(), *part.shape[len(sizes) :]) for part in results]
        return Arrays(floats, fixed, [rng.standard_normal(shape, np.float32) for shape in shapes]), results

    def oracle(self, floats, fixed):
        """The definition's results for the first examples."""
        first = {
            name: np.asarray(array[:EXAMPLES]) if self.function.shapes[name][0] in "BC" else np.asarray(array)
            for name, array in (floats | fixed).items()
        }
        return as_numpy(getattr(attnpool_ref, self.name)(**first, **self.options))

    def verify(self, results, want, way):
        """Raises an AssertionError where results are further from the oracle's than rounding explains."""
        batch = tuple(slice(EXAMPLES) for letter in "BC" if letter in self.sizes)
        self._agree([part[batch] for part in as_numpy(results)], want, way, sum(self.sizes.values()))

    def verify_step(self, step, want, way):
        """The same of a step beside ours; a gradient sums over every token of the batch."""
        tokens = sum(int(np.prod(self.shape(self.function.shapes[name]))) for name in self.data())
        self._agree(as_numpy(step[1]), as_numpy(want[1]), way, tokens)

    def _agree(self, got, want, way, terms):
        """``size`` is that of all parts: one that cancels to 0, such as a bias of keys, is off by what cancelled."""
        allowed = EPSILON["float32"] * terms + (4 * EPSILON[self.dtype] if self.dtype != "float32" else 0)
        size = max(float(np.abs(part).max(initial=0)) for part in want)
        for a, b in zip(got, want, strict=True):
            error = float(np.abs(a - b).max(initial=0))
            assert error <= allowed * size, f"{self}: {way} is off by {error:g}, and the largest number is {size:g}"

    def ways(self, direction):
        """What is measured, ours first."""
        found = list(self._ours())
        if FLOOR in self.beside and (direction == FORWARD or _floor(self).step):
            found.append(_floor(self))
        if PLAIN in self.beside and self.function.plain:
            call = self.function.plain
            found.append(Way("plain", PLAIN, lambda floats, fixed: call(floats, fixed, **self.options)))
        if "peers" in self.beside:
            found += peers.ways(self.name)
        if "oracle" in self.beside and direction == FORWARD:
            oracle = getattr(attnpool_ref, self.name)
            found += [
                Way("attnpool_ref", PLAIN, lambda floats, fixed: oracle(**floats, **fixed), library="numpy"),
                Way("the notebook's NumPy", PLAIN, self.function.notebook, library="numpy"),
            ]
        return found

    def _ours(self):
        function = getattr(attnpool_flax, self.name)
        yield Way(OURS, OURS, _calling(function, self.options))
        if "implementations" in self.beside and "implementation" in inspect.signature(function).parameters:
            for name in ("einsum", "tiles"):
                options = self.options | {"implementation": name}
                yield Way(f"{OURS}, {name}", OURS, _calling(function, options))


def _calling(function, options):
    def call(floats, fixed):
        result = function(**floats, **fixed, **options)
        return list(result) if isinstance(result, tuple) else [result]

    return call


def _floor(case):
    """What no way can do without: one read of the tokens, in a step also writing as much; or writing the outputs."""
    names = case.data()
    if case.name.endswith("all_pairs"):

        def write(floats, fixed):
            x, y = floats["x"].sum(1), floats["y"].sum(1)
            return [x[:, None] + y[None], x[:, None] - y[None]]

        return Way("writing the outputs", FLOOR, write)
    return Way(
        "one read",
        FLOOR,
        lambda floats, fixed: [floats[name].sum(1) for name in names],
        lambda floats, fixed: [2 * floats[name] for name in names],
    )

"""MaxSim multiplies raw tokens, whose padding may hold NaN: it reaches no score, no gradient and no tangent.

The programs of GPUs are evaluated on a CPU, see ``tests/support/rounded_products.py``. Attention with hidden units, which takes
raw keys, too, has its tests in ``test_hidden_units.py``.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from constants import compiling_anew
from marks import thorough
from rounded_products import GPU, on_device
from rounding import rounded

import attnpool_flax
from attnpool_flax.call.compiled import FUNCTIONS

D = 8
SIDES = {"x": (2, 5), "y": (2, 7)}
MASKED = [["x", "y"], *thorough([["x"], ["y"]])]


def drawn(content, dtype="float32"):
    """Two sides, and the masks of both, whose padding holds ``content``; the second example of each has no real token."""
    rng = np.random.default_rng(3)
    masks = {side: (rng.random(shape) < 0.6) & [[True], [False]] for side, shape in SIDES.items()}
    tokens = {side: rng.normal(size=(*shape, D)).astype(jnp.dtype(dtype)) for side, shape in SIDES.items()}
    padded = {side: np.where(masks[side][..., None], tokens[side], tokens[side].dtype.type(content)) for side in SIDES}
    return padded, masks


def derived(masks):
    """The function of two sides that returns scores, both gradients, and the tangent along the tokens' sines."""

    def scores(x, y):
        return attnpool_flax.maxsim_score(x, y, **{f"{side}_mask": mask for side, mask in masks.items()})

    def both(x, y):
        gradients = jax.grad(lambda x, y: jnp.sum(jnp.sin(scores(x, y))), (0, 1))(x, y)
        tangents = tuple(jnp.sin(jnp.nan_to_num(own)) for own in (x, y))
        return scores(x, y), gradients, jax.jvp(scores, (x, y), tangents)

    return both


@pytest.mark.parametrize("masked", MASKED, ids="".join)
@pytest.mark.parametrize("dtype", ["float32", *thorough(["bfloat16"])])
def test_nan_in_padding_reaches_nothing(masked, dtype):
    (padded, masks), (clean, _) = drawn(np.nan, dtype), drawn(0, dtype)
    function = derived({side: masks[side] for side in masked})
    own = [padded[side] if side in masked else clean[side] for side in SIDES]
    with compiling_anew(FUNCTIONS["maxsim_score"]):
        found, expected = (on_device(GPU, function)(*arrays) for arrays in (own, list(clean.values())))
    chex.assert_trees_all_equal(found, expected)
    for ours, exact in zip(jax.tree.leaves(found), jax.tree.leaves(function(*clean.values())), strict=True):
        ours, exact = (np.asarray(own, np.float32) for own in (ours, exact))
        chex.assert_trees_all_close(ours, exact, atol=rounded(exact, 4 * D, dtype), rtol=0)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_the_forward_pass_copies_no_tokens(platform):
    """Otherwise the test above would see no NaN, and XLA would write a copy of both sides."""
    padded, masks = drawn(np.nan)
    program = jax.jit(attnpool_flax.maxsim_score).trace(*padded.values(), *masks.values())
    lines = program.lower(lowering_platforms=(platform,)).as_text().splitlines()
    assert not [line for line in lines if "stablehlo.select" in line and f"x{D}xf32" in line]

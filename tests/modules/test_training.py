"""Checkpoints pass between NNX and Linen, and models with modules in them learn."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
import pytest
from flax import nnx
from modules.cases import CASES, NNX, Linen, deterministic, same_bits

import attnpool_flax


@pytest.mark.parametrize("case", [case for case in CASES if "kernels" in case.title], ids=str)
def test_a_checkpoint_of_either_kind_loads_into_the_other(case, tmp_path):
    data, masks = case.draw()
    saver = ocp.StandardCheckpointer()
    for source, target in ((NNX, Linen), (Linen, NNX)):
        trained = jax.tree.map(lambda value: value + 1, source.initial(case, seed=1))
        path = tmp_path / source.__name__
        saver.save(path, trained)
        saver.wait_until_finished()
        loaded = saver.restore(path, target.initial(case, seed=2))
        same_bits(loaded, trained)
        drops = deterministic(case)
        same_bits(target.call(case, loaded, data, masks, **drops), source.call(case, trained, data, masks, **drops))
    saver.close()


class Head(nnx.Module):
    """Pools and projects."""

    def __init__(self, rngs):
        self.pool = attnpool_flax.AttentionPool(8, qk_features=6, dropout_rate=0.25, rngs=rngs)
        self.project = nnx.Linear(8, 1, rngs=rngs)

    def __call__(self, x, mask):
        return self.project(self.pool(x, mask))[..., 0]


def marked_tokens():
    """Sequences whose target stands in the one token that is marked, among louder ones that are not."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((64, 9, 8)).astype(np.float32)
    mask = np.arange(9) < rng.integers(2, 10, (64, 1))
    marked = rng.integers(0, mask.sum(-1))
    x[..., 0] = 0
    x[np.arange(64), marked, 0] = 3
    return x, mask, x[np.arange(64), marked, 1]


def test_an_nnx_model_learns_which_token_counts():
    x, mask, target = marked_tokens()
    model = Head(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(2.0**-4), wrt=nnx.Param)

    def loss(model):
        return jnp.mean((model(x, mask) - target) ** 2)

    @nnx.jit
    def step(model, optimizer):
        optimizer.update(model, nnx.grad(loss)(model))

    model.eval()
    before = loss(model)
    model.train()
    for _ in range(100):
        step(model, optimizer)
    model.eval()
    assert loss(model) < before / 2

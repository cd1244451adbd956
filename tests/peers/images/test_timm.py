"""timm's poolings with our parameters: the same numbers and gradients. timm has no masks here, or they are PyTorch's."""

import functools

import head_formulas
import numpy as np
import pytest
import torch
from agreeing import assert_agree
from golden_heads.originals import installed
from pools import HEADS, Case, called

FUSED = {"use_fused_attn": lambda: True}
LsePlus1d, SimPool1d = installed("timm", "layers/other_pool.py", "LsePlus1d", "SimPool1d", given=FUSED)
NORMED = functools.partial(torch.nn.LayerNorm, eps=1e-6)


def simpool(arrays):
    norm = {"norm.weight": torch.ones(6).double(), "norm.bias": torch.zeros(6).double()}
    maps = {f"{part[0]}.weight": arrays[f"{part}_kernel"].reshape(6, 6).T for part in ("query", "key")}
    return called(SimPool1d(6, 2, norm_layer=NORMED), norm | maps, arrays["x"])


CASES = [
    Case(
        "LsePlus1d",
        {"x": (3, 5, 4), "scale": ()},
        lambda arrays: called(LsePlus1d(), {"r": arrays["scale"]}, arrays["x"]),
        lambda package, arrays: package.logsumexp_pooling(arrays["x"], None, arrays["scale"]),
        positive=("scale",),
    ),
    Case(
        "SimPool1d",
        {"x": (3, 5, 6)} | {name: HEADS[name] for name in ("query_kernel", "key_kernel")},
        simpool,
        lambda package, arrays: head_formulas.simpool(package, **arrays),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_same_parameters_give_the_same_numbers_and_gradients(case):
    assert_agree(case)


def test_simpools_power_does_not_depend_on_the_batch_as_its_authors_does():
    module = SimPool1d(1, gamma=2.0, norm_layer=torch.nn.Identity)
    parameters = {name: torch.zeros(1, 1).double() for name in ("q.weight", "k.weight")}
    x = torch.tensor([[[1.0], [3.0]], [[-9.0], [-9.0]]]).double()
    alone, beside = (called(module, parameters, part)[0].detach() for part in (x[:1], x))
    assert torch.equal(alone, beside)
    np.testing.assert_allclose(alone.numpy().ravel(), np.sqrt(2), rtol=1e-6)


def test_an_embedding_of_another_width_than_the_tokens_fails():
    given = FUSED | {"Mlp": torch.nn.Identity, "trunc_normal_tf_": torch.nn.init.trunc_normal_}
    latent = installed("timm", "layers/attention_pool.py", "AttentionPoolLatent", given=given)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        latent(2, embed_dim=3, num_heads=1)(torch.tensor([[[1.0, 2.0]]]))

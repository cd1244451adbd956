"""Numbers of heads with a learned query: from the sources' own code, run in float64 with these parameters.

They are big_vision's MAPHead and HF's Siglip head, timm's AttentionPoolLatent, open_clip's AttentionalPooler, CLIP's
AttentionPool2d, set_transformer's and PyG's PMA, V-JEPA's and AIM's probes. sines(k, shape) is sin(k), sin(k + 1), ... in that
shape; d = 4, two heads of two columns each; layer norms are not affine.
"""

import functools

import head_formulas
import jax
import numpy as np
import pytest
from flax import nnx
from packages import with_golden_numbers
from rounding import assert_printed

import attnpool_flax
import attnpool_ref
from attnpool_flax import linen

D, H = 4, 2


def sines(k, *shape):
    return np.sin(k + np.arange(np.prod(shape))).reshape(shape)


def heads(*names):
    """The kernels and biases of the heads."""
    found = {}
    for i, part in enumerate(("query", "key", "value")):
        found[f"{part}_kernel"] = sines(2 + i, D, D).reshape(D, H, D // H) / 2
        found[f"{part}_bias"] = sines(6 + i, D).reshape(H, D // H) / 4
    found["out_kernel"], found["out_bias"] = sines(5, D, D).reshape(H, D // H, D) / 2, sines(9, D) / 4
    return {name: found[name] for name in names or found}


X, QUERY = 2 * sines(0, 3, D), {"query": sines(1, 1, D)}
INNER = heads(*(f"{part}_{kind}" for part in ("query", "key", "value") for kind in ("kernel", "bias")))
MLP = {"mlp_kernel": sines(10, D, 8) / 2, "mlp_bias": sines(11, 8) / 4}
MLP |= {"mlp_out_kernel": sines(12, 8, D) / 2, "mlp_out_bias": sines(13, D) / 4}
OF_QUERY = {"mlp_kernel": sines(5, D, D) / 2, "mlp_bias": sines(9, D) / 4}
OF_PYG = {"input_kernel": np.eye(D), "input_bias": np.zeros(D)}
OF_PYG |= {"mlp_kernel": sines(14, D, D) / 2, "mlp_bias": sines(15, D) / 4}
OF_AIM = heads("key_kernel", "value_kernel") | {"mean": sines(16, D), "variance": 1 + sines(17, D) ** 2}
SPLIT = {"query": QUERY["query"].reshape(1, H, D // H)}

GOLDEN = [
    ("map_head", {}, QUERY | heads() | MLP, (0.219525, -0.155265, -0.387305, -0.263259)),
    ("map_head", {"activation": "gelu"}, QUERY | heads() | MLP, (0.219465, -0.155437, -0.387432, -0.263223)),
    ("attentional_pooler", {}, QUERY | heads(), (0.309915, 0.011764, -0.297202, -0.332922)),
    (
        "attention_pool_2d",
        {},
        heads() | {"position": sines(18, D, D) / 4},
        (0.116359, -0.162466, -0.291920, -0.152984),
    ),
    ("pma", {"variant": "author"}, QUERY | INNER | OF_QUERY, (0.304054, 0.369328, 0.345219, -0.029946)),
    ("pma", {"variant": "pyg"}, QUERY | heads() | OF_PYG, (0.908204, 0.758585, -0.086386, -0.851933)),
    ("attentive_probe", {"variant": "vjepa"}, QUERY | INNER | MLP, (1.268145, 1.787325, 0.774508, -1.157065)),
]
"""(formula, options, parameters, what the source gives)."""

MODULES = {
    "map_head": ("MAPHead", {"hidden_features": 8}),
    "attentional_pooler": ("AttentionalPooler", {"num_queries": 1}),
    "attention_pool_2d": ("AttentionPool2d", {"num_slots": 3}),
    "pma": ("PMA", {"num_queries": 1, "normalize": False}),
    "attentive_probe": ("AttentiveProbe", {"hidden_features": 8}),
}


every_head = pytest.mark.parametrize(
    ("name", "options", "parameters", "expected"), GOLDEN, ids=[" ".join([g[0], *g[1].values()]) for g in GOLDEN]
)


@with_golden_numbers
def test_the_pool_with_all_maps(package):
    assert_printed(
        package.multi_head_attention_pooling(X, **QUERY, **heads()),
        [(0.126091, -0.151092, -0.289362, -0.161593)],
    )


@with_golden_numbers
@every_head
def test_a_head_as_a_recipe_gives_what_its_source_gives(package, name, options, parameters, expected):
    result, _ = getattr(head_formulas, name)(package, X, **parameters, **options)
    assert_printed(np.ravel(result), expected)


@with_golden_numbers
def test_more_recipes_give_what_their_sources_give(package):
    """Timm's head without a norm layer, AIM's, and PMA's with the usual scale, which is not the authors'."""
    latent = head_formulas.attention_pool_latent(package, X, **QUERY, **heads(), **MLP)
    assert_printed(latent, [(0.233316, 0.099843, -0.125426, -0.235379)])
    aim, _ = head_formulas.attentive_probe(package, X, **SPLIT, **OF_AIM, variant="aim")
    assert_printed(aim, (0.210382, 0.294781, 0.129751, -0.131084))
    start = np.ravel(QUERY["query"]) @ INNER["query_kernel"].reshape(D, D) + np.ravel(INNER["query_bias"])
    hidden = start[None] + package.multi_head_attention_pooling(X, **QUERY, **INNER)
    usual = package.residual_feed_forward(hidden, *OF_QUERY.values(), normalize=False, activation="relu")
    assert_printed(usual, [(0.314721, 0.376757, 0.357281, -0.038892)])


@pytest.mark.thorough
@every_head
def test_a_module_gives_what_its_source_gives_in_nnx_and_in_linen(name, options, parameters, expected):
    module, sizes = MODULES[name]
    head = getattr(attnpool_flax, module)(in_features=D, num_heads=H, **sizes, **options, rngs=nnx.Rngs(0))
    nnx.update(head, parameters)
    nnx_result = head(X)
    assert_printed(np.ravel(nnx_result), expected)
    of_linen = getattr(linen, module)(num_heads=H, **sizes, **options)
    variables = nnx.to_pure_dict(nnx.state(head, nnx.Param))
    np.testing.assert_array_equal(of_linen.apply({"params": variables}, X), nnx_result)


@pytest.mark.thorough
def test_aims_module_gives_what_its_source_gives_and_keeps_its_statistics_apart():
    expected = (0.210382, 0.294781, 0.129751, -0.131084)
    head = attnpool_flax.AttentiveProbe(in_features=D, num_heads=H, variant="aim", rngs=nnx.Rngs(0))
    nnx.update(head, SPLIT | OF_AIM)
    assert_printed(head(X), expected)
    assert set(nnx.to_pure_dict(nnx.state(head, nnx.BatchStat))) == {"mean", "variance"}
    of_linen = linen.AttentiveProbe(num_heads=H, variant="aim")
    made = of_linen.init(jax.random.key(0), X)
    assert set(made) == {"params", "batch_stats"}
    assert set(made["batch_stats"]) == {"mean", "variance"}
    statistics = {key: OF_AIM[key] for key in made["batch_stats"]}
    parameters = SPLIT | {key: OF_AIM[key] for key in ("key_kernel", "value_kernel")}
    assert_printed(of_linen.apply({"params": parameters, "batch_stats": statistics}, X), expected)


def test_the_projection_that_v_jepas_checkpoints_hold_is_not_applied():
    """It is created, saved and never used (jepa issue 94); applied, the result would be another one."""
    name, options, parameters, expected = GOLDEN[-1]
    assert name == "attentive_probe"
    applied = functools.partial(head_formulas.attentive_probe, attnpool_ref, X, **options)
    wrong, _ = applied(**parameters | heads("out_kernel", "out_bias"))
    assert_printed(np.ravel(wrong), (0.984128, 1.134995, 0.242353, -0.873107), dtype="float64")
    right, _ = applied(**parameters)
    assert_printed(np.ravel(right), expected, dtype="float64")

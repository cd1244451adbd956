"""docs/public-code.md: its blocks, its formulas of transformers' heads, and its table of libraries at padding."""

import equinox
import jax
import keras
import numpy as np
import pytest
import torch
from documents import ROOT, assert_prints_what_it_says, python_blocks, section
from flax import linen, nnx
from imported import Pooling, Siglip2MultiheadAttentionPoolingHead, Siglip2VisionConfig, aggr
from pools import called
from pools_of_transformers import sized, x_vector
from torch.nn import functional

PAGE = (ROOT / "docs" / "public-code.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:std\\(\\)", "ignore:Argument alpha=1")
def test_the_blocks_of_the_page_print_what_they_say(capsys):
    assert_prints_what_it_says("\n".join(python_blocks(PAGE)), capsys)


@pytest.mark.parametrize(
    ("attention", "mask", "shown"),
    [("sdpa", [False, False], "[2. 4.] [0. 0.]"), (None, [True, False], "[2. 4.] [1. 3.]")],
    ids=["a fully masked row", "without its model"],
)
def test_the_head_of_siglip2_averages_padding_as_the_formula_of_the_page(attention, mask, shown):
    head = Siglip2MultiheadAttentionPoolingHead(sized(Siglip2VisionConfig, 2, 1, attention, intermediate_size=2))
    parameters = {name: torch.zeros_like(value).double() for name, value in head.named_parameters()}
    parameters["attention.in_proj_weight"][4:] = parameters["attention.out_proj.weight"][:] = torch.eye(2)
    x = torch.tensor([[[1.0, 3.0], [3.0, 5.0]]]).double()
    result = called(head, parameters, x, torch.tensor([mask])).detach().numpy()
    np.testing.assert_allclose(result.ravel(), [2, 4])
    assert f"# {shown}\n" in PAGE


@pytest.mark.filterwarnings("ignore:std\\(\\)")
def test_the_standard_deviation_of_one_frame_is_nan_in_an_x_vector():
    assert np.isnan(x_vector({"x": torch.ones(1, 1, 1)}, torch.ones(1, 1))[0, 1].item())


QUERY = np.ones((1, 1, 4), np.float32)


def of_jax(call):
    """A function of tokens [1, 3, 4] and a mask [1, 3]; ``call`` takes query, keys and a mask with an axis for queries."""
    return lambda x, mask: jax.jit(call)(QUERY, x, mask[:, None])


def of_torch(call):
    return lambda x, mask: call(torch.tensor(QUERY), torch.tensor(x), torch.tensor(mask)[:, None])


def with_a_head(attention):
    """Attention of arrays [..., tokens, heads, width], with one head."""
    return of_jax(
        lambda q, k, mask: attention(q[:, :, None], k[:, :, None], k[:, :, None], mask=mask[:, None])[:, :, 0]
    )


def linen_layer(q, k, mask):
    layer = linen.MultiHeadDotProductAttention(2, deterministic=True)
    return layer.apply(layer.init(jax.random.key(0), q, k), q, k, k, mask=mask[:, None])


def nnx_layer(q, k, mask):
    return nnx.MultiHeadAttention(2, 4, decode=False, deterministic=True, rngs=nnx.Rngs(0))(q, k, k, mask=mask[:, None])


def torch_layer(need_weights):
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    return of_torch(lambda q, k, m: layer(q, k, k, key_padding_mask=~m[:, 0], need_weights=need_weights)[0])


def keras_layer(make, **more):
    keras.utils.set_random_seed(0)
    layer = make()

    def call(q, k, mask):
        result = layer(q, k, k, attention_mask=mask, **more)
        return result[0] if more else result

    return of_torch(call)


def packed(aggregation):
    """PyG's aggregation of the real tokens alone."""
    return lambda x, mask: aggregation(torch.tensor(x[mask]), torch.zeros(mask.sum(), dtype=torch.long), dim_size=1)


def mode_of_pooling(mode):
    def pool(x, mask):
        features = {"token_embeddings": torch.tensor(x), "attention_mask": torch.tensor(mask).long()}
        return Pooling(4, mode)(features)["sentence_embedding"]

    return pool


def model_card(x, m):
    x, m = torch.tensor(x), torch.tensor(m)[..., None].float()
    return (x * m).sum(1) / m.sum(1).clamp(min=1e-9)


def keras_heads():
    return keras.layers.MultiHeadAttention(2, 2)


FUNCTIONS = {
    "`linen.dot_product_attention`": with_a_head(linen.dot_product_attention),
    "`linen.MultiHeadDotProductAttention`": of_jax(linen_layer),
    "`nnx.dot_product_attention`": with_a_head(nnx.dot_product_attention),
    "`nnx.MultiHeadAttention`": of_jax(nnx_layer),
    "`jax.nn.dot_product_attention`": with_a_head(jax.nn.dot_product_attention),
    "`jax.nn.softmax(where=)`": lambda x, mask: jax.nn.softmax(x, 1, where=mask[..., None]),
    "`MultiheadAttention`": of_jax(
        jax.vmap(lambda q, k, m: equinox.nn.MultiheadAttention(2, 4, inference=True, key=jax.random.key(0))(q, k, k, m))
    ),
    "`MultiheadAttention`, `need_weights=True`": torch_layer(True),
    "`MultiheadAttention`, `need_weights=False`": torch_layer(False),
    "`F.scaled_dot_product_attention`": of_torch(lambda q, k, m: functional.scaled_dot_product_attention(q, k, k, m)),
    "`torch.masked.mean`": lambda x, mask: torch.masked.mean(
        torch.tensor(x), 1, mask=torch.tensor(mask)[..., None].expand(x.shape)
    ),
    "`Attention`": of_torch(lambda q, k, m: keras.layers.Attention()([q, k], mask=[None, m[:, 0]])),
    "`AdditiveAttention`": of_torch(lambda q, k, m: keras.layers.AdditiveAttention()([q, k], mask=[None, m[:, 0]])),
    "`MultiHeadAttention`": keras_layer(keras_heads),
    "`MultiHeadAttention`, `return_attention_scores=True`": keras_layer(keras_heads, return_attention_scores=True),
    "`GlobalAveragePooling1D`": lambda x, mask: keras.layers.GlobalAveragePooling1D()(x, mask=torch.tensor(mask)),
    "`MeanAggregation`": packed(aggr.MeanAggregation()),
    "`MaxAggregation`": packed(aggr.MaxAggregation()),
    "`SoftmaxAggregation`": packed(aggr.SoftmaxAggregation()),
    "`AttentionalAggregation`": packed(aggr.AttentionalAggregation(torch.nn.Linear(4, 1))),
    **{f'`Pooling("{mode}")`': mode_of_pooling(mode) for mode in ("mean", "max", "cls", "lasttoken")},
    "`numpy.ma.masked_array(x, ~mask).mean(-2).filled(0)`": lambda x, mask: (
        np.ma.masked_array(x, np.broadcast_to(~mask[..., None], x.shape)).mean(-2).filled(0)
    ),
    "mean of model cards: `(x * m).sum(1) / m.sum(1).clamp(min=1e-9)`": model_card,
}
LINES = section(PAGE, "Padding, and rows without real tokens").splitlines()
TABLE = [[cell.strip() for cell in line.split("|")[2:5]] for line in LINES if line.startswith("|")][2:]
SAID = {name: (at_padding, without_tokens) for name, at_padding, without_tokens in TABLE}
"""Results for NaN at padding and without a real token, by function, as the table of the page says them."""

ALIKE = np.full((1, 3, 4), 2, np.float32)
"""Equal tokens, so that an average of padding is any of them."""


def result(name, x, mask):
    with np.errstate(all="ignore"):
        found = FUNCTIONS[name](x, np.array([mask]))
    return np.asarray(found.detach() if isinstance(found, torch.Tensor) else found)


def test_the_table_has_all_functions():
    assert FUNCTIONS.keys() == SAID.keys()
    assert len(TABLE) == len(SAID)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_does_what_the_table_says(name):
    at_padding, without_tokens = SAID[name]
    clean, first = result(name, ALIKE, [True, True, False]), [True, True, False]
    assert np.isfinite(clean).all() and clean.any()
    for value in (np.nan, np.inf):
        x = ALIKE.copy()
        x[0, 2] = value
        found = result(name, x, first)
        if at_padding == "NaN":
            assert np.isnan(found).any()
        else:
            np.testing.assert_array_equal(found, clean)
    empty = result(name, ALIKE, [False] * 3)
    if without_tokens == "padding":
        np.testing.assert_allclose(empty, result(name, ALIKE, [True] * 3), rtol=1e-6)
    else:
        np.testing.assert_array_equal(empty, np.full_like(empty, float(without_tokens)))

"""What does not fit a module is refused by name."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from flax import nnx
from modules.cases import CASES, NNX, both_kinds, constructor

import attnpool_flax
from attnpool_flax import linen
from attnpool_flax.modules.sentences import SentencePool


def nnx_of(name, **sizes):
    return lambda: getattr(attnpool_flax, name)(**sizes, rngs=nnx.Rngs(0))


def linen_of(name, *data, **sizes):
    return lambda: getattr(linen, name)(**sizes).init(jax.random.key(0), *data)


TOKENS = np.ones((5, 4), np.float32)

REFUSED = {
    ValueError: {
        "AttentionPool: `query` [d] needs `in_features`, which is None": nnx_of("AttentionPool", in_features=None),
        "AttentionPool: `in_features` is 0, needs an integer of at least 1": nnx_of("AttentionPool", in_features=0),
        "AttentionPool: `in_features` is 2147483648, needs an integer of at most 2147483647": nnx_of(
            "AttentionPool", in_features=2**31
        ),
        f"MultiHeadAttentionPool: `num_queries` is {2**70}, needs an integer of at most 2147483647": nnx_of(
            "MultiHeadAttentionPool", in_features=4, num_heads=2, num_queries=2**70
        ),
        "`in_features` is 4.0, needs an integer of at least 1": nnx_of("AttentionPool", in_features=4.0),
        "`qk_features` is True, needs an integer": nnx_of("AttentionPool", in_features=4, qk_features=True),
        "WeightedPool: `num_slots` is -1, needs an integer of at least 0": nnx_of("WeightedPool", num_slots=-1),
        "CrossAttentionPool: `x_kernel` [d, c] needs `qk_features`, which is None": nnx_of(
            "CrossAttentionPool", x_features=4
        ),
        "CrossAttentionPool: `qk_features` needs `x_features`, `y_features` or both": nnx_of(
            "CrossAttentionPool", qk_features=4
        ),
        "CrossAttentionPool: `x_kernel` needs `rngs`, such as `rngs=nnx.Rngs(0)`": lambda: (
            attnpool_flax.CrossAttentionPool(x_features=4, qk_features=3)
        ),
        "CrossAttentionPool: `y_kernel` [e, c] needs `qk_features`, which is None": linen_of(
            "CrossAttentionPool", TOKENS, TOKENS, y_features=4
        ),
        "MultiHeadAttention: `qkv_features` is 4, needs a multiple of `num_heads`, 3": nnx_of(
            "MultiHeadAttention", num_heads=3, query_features=4
        ),
        "MultiHeadAttentionPool: `use_bias` is ('bias',), needs True, False or a tuple of query_bias, key_bias, value_bias, "
        "out_bias": nnx_of("MultiHeadAttentionPool", num_heads=2, in_features=4, use_bias=("bias",)),
        "PMA: `use_bias` is ('out_bias',), needs True, False or a tuple of query_bias, key_bias, value_bias": linen_of(
            "PMA", TOKENS, num_heads=2, num_queries=3, use_bias=("out_bias",)
        ),
        "AttentiveProbe: `use_bias` is ('query_bias',), needs True or False, as the module has no biases with "
        "`variant` 'aim'": nnx_of(
            "AttentiveProbe", num_heads=2, in_features=4, variant="aim", use_bias=("query_bias",)
        ),
        "AttentiveProbe: `variant` is 'jepa', needs one of 'vjepa', 'aim'": nnx_of(
            "AttentiveProbe", num_heads=2, in_features=4, variant="jepa"
        ),
        "AttentiveProbe: `mlp_kernel` [d, f] needs `hidden_features`, which is None": nnx_of(
            "AttentiveProbe", num_heads=2, in_features=4
        ),
        "attention_pool_2d: `x` has 5 tokens, needs 3, as `position` has 4 vectors": linen_of(
            "AttentionPool2d", TOKENS, num_heads=2, num_slots=3
        ),
        "`num_heads` is 0, needs an integer": nnx_of("MultiHeadAttentionPool", num_heads=0, in_features=4),
        "MultiHeadAttention: `qkv_features` is 5, needs a multiple of `num_heads`, 2": linen_of(
            "MultiHeadAttention", TOKENS, TOKENS, TOKENS, num_heads=2, qkv_features=5
        ),
        "`field_features` is 0, needs": nnx_of("FieldAttentionPool", target_features=4, field_features=0),
        "needs `num_slots`, which is None": linen_of("LocationScore", TOKENS, TOKENS, num_slots=None),
        "field_attention_pooling: `kernel` has shape (3, 8)": linen_of(
            "FieldAttentionPool", TOKENS[0], TOKENS, num_fields=3
        ),
        "attention_pooling: `x` has shape (4,), needs [..., L, d]": linen_of("AttentionPool", TOKENS[0]),
        "`qk_features` is 0, needs an integer of at least 1": linen_of("AttentionPool", TOKENS, qk_features=0),
        "AttentionPool: `in_features` is 3, but `x` has 4: its shape is (5, 4)": lambda: attnpool_flax.AttentionPool(
            3, rngs=nnx.Rngs(0)
        )(TOKENS),
        "MultiHeadAttentionPool: `num_queries` is 0, needs an integer of at least 1; None makes one query, without an axis for it": nnx_of(
            "MultiHeadAttentionPool", num_heads=2, in_features=4, num_queries=0
        ),
        "CrossAttentionPool: `reduction` is 'avg', needs one of 'sum', 'mean', 'max'": lambda: (
            attnpool_flax.CrossAttentionPool(reduction="avg")
        ),
        "CrossAttentionPool: `reduction` is 'mode', needs one of 'sum', 'mean', 'max'": lambda: (
            linen.CrossAttentionPool(reduction="mode")
        ),
        'AttentionPool: `dropout_rate` needs `rngs` with a stream "dropout", such as `nnx.Rngs(0, dropout=1)`': lambda: (
            attnpool_flax.AttentionPool(4, dropout_rate=0.5, rngs=nnx.Rngs(params=0))
        ),
        "cross_attention_pooling: `x_mask` has dtype float32": lambda: attnpool_flax.CrossAttentionPool()(
            TOKENS, TOKENS, TOKENS[:, 0]
        ),
    },
    TypeError: {
        "missing 1 required positional argument: 'in_features'": nnx_of("AttentionPool"),
        "attention_pooling: `x` is None, needs an array": linen_of("AttentionPool", None),
        "AttentionPool: takes `in_features` from the first input in Linen: leave it out": lambda: linen.AttentionPool(
            in_features=8
        ),
        "MAPHead: takes keys in `init` and `apply` in Linen: leave `rngs` out": lambda: linen.MAPHead(
            num_heads=2, hidden_features=8, rngs=nnx.Rngs(0)
        ),
        "AdditiveAttentionPool: sizes are passed by keyword: `AdditiveAttentionPool(hidden_features=hidden_features)`; takes "
        "`in_features` from the first input in Linen: leave it out": lambda: linen.AdditiveAttentionPool(8, 4),
        "CrossAttentionPool: sizes are passed by keyword: `CrossAttentionPool(x_features=4, y_features=6, qk_features=8)`": lambda: (
            attnpool_flax.CrossAttentionPool(4, 6, 8)
        ),
        "AttentionPool: sizes are passed by keyword: `AttentionPool(in_features=4, qk_features=8, rngs=rngs)`": lambda: (
            attnpool_flax.AttentionPool(4, 8, nnx.Rngs(0))
        ),
        "unexpected keyword argument 'in_features'; did you mean `x_features` or `y_features`?": lambda: (
            attnpool_flax.CrossAttentionPool(in_features=4)
        ),
        "MAPHead: always has one query; `MultiHeadAttentionPool` and other heads take `num_queries`": nnx_of(
            "MAPHead", num_queries=None
        ),
        "unexpected keyword argument 'mask'; did you mean `x_mask` or `y_mask`?": lambda: (
            attnpool_flax.CrossAttentionPool()(TOKENS, TOKENS, mask=None)
        ),
        "AttentionPool.__call__() got an unexpected keyword argument 'train'; did you mean `deterministic=not train`?": lambda: (
            attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0))(TOKENS, train=True)
        ),
        "takes from 2 to 3 positional arguments but 4 were given; passed by keyword: `lengths=`, `segment_ids=`": linen_of(
            "AttentionPool", TOKENS, None, True
        ),
    },
}
"""Calls by the error and a part of its message."""


@pytest.mark.parametrize(("error", "message"), [(error, message) for error in REFUSED for message in REFUSED[error]])
def test_what_does_not_fit_is_refused_by_name(error, message):
    with pytest.raises(error, match=re.escape(message)):
        REFUSED[error][message]()


@pytest.mark.parametrize("case", [case for case in CASES if not case.title], ids=str)
def test_a_seed_in_place_of_rngs_is_refused(case):
    with pytest.raises(
        TypeError, match=re.escape(f"{case.module}: `rngs` is an int, needs an nnx.Rngs, such as `nnx.")
    ):
        NNX.build(case, rngs=7)


FLOATING = "needs one of float16, bfloat16, float32, float64"

WRONG = {
    "dropout_rate": {value: f"{value!r}, needs a number from 0 to 1" for value in ("a", True, -0.5, 1.5)},
    "dtype": {"int8": f"int8, {FLOATING}", "complex64": f"complex64, {FLOATING}", "none": f"'none', {FLOATING}"},
    "param_dtype": {"int8": f"int8, {FLOATING}", "complex64": f"complex64, {FLOATING}", None: f"None, {FLOATING}"},
    **{key: {"a": "'a', needs a number", True: "True, needs a number"} for key in ("epsilon", "scale", "p")},
}
"""Wrong values of the constructors' arguments, each with the end of its message."""


@pytest.mark.parametrize("case", [case for case in CASES if not case.title], ids=str)
@both_kinds
def test_rates_dtypes_and_numbers_that_are_none_are_refused_when_a_module_is_made(case, kind):
    arguments = constructor(getattr(attnpool_flax if kind is NNX else linen, case.module))
    assert "dtype" in arguments
    for key in WRONG.keys() & arguments.keys():
        case = replace(case, options={name: value for name, value in case.options.items() if name != key})
        for value, message in WRONG[key].items():
            with pytest.raises(ValueError, match=f"^{case.module}: `{key}` is {re.escape(message)}$"):
                kind.build(case, **{key: value})


@pytest.mark.parametrize("package", [attnpool_flax, linen], ids=["nnx", "linen"])
def test_a_module_refuses_a_scale_of_0_without_the_mean_in_the_functions_words(package):
    with pytest.raises(ValueError, match="`scale` has the value 0") as theirs:
        attnpool_flax.logsumexp_pooling(TOKENS, scale=0.0, mean=False)
    message = str(theirs.value).replace("logsumexp_pooling", "LogSumExpPool")
    for zero in (0, 0.0, np.float32(0)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            package.LogSumExpPool(scale=zero, mean=False)
        package.LogSumExpPool(scale=zero)


@pytest.mark.parametrize("package", [attnpool_flax, linen], ids=["nnx", "linen"])
def test_a_module_refuses_an_activation_that_its_norm_excludes_in_the_functions_words(package):
    network = {"kernel": np.ones((4, 2), np.float32), "out_kernel": np.ones(2, np.float32)}
    with pytest.raises(ValueError, match="`norm_scale` is given with `activation` 'relu'") as theirs:
        attnpool_flax.attentive_statistics_pooling(TOKENS, **network, norm_scale=TOKENS[0, :2], activation="relu")
    message = str(theirs.value).replace("attentive_statistics_pooling", "AttentiveStatisticsPool")
    made = {"in_features": 4, "rngs": nnx.Rngs(0)} if package is attnpool_flax else {}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        package.AttentiveStatisticsPool(use_norm=True, activation="relu", **made)
    package.AttentiveStatisticsPool(use_norm=True, **made)
    package.AttentiveStatisticsPool(activation="relu", **made)


def test_a_pool_of_sentences_refuses_a_dtype_that_is_not_floating():
    for pool, made in ((SentencePool, {"rngs": nnx.Rngs(0)}), (linen.SentencePool, {})):
        with pytest.raises(ValueError, match=f"^SentencePool: `param_dtype` is int8, {FLOATING}$"):
            pool((), param_dtype="int8", **made)


@pytest.mark.parametrize(
    ("sink", "options", "text"),
    [
        ("lerned", {}, "`sink` is 'lerned', needs one of 'learned'"),
        (True, {}, "`sink` is True, needs a number"),
        (np.zeros(3), {}, r"`sink` has shape \(3,\), needs None, a number or 'learned'"),
        ("learned", {"normalizer": "sigmoid"}, "`sink` is given with `normalizer` 'sigmoid', needs 'softmax'"),
    ],
)
def test_a_sink_of_a_module_is_a_number_or_learned_beside_a_softmax(sink, options, text):
    with pytest.raises(ValueError, match=f"AttentionPool: {text}"):
        attnpool_flax.AttentionPool(4, sink=sink, **options, rngs=nnx.Rngs(0))

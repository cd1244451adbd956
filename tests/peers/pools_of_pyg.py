"""PyTorch Geometric's aggregations."""

import head_formulas
import numpy as np
import torch
from imported import PoolingByMultiheadAttention, aggr
from pools import HEADS, INDEX, MASK, REAL, Case, called, linear, of_heads, prefixed

import attnpool_ref
from attnpool_flax.modules import probes

X = {"x": (3, 5, 4)}


def packed(aggregation):
    """What an aggregation without parameters makes of the real tokens."""
    return lambda arrays: aggregation(arrays["x"][REAL], INDEX, dim_size=3)


def of_packed(name, **options):
    """Our function of packed tokens, in the same layout."""

    def pool(package, arrays):
        return getattr(package, f"segment_{name}")(arrays["x"][np.nonzero(MASK)], INDEX.numpy(), 3, **options)

    return pool


def softmax(arrays):
    return called(aggr.SoftmaxAggregation(learn=True, channels=4), {"t": arrays["scale"]}, arrays["x"][REAL], INDEX)


def power_mean(arrays):
    module = aggr.PowerMeanAggregation(learn=True, channels=4)
    return called(module, {"p": arrays["p"]}, arrays["x"][REAL], INDEX)


def attentional(gates):
    def pool(arrays):
        module = aggr.AttentionalAggregation(torch.nn.Linear(4, gates), torch.nn.Linear(4, 4))
        parameters = prefixed("gate_nn", linear(arrays, "gate")) | prefixed("nn", linear(arrays, "value"))
        return called(module, parameters, arrays["x"][REAL], INDEX)

    return pool


def set2set(arrays):
    lstm = {"weight_ih_l0": arrays["input_kernel"].T, "weight_hh_l0": arrays["recurrent_kernel"].T}
    lstm |= {"bias_ih_l0": arrays["bias"], "bias_hh_l0": torch.zeros_like(arrays["bias"])}
    return called(aggr.Set2Set(4, 3), prefixed("lstm", lstm), arrays["x"][REAL], INDEX, dim_size=3)


def pma(normalize):
    def pool(arrays):
        module = PoolingByMultiheadAttention(6, 2, 2, layer_norm=normalize)
        parameters = prefixed("lin", linear(arrays, "input")) | {"seed": arrays["query"][None]}
        parameters |= prefixed("mab.attn", of_heads(arrays)) | prefixed("mab.lin", linear(arrays, "mlp"))
        for ours, theirs in (("norm", "layer_norm1"), ("mlp_norm", "layer_norm2")) if normalize else ():
            parameters[f"mab.{theirs}.weight"] = arrays[f"{ours}_scale"]
            parameters[f"mab.{theirs}.bias"] = arrays[f"{ours}_bias"]
        return called(module, parameters, arrays["x"], REAL)

    return pool


def our_pma(package, arrays):
    if package is attnpool_ref:
        return head_formulas.pma(package, mask=MASK, variant="pyg", **arrays)[0]
    return probes.pma(mask=MASK, variant="pyg", **arrays)


SQUARE = {"input_kernel": (6, 6), "input_bias": (6,), "mlp_kernel": (6, 6), "mlp_bias": (6,)}
NORMS = {f"{name}_{part}": (6,) for name in ("norm", "mlp_norm") for part in ("scale", "bias")}
PMA = {"x": (3, 5, 6), "query": (2, 6)} | HEADS | SQUARE
VALUE = {"value_kernel": (4, 4), "value_bias": (4,)}
LSTM = {"input_kernel": (8, 16), "recurrent_kernel": (4, 16), "bias": (16,)}

CASES = [
    *(
        Case(f"{title}Aggregation", X, packed(getattr(aggr, f"{title}Aggregation")()), of_packed(name))
        for title, name in (
            ("Sum", "sum_pooling"),
            ("Mean", "mean_pooling"),
            ("Max", "max_pooling"),
            ("Min", "min_pooling"),
            ("Std", "std_pooling"),
        )
    ),
    Case(
        "VarAggregation",
        X,
        packed(aggr.VarAggregation()),
        lambda package, arrays: of_packed("std_pooling")(package, arrays) ** 2,
    ),
    Case(
        "SoftmaxAggregation, t for each feature",
        X | {"scale": (4,)},
        softmax,
        lambda package, arrays: of_packed("softmax_pooling", scale=arrays["scale"])(package, arrays),
    ),
    Case(
        "PowerMeanAggregation, p for each feature",
        X | {"p": (4,)},
        power_mean,
        lambda package, arrays: of_packed("power_mean_pooling", p=arrays["p"])(package, arrays),
        positive=("x", "p"),
    ),
    Case(
        "AttentionalAggregation",
        X | {"gate_kernel": (4,), "gate_bias": (1,)} | VALUE,
        attentional(1),
        lambda package, arrays: package.weighted_pooling(
            arrays["x"] @ arrays["value_kernel"] + arrays["value_bias"],
            package.masked_softmax(arrays["x"] @ arrays["gate_kernel"] + arrays["gate_bias"], MASK),
            MASK,
        ),
    ),
    Case(
        "AttentionalAggregation, a gate for each feature",
        X | {"gate_kernel": (4, 4), "gate_bias": (4,)} | VALUE,
        attentional(4),
        lambda package, arrays: package.weighted_pooling(
            arrays["x"] @ arrays["value_kernel"] + arrays["value_bias"],
            package.masked_softmax(arrays["x"] @ arrays["gate_kernel"] + arrays["gate_bias"], MASK[..., None], axis=-2),
            MASK,
        ),
    ),
    *(
        Case(
            f"QuantileAggregation, {q}",
            X,
            packed(aggr.QuantileAggregation(q)),
            lambda package, arrays, q=q: package.quantile_pooling(arrays["x"], MASK, q),
        )
        for q in (0.25, 0.5)
    ),
    Case(
        "Set2Set",
        X | LSTM,
        set2set,
        lambda package, arrays: of_packed("set2set_pooling", num_steps=3, **{name: arrays[name] for name in LSTM})(
            package, arrays
        ),
    ),
    Case("PoolingByMultiheadAttention", PMA | NORMS, pma(True), our_pma),
    Case("PoolingByMultiheadAttention, layer_norm=False", PMA, pma(False), our_pma),
]

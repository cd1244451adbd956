"""The node cases of ONNX's operator ``Attention``, as queries, keys, values, one mask and one bias.

The cases are what ONNX's own functions hand to its ``expect``, the expanded function bodies excluded. All that the operator
says about who sees whom (a cache, causality, a window, lengths, a mask of booleans or of floats) becomes one boolean mask;
what a mask of floats says beside its minus infinities becomes a bias.
"""

import functools
from dataclasses import dataclass
from unittest import mock

import numpy as np
import onnx
from onnx.backend.test.case.node import attention
from onnx.reference.ops.op_attention import _compute_attention

from attnpool_ref.conformance.checks import tolerances


@dataclass(frozen=True)
class Case:
    """One node with its inputs and outputs.

    Attributes:
      name: ONNX's name for it.
      attributes: of the node.
      inputs: the arrays by the operator's names.
      outputs: likewise.
    """

    name: str
    attributes: dict
    inputs: dict
    outputs: dict

    def __str__(self):
        return self.name.removeprefix("test_attention_")

    @property
    def dtype(self):
        return self.inputs["Q"].dtype.name

    @property
    def softcap(self):
        return self.attributes.get("softcap", 0.0)

    @property
    def scale(self):
        """A float, or None for one over the root of the width."""
        return self.attributes.get("scale")


def _arrays(names, arrays):
    return dict(zip([name for name in names if name], arrays, strict=True))


@functools.cache
def cases():
    """All of them, by name; their random numbers are the same in each process."""
    found = {}

    def expect(node, inputs, outputs, name, **_):
        attributes = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
        found[name] = Case(name, attributes, _arrays(node.input, inputs), _arrays(node.output, outputs))

    state = np.random.get_state()
    np.random.seed(0)
    with mock.patch.object(attention, "expect", expect):
        for name, export in vars(attention.Attention).items():
            if name.startswith("export"):
                export.__func__()
    np.random.set_state(state)
    return found


def in_float64(case):
    """Its result by ONNX's reference implementation on the same inputs in float64."""
    wide = {name: x.astype(np.float64) if x.dtype.name in tolerances.EPSILON else x for name, x in case.inputs.items()}
    options = {name: value for name, value in case.attributes.items() if name != "softmax_precision"}
    return _compute_attention(**wide, **options)[0]


@dataclass(frozen=True)
class Normal:
    """A case in the words of `dot_product_attention`.

    Attributes:
      query: [B, H, n, d].
      key: [B, H, m, d], what was cached in front; each head stands as often as queries share it.
      value: [B, H, m, v], likewise.
      mask: [B, H, n, m], boolean.
      bias: [B, H, n, m] of the queries' dtype, finite, or None.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    mask: np.ndarray
    bias: np.ndarray | None

    @property
    def empty(self):
        """[B, H, n], True where a query sees no key."""
        return ~self.mask.any(-1)


def normalize(case):
    """The same attention with nothing but a mask and a bias."""
    heads = case.attributes.get("q_num_heads"), case.attributes.get("kv_num_heads")
    query = _to_heads(case.inputs["Q"], heads[0])
    key, value = (_to_heads(case.inputs[name], heads[1]) for name in "KV")
    if "past_key" in case.inputs:
        key = np.concatenate([case.inputs["past_key"], key], 2)
        value = np.concatenate([case.inputs["past_value"], value], 2)
    key, value = (np.repeat(x, query.shape[1] // x.shape[1], 1) for x in (key, value))
    shape = (*query.shape[:3], key.shape[2])
    mask, bias = _who_sees_whom(case, shape), None
    given = case.inputs.get("attn_mask")
    if given is not None:
        beyond = [(0, 0)] * (given.ndim - 1) + [(0, shape[-1] - given.shape[-1])]
        seen = given if given.dtype == bool else ~np.isneginf(given)
        mask = mask & np.pad(seen, beyond)  # keys beyond the mask's end are padding
        if given.dtype != bool:
            bias = np.broadcast_to(np.pad(np.where(seen, given, given.dtype.type(0)), beyond), shape)
    return Normal(query, key, value, mask, bias)


def _to_heads(x, heads):
    """[B, L, H·c] to [B, H, L, c]; what has heads stays."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def from_heads(case, result):
    """[B, H, n, v] in the layout of the case's Y."""
    if case.inputs["Q"].ndim == 4:
        return result
    return np.swapaxes(result, 1, 2).reshape(case.outputs["Y"].shape)


def _who_sees_whom(case, shape):
    """[B, H, n, m] by causality, window and lengths. A query's place counts what lies before its block of queries."""
    batch, _, n, m = shape
    lengths = case.inputs.get("nonpad_kv_seqlen")
    if lengths is not None:
        before = lengths - n
    else:
        before = np.full(batch, case.inputs["past_key"].shape[2] if "past_key" in case.inputs else 0)
    ahead = np.arange(m) - (before[:, None] + np.arange(n))[..., None]  # of a key before its query
    mask = np.ones((batch, n, m), bool)
    if case.attributes.get("is_causal"):
        mask &= ahead <= 0
    left, right = (case.attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
    if left >= 0:
        mask &= ahead >= -left
    if right >= 0:
        mask &= ahead <= right
    if lengths is not None:
        mask &= np.arange(m) < lengths[:, None, None]
    return np.broadcast_to(mask[:, None], shape)


def terms(normal):
    """How many terms the longest chain of sums has: over the width, over the keys twice, and what stands between."""
    return normal.query.shape[-1] + 2 * normal.key.shape[2] + 8

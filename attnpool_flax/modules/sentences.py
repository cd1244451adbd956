"""Pooling stages of sentence-transformers models: the module SentencePool, and its function."""

from dataclasses import KW_ONLY, InitVar, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.typing import Dtype, PrecisionLike

from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.call.prepare import as_array, resolve_precision, result_dtype
from attnpool_flax.layers import layer_norm, mapped
from attnpool_flax.masks import lengths_to_mask, token_positions
from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.modules.parameters import KERNEL_INIT, Shaped, cast, check_dtypes
from attnpool_flax.modules.specs import Parameter
from attnpool_flax.normalizers import l2_normalize
from attnpool_flax.numerics.elementwise import OF_SCORES
from attnpool_flax.numerics.sums import computing_dtype
from attnpool_flax.pooling import first_pooling, last_pooling, max_pooling, mean_pooling, weighted_pooling
from attnpool_ref import contract
from attnpool_ref.formats import sentences

_INITIALIZERS = {
    "bias": nnx.initializers.zeros,
    "scale": nnx.initializers.ones,
    "layer_weights": nnx.initializers.ones,
}
"""Initializers of parameters that are not kernels."""

_OF_TOKENS = FUNCTIONS["mean_pooling"]
_ROW = replace(_OF_TOKENS.row, name="SentencePool")
"""Row by which tokens, mask and lengths are checked: that of mean_pooling, with the module's name in messages."""

ACTIVATIONS = OF_SCORES | {"silu": jax.nn.silu, "sigmoid": jax.nn.sigmoid}


@constructor_from_fields
class SentencePool(PoolingModule):
    """Pooling stages of a sentence-transformers model, applied in order.

    :func:`attnpool_flax.load` makes one from the model's folder. Dense layers and normalizations before the pooling, or
    without one, as in ColBERT and PyLate, apply to each token. Parameters, where i is the stage's number from 0:
    ``kernel_i`` [d, o], ``bias_i`` [o] and ``residual_kernel_i`` [d, o] of a dense layer from width d to o; ``scale_i``
    [d] and ``bias_i`` [d] of a layer normalization; ``layer_weights_i`` [k] of a mean of k layers of the encoder.

    Args:
      stages: the stages in order, each a :class:`attnpool_ref.formats.sentences.Stage`.

    >>> from attnpool_ref.formats.sentences import Stage
    >>> pool = SentencePool((Stage("pooling", modes=("mean", "max")), Stage("normalize")), rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 8)
    """

    stages: tuple
    _: KW_ONLY
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    rngs: InitVar[nnx.Rngs]

    @classmethod
    def _check(cls, given):
        check_dtypes("SentencePool", given)

    @classmethod
    def _resolved(cls, given):
        return given

    @classmethod
    def _shaped(cls, given):
        """Returns the parameters of all stages, named as in the class docstring, with the shapes in each stage."""
        shaped = {}
        for number, stage in enumerate(given["stages"]):
            for kind, shape in stage.shapes:
                name = f"{kind}_{number}"
                shaped[name] = Shaped(
                    Parameter(name, (), _INITIALIZERS.get(kind, KERNEL_INIT)), (), shape, present=True
                )
        return shaped

    def __call__(self, x, mask=None, prompt_length=0, *, lengths=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens; [layers, ..., L, d] if the first stage is a mean of layers.
          mask: bool, broadcastable to [..., L], True = real; None if all are.
          prompt_length: the number of first real tokens that are left out because they are a prompt, such as
            "query: "; it has no effect unless the model's pooling leaves prompts out (``include_prompt`` is False).
          lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

        Returns:
          [..., o], where o is the width after the last stage; without a pooling [..., L, o], 0 at padding.
        """
        values = self._values()
        return sentence_pool(cast(x, self.dtype), mask, lengths, prompt_length, self.stages, values, self.precision)


def sentence_pool(x, mask, lengths, prompt_length, stages, parameters, precision):
    """Pools the tokens of an encoder, and applies the layers before and after the pooling, stage by stage.

    Args:
      x: [..., L, d] tokens; with a stage "layers" [layers, ..., L, d], the tokens of all the encoder's layers.
      mask: bool [..., L] or None.
      lengths: the numbers of real tokens, int [...] or (), in place of the mask, or None.
      prompt_length: the number of the prompt's tokens, which are the first real tokens; a stage "pooling" whose
        ``include_prompt`` is False leaves them out.
      stages: the stages in order, each a :class:`attnpool_ref.formats.sentences.Stage`.
      parameters: arrays by name; each name ends with the stage's number from 0, such as "kernel_2".
      precision: the precision of matrix products, or None.

    Returns:
      [..., o], where o is the width after the last stage; without a pooling [..., L, o], 0 at padding.

    Raises:
      ValueError: an argument has a wrong shape, dtype or value, or its width is not that of a stage's parameters.
      TypeError: an argument is not an array of numbers.
    """
    x, mask, lengths = _checked(x, mask, lengths, stages[0].kind == "layers")
    prompt_length = _checked_prompt(prompt_length)
    precision = resolve_precision(_ROW.name, precision, computing_dtype(x.dtype))  # products are of float32 or wider
    shape = x.shape[1 if stages[0].kind == "layers" else 0 : -1]
    if lengths is not None:
        mask = lengths_to_mask(lengths, shape[-1])
    ranks = token_positions(jnp.ones(shape, bool) if mask is None else jnp.broadcast_to(mask, shape))  # -1 is padding
    if stages[0].kind in ("dense", "normalize"):  # padding must not reach the gradient of the kernels
        x = jnp.where((ranks >= 0)[..., None], x, 0)
    for number, stage in enumerate(stages):
        own = {name: parameters[f"{name}_{number}"] for name, _ in stage.shapes}
        _check_width(x, stage, number)
        if stage.kind == "layers":
            x = _mean_of_layers(x, ranks, stage, own["layer_weights"], precision)
        elif stage.kind == "pooling":
            pooled = ranks >= (0 if stage.include_prompt else prompt_length)  # the rank of padding is -1
            x = jnp.concatenate([_POOLINGS[mode](x, pooled, ranks, precision) for mode in stage.modes], -1)
        elif stage.kind == "dense":
            x = _dense(x, stage, precision, **own)
        elif stage.kind == "layer_norm":
            x = layer_norm(x, own["scale"], own["bias"], epsilon=sentences.EPSILON)
        else:
            x = l2_normalize(x)
    return x if sentences.vector_of(stages) == sentences.VECTOR else jnp.where((ranks >= 0)[..., None], x, 0)


def _checked(x, mask, lengths, layered):
    """Converts tokens, mask and lengths to arrays, tokens in the result's dtype; checks them as mean_pooling does.

    If ``layered``, the first axis of x is that of the encoder's layers.
    """
    x, mask, lengths = (
        as_array(_ROW.name, key, value) for key, value in (("x", x), ("mask", mask), ("lengths", lengths))
    )
    tokens: Any = x
    if layered and x is not None:
        if x.ndim < 3:
            raise ValueError(f"SentencePool: `x` has shape {x.shape}, needs [layers, ..., L, d]")
        tokens = jax.ShapeDtypeStruct(x.shape[1:], x.dtype)
    values = contract.bind(_ROW, _OF_TOKENS.signature, (tokens, mask), {"lengths": lengths})
    call = contract.resolve(_ROW, values)
    contract.check_values(_ROW, values, call)
    return jnp.asarray(x, result_dtype(call.dtype)), mask, lengths


def _check_width(x, stage, number):
    if stage.kind in ("dense", "layer_norm") and stage.shapes[0][1][0] != x.shape[-1]:
        name, shape = stage.shapes[0]
        raise ValueError(
            f"SentencePool: `{name}_{number}` is {list(shape)}, and the vector before it has width {x.shape[-1]}; "
            "are the tokens those of its encoder?"
        )


def _checked_prompt(prompt_length):
    """Returns ``prompt_length`` as int32. A negative number is an error on the host, and becomes 0 on a device."""
    value = as_array(_ROW.name, "prompt_length", prompt_length)
    on_host = isinstance(value, np.ndarray)
    if value is None or value.shape or contract.kind_of(value.dtype) not in ("i", "u") or (on_host and value < 0):
        raise ValueError(f"SentencePool: `prompt_length` is {prompt_length!r}, needs an integer of at least 0")
    if on_host:
        return np.int32(min(int(value), np.iinfo(np.int32).max))
    return jnp.maximum(value.astype(jnp.int32), 0)


def _mean_of_layers(x, ranks, stage, layer_weights, precision):
    x = x[stage.start :]
    if x.shape[0] != layer_weights.shape[0]:
        raise ValueError(
            f"SentencePool: `x` has {x.shape[0]} layers from {stage.start} on, and there are "
            f"{layer_weights.shape[0]} weights"
        )
    clean = jnp.where((ranks >= 0)[None, ..., None], x, 0)  # padding must not reach the gradient of the weights
    clean, layer_weights, dtype = _widened(clean, layer_weights)
    mean = jnp.tensordot(layer_weights, clean, 1, precision=precision) / jnp.sum(layer_weights)
    return mean.astype(dtype)


def _mean_by_root(x, mask, ranks, precision):
    """Divides the sum by the root of the count, as mean times root, because a sum may overflow in a narrow dtype."""
    count = jnp.sum(mask, -1, keepdims=True, dtype=computing_dtype(x.dtype))
    return (mean_pooling(x, mask).astype(count.dtype) * jnp.sqrt(count)).astype(x.dtype)


def _mean_by_rank(x, mask, ranks, precision):
    wide = computing_dtype(x.dtype)  # bfloat16 cannot count beyond 256
    return weighted_pooling(x.astype(wide), (ranks + 1).astype(wide), mask, precision=precision).astype(x.dtype)


_POOLINGS = {
    "cls": lambda x, mask, ranks, precision: first_pooling(x, mask),
    "max": lambda x, mask, ranks, precision: max_pooling(x, mask),
    "mean": lambda x, mask, ranks, precision: mean_pooling(x, mask),
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _mean_by_rank,
    "lasttoken": lambda x, mask, ranks, precision: last_pooling(x, mask),
}


def _dense(x, stage, precision, kernel, bias=None, residual_kernel=None):
    x, kernel, bias, residual_kernel, dtype = _widened(x, kernel, bias, residual_kernel)
    result = ACTIVATIONS[stage.activation](mapped(x, kernel, bias, precision))
    if stage.residual:
        result = result + (x if residual_kernel is None else mapped(x, residual_kernel, None, precision))
    return result.astype(dtype)


def _widened(*arrays) -> Any:
    """Promotes the arrays, or None, to a common dtype of at least float32; returns also their promoted dtype, last."""
    dtype = jnp.result_type(*(array for array in arrays if array is not None))
    wide = computing_dtype(dtype)
    return *(None if array is None else array.astype(wide) for array in arrays), dtype

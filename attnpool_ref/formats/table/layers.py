"""Formats of plain multi-head attention layers."""

from attnpool_ref.formats.layouts import BIAS_OF_HEADS, IN_HEADS, OUT_OF_HEADS, TORCH_IN_HEADS, TORCH_OUT_OF_HEADS
from attnpool_ref.formats.row import GIVEN, Form, Format, Tensor
from attnpool_ref.formats.table.heads import BIASES, KERNELS

_INPUTS = {"num_heads": "H", "query_features": "d", "key_features": "e", "value_features": "v"}
_OF_TORCH = (
    Tensor("in_proj_bias", "3d", BIASES, BIAS_OF_HEADS, optional=True),
    Tensor("out_proj.weight", "d d", ("out_kernel",), TORCH_OUT_OF_HEADS),
    Tensor("out_proj.bias", "d", ("out_bias",), optional=True),
)

TORCH_MHA = Format(
    "torch_mha",
    title="PyTorch's nn.MultiheadAttention",
    source="torch 2.13, torch/nn/modules/activation.py",
    module="MultiHeadAttention",
    verified="3.1e-16, with and without the original's mask",
    notes="The batch axis comes first, as with `batch_first=True`. `key_padding_mask` is True at padding, so the mask to pass is `~key_padding_mask[:, None, :]`. `add_zero_attn=True` is not supported. The file does not say whether the layer used it, so `load` raises no error for such a layer, but the results differ from the original's.",
    forms=(
        Form((Tensor("in_proj_weight", "3d d", KERNELS, TORCH_IN_HEADS), *_OF_TORCH)),
        Form(
            (
                Tensor("q_proj_weight", "d d", KERNELS[:1], TORCH_IN_HEADS),
                Tensor("k_proj_weight", "d e", KERNELS[1:2], TORCH_IN_HEADS),
                Tensor("v_proj_weight", "d v", KERNELS[2:], TORCH_IN_HEADS),
                *_OF_TORCH,
            )
        ),
    ),
    sizes=_INPUTS | {"qkv_features": "d", "out_features": "d"},
    num_heads=GIVEN,
    refused={"bias_k": "an extra key and value (`add_bias_kv`)", "bias_v": "an extra key and value (`add_bias_kv`)"},
)


def _of_shapes(name, title, source, verified, notes, kernel, bias, out, refused=None):
    """Returns the format of a layer with attnpool's layouts.

    ``kernel``, ``bias`` and ``out`` are the names of its parts in files; other arguments are fields of :class:`Format`.
    """
    inputs = (("query", "d"), ("key", "e"), ("value", "v"))
    return Format(
        name,
        title=title,
        source=source,
        module="MultiHeadAttention",
        verified=verified,
        notes=notes,
        separator="/",
        framework="",
        forms=(
            Form(
                (
                    *(Tensor(f"{part}/{kernel}", f"{width} H c", (f"{part}_kernel",)) for part, width in inputs),
                    Tensor(f"{out}/{kernel}", "H c o", ("out_kernel",)),
                    *(Tensor(f"{part}/{bias}", "H c", (f"{part}_bias",), optional=True) for part, _ in inputs),
                    Tensor(f"{out}/{bias}", "o", ("out_bias",), optional=True),
                )
            ),
        ),
        sizes=_INPUTS | {"qkv_features": "H*c", "out_features": "o"},
        num_heads="H",
        refused=refused or {},
    )


FLAX_MHA = _of_shapes(
    "flax_mha",
    "Flax's MultiHeadDotProductAttention (Linen) and MultiHeadAttention (NNX)",
    "flax 0.12.8, flax/linen/attention.py and flax/nnx/nn/attention.py",
    "2.1e-16, with and without the original's mask",
    'Pass an NNX module, or the parameters of a Linen or NNX module as a dictionary, nested or flat, with or without the key "params".',
    "kernel",
    "bias",
    "out",
    {"query_ln": "a norm per head (`normalize_qk`)", "key_ln": "a norm per head (`normalize_qk`)"},
)

KERAS_MHA = _of_shapes(
    "keras_mha",
    "Keras' layers.MultiHeadAttention",
    "keras 3.15.1, keras/src/layers/attention/multi_head_attention.py",
    "3.9e-16, with and without the original's mask",
    "Pass a dictionary from the paths of the weights to the weights: `{v.path: v for v in layer.weights}`.",
    "kernel",
    "bias",
    "attention_output",
)


def _of_matrices(name, title, source, verified, notes, parts, kernel, bias, into, out_of, separator):
    """Returns the format of a layer whose heads share one axis.

    ``parts`` names the layers of query, key, value and output; ``into`` is the layout of the first three kernels,
    ``out_of`` that of the output kernel; ``kernel`` and ``bias`` are their names. Other arguments are fields of
    :class:`Format`.
    """
    inputs = tuple(zip(("query", "key", "value"), parts, ("d", "e", "v"), strict=False))
    of_torch = into is TORCH_IN_HEADS  # (out, in)
    return Format(
        name,
        title=title,
        source=source,
        module="MultiHeadAttention",
        verified=verified,
        notes=notes,
        separator=separator,
        framework="",
        forms=(
            Form(
                (
                    *(
                        Tensor(f"{part}{separator}{kernel}", shape, (f"{ours}_kernel",), into)
                        for ours, part, width in inputs
                        for shape in (f"w {width}" if of_torch else f"{width} w",)
                    ),
                    Tensor(f"{parts[3]}{separator}{kernel}", "o w" if of_torch else "w o", ("out_kernel",), out_of),
                    *(
                        Tensor(f"{part}{separator}{bias}", "w", (f"{ours}_bias",), BIAS_OF_HEADS, optional=True)
                        for ours, part, _ in inputs
                    ),
                    Tensor(f"{parts[3]}{separator}{bias}", "o", ("out_bias",), optional=True),
                )
            ),
        ),
        sizes=_INPUTS | {"qkv_features": "w", "out_features": "o"},
        num_heads=GIVEN,
        width="w",
    )


EQUINOX_MHA = _of_matrices(
    "equinox_mha",
    "Equinox' nn.MultiheadAttention",
    "equinox 0.13.8, equinox/nn/_attention.py",
    "4.0e-16, with and without the original's mask",
    "Pass the module, or a dictionary from its parameters' names to arrays.",
    ("query_proj", "key_proj", "value_proj", "output_proj"),
    "weight",
    "bias",
    TORCH_IN_HEADS,
    TORCH_OUT_OF_HEADS,
    ".",
)

HAIKU_MHA = _of_matrices(
    "haiku_mha",
    "Haiku's MultiHeadAttention",
    "dm-haiku 0.0.17, haiku/_src/attention.py",
    "4.2e-16, with and without the original's mask",
    "Pass the parameters that `transform(...).init` returns.",
    ("query", "key", "value", "linear"),
    "w",
    "b",
    IN_HEADS,
    OUT_OF_HEADS,
    "/",
)

ROWS = (TORCH_MHA, FLAX_MHA, KERAS_MHA, EQUINOX_MHA, HAIKU_MHA)

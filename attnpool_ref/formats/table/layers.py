"""Formats of plain multi-head attention layers."""

from attnpool_ref.formats.row import (
    BIAS_OF_HEADS,
    BIASES,
    GIVEN,
    IN_HEADS,
    KERNELS,
    LINEAR_OUT_OF_HEADS,
    OUT_OF_HEADS,
    SAME,
    TORCH_IN_HEADS,
    TORCH_OUT_OF_HEADS,
    Form,
    Format,
    Tensor,
    linear,
    one_form,
)

_INPUTS = {"num_heads": "H", "query_features": "d", "key_features": "e", "value_features": "v"}
_OF_TORCH = (
    Tensor("in_proj_bias", "3d", BIASES, BIAS_OF_HEADS, optional=True),
    *linear("out_proj", "d d", LINEAR_OUT_OF_HEADS, "out_", optional=True),
)

TORCH_MHA = Format(
    "torch_mha",
    title="PyTorch's nn.MultiheadAttention",
    source="torch 2.13, torch/nn/modules/activation.py",
    module="MultiHeadAttention",
    verified="3.1e-16, with and without the original's mask",
    notes="The batch axis comes first, as with `batch_first=True`. `key_padding_mask` is True at padding, so the mask to pass is `~key_padding_mask[:, None, :]`. The file does not say whether the layer has `add_zero_attn=True`; if it does, pass this to `load`, too.",
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
    adds_zeros=True,
    refused={"bias_k": "an extra key and value (`add_bias_kv`)", "bias_v": "an extra key and value (`add_bias_kv`)"},
)


def _multi_head(name, layers, kernel, bias, *, separator, into, of_bias, out_of, qkv_features, **fields):
    """Returns the format of a layer whose query, key, value and output have each a kernel and a bias.

    ``layers``, ``kernel`` and ``bias`` are their names in files. ``into`` is the shape of the first three kernels, with
    "{}" for the width of the input, and their layout; ``of_bias`` and ``out_of`` are those of the first three biases and
    of the output's kernel. ``qkv_features`` is the total width of all heads. Other arguments are fields of
    :class:`Format`.
    """
    *inputs, out = (f"{layer}{separator}" for layer in layers)
    widths = dict(zip(("query", "key", "value"), ("d", "e", "v"), strict=True))
    return Format(
        name,
        module="MultiHeadAttention",
        separator=separator,
        framework="",
        forms=one_form(
            *(
                Tensor(f"{layer}{kernel}", into[0].format(widths[ours]), (f"{ours}_kernel",), into[1])
                for ours, layer in zip(widths, inputs, strict=True)
            ),
            Tensor(f"{out}{kernel}", out_of[0], ("out_kernel",), out_of[1]),
            *(
                Tensor(f"{layer}{bias}", of_bias[0], (f"{ours}_bias",), of_bias[1], optional=True)
                for ours, layer in zip(widths, inputs, strict=True)
            ),
            Tensor(f"{out}{bias}", "o", ("out_bias",), optional=True),
        ),
        sizes=_INPUTS | {"qkv_features": qkv_features, "out_features": "o"},
        **fields,
    )


_AXIS_OF_HEADS = {
    "separator": "/",
    "into": ("{} H c", SAME),
    "of_bias": ("H c", SAME),
    "out_of": ("H c o", SAME),
    "qkv_features": "H*c",
    "num_heads": "H",
}
_HEADS_TOGETHER = {"of_bias": ("w", BIAS_OF_HEADS), "qkv_features": "w", "num_heads": GIVEN, "width": "w"}

FLAX_MHA = _multi_head(
    "flax_mha",
    ("query", "key", "value", "out"),
    "kernel",
    "bias",
    title="Flax's MultiHeadDotProductAttention (Linen) and MultiHeadAttention (NNX)",
    source="flax 0.12.8, flax/linen/attention.py and flax/nnx/nn/attention.py",
    verified="2.1e-16, with and without the original's mask",
    notes='Pass an NNX module, or the parameters of a Linen or NNX module as a dictionary, nested or flat, with or without the key "params".',
    refused={"query_ln": "a norm per head (`normalize_qk`)", "key_ln": "a norm per head (`normalize_qk`)"},
    **_AXIS_OF_HEADS,
)

KERAS_MHA = _multi_head(
    "keras_mha",
    ("query", "key", "value", "attention_output"),
    "kernel",
    "bias",
    title="Keras' layers.MultiHeadAttention",
    source="keras 3.15.1, keras/src/layers/attention/multi_head_attention.py",
    verified="3.9e-16, with and without the original's mask",
    notes="Pass a dictionary from the paths of the weights to the weights: `{v.path: v for v in layer.weights}`.",
    **_AXIS_OF_HEADS,
)

EQUINOX_MHA = _multi_head(
    "equinox_mha",
    ("query_proj", "key_proj", "value_proj", "output_proj"),
    "weight",
    "bias",
    title="Equinox' nn.MultiheadAttention",
    source="equinox 0.13.8, equinox/nn/_attention.py",
    verified="4.0e-16, with and without the original's mask",
    notes="Pass the module, or a dictionary from its parameters' names to arrays.",
    separator=".",
    into=("w {}", TORCH_IN_HEADS),
    out_of=("o w", TORCH_OUT_OF_HEADS),
    **_HEADS_TOGETHER,
)

HAIKU_MHA = _multi_head(
    "haiku_mha",
    ("query", "key", "value", "linear"),
    "w",
    "b",
    title="Haiku's MultiHeadAttention",
    source="dm-haiku 0.0.17, haiku/_src/attention.py",
    verified="4.2e-16, with and without the original's mask",
    notes="Pass the parameters that `transform(...).init` returns.",
    separator="/",
    into=("{} w", IN_HEADS),
    out_of=("w o", OUT_OF_HEADS),
    **_HEADS_TOGETHER,
)

ROWS = (TORCH_MHA, FLAX_MHA, KERAS_MHA, EQUINOX_MHA, HAIKU_MHA)

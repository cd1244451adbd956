"""Formats of attentive probes of frozen encoders."""

from dataclasses import replace

from attnpool_ref.formats.layouts import LEADING, QUERIES_IN_HEADS, TORCH_IN_HEADS
from attnpool_ref.formats.row import GIVEN, Format, Tensor
from attnpool_ref.formats.table.parts import INTO_HEADS, KERNELS, PERCEPTRON, linear, norm, one_form

_SIZES = {"in_features": "d", "num_heads": "H", "num_queries": "n"}


def _within(prefix, *tensors):
    return tuple(replace(tensor, key=f"{prefix}{tensor.key}") for tensor in tensors)


VJEPA = Format(
    "vjepa",
    title="the AttentivePooler of V-JEPA and V-JEPA 2, of depth 1",
    source="facebookresearch/jepa 51c59d5 and facebookresearch/vjepa2 c2963a4, src/models/attentive_pooler.py",
    module="AttentiveProbe",
    verified="1.1e-15, without padding, and with padding against the original on the real tokens only, because it has no mask",
    usual="pooler.",
    notes="V-JEPA 1 stores a layer `xattn.proj` but never applies it. `load` keeps it, and `save` writes it again. The classifier after the pooler (`linear`) has another prefix and is not loaded.",
    forms=one_form(
        Tensor("query_tokens", "1 n d", ("query",), LEADING),
        *_within(
            "cross_attention_block.",
            *norm("norm1", "d"),
            *norm("norm2", "d", "mlp_norm"),
            *linear("xattn.q", "d d", INTO_HEADS, "query_", optional=True),
            *linear("xattn.kv", "2d d", INTO_HEADS, "key_", "value_", optional=True),
            Tensor("xattn.proj.weight", "d d", optional=True),  # V-JEPA 1 stores it and never applies it
            Tensor("xattn.proj.bias", "d", optional=True),
            *PERCEPTRON,
        ),
    ),
    sizes=_SIZES | {"hidden_features": "f"},
    fixed={"variant": "vjepa"},
    num_heads=GIVEN,
    epsilon=1e-5,
    refused={
        "blocks.": "self-attention blocks in its probe (`depth` above 1)",
        "cross_attention_block.q.": "a probe without its block (`complete_block=False`)",
    },
)

VJEPA2_HF = Format(
    "vjepa2_hf",
    title="the pooler of V-JEPA 2 in Hugging Face's transformers, without self-attention layers",
    source="transformers 5.23, models/vjepa2/modeling_vjepa2.py",
    module="AttentiveProbe",
    verified="3.2e-16, without padding, and with padding against the original on the real tokens only, because it has no mask",
    usual="pooler.",
    notes="By default, transformers has three self-attention layers before the pooler; loading a file with them is an error. Epsilon is 1e-6 in transformers and 1e-5 in the authors' code.",
    forms=one_form(
        Tensor("query_tokens", "1 n d", ("query",), LEADING),
        *_within(
            "cross_attention_layer.",
            *norm("layer_norm1", "d"),
            *norm("layer_norm2", "d", "mlp_norm"),
            *linear("cross_attn.q_proj", "d d", INTO_HEADS, "query_"),
            *linear("cross_attn.k_proj", "d d", INTO_HEADS, "key_"),
            *linear("cross_attn.v_proj", "d d", INTO_HEADS, "value_"),
            *PERCEPTRON,
        ),
    ),
    sizes=_SIZES | {"hidden_features": "f"},
    fixed={"variant": "vjepa"},
    num_heads=GIVEN,
    epsilon=1e-6,
    config={"num_heads": "num_attention_heads", "epsilon": "layer_norm_eps"},
    config_heads={"vjepa2": 16},
    config_needs={"hidden_act": "gelu"},
    refused={"self_attention_layers.": "self-attention layers in its probe (`num_pooler_layers`)"},
)

AIM = Format(
    "aim",
    title="the AttentionPoolingClassifier of AIM, without its classifier",
    source="apple/ml-aim bd9e068, aim-v1/aim/v1/torch/layers.py",
    module="AttentiveProbe",
    verified="3.8e-16, without padding, and with padding against the original on the real tokens only, because it has no mask",
    usual="head.",
    notes='The classifier after the pooling (`linear`) is not part of the module; if the file has it, its kernel is `module.extras["linear.weight"]` [classes, d], and its bias `module.extras["linear.bias"]`. Tokens are normalized by the stored mean and variance, as in AIM\'s PyTorch code. The JAX code of AIM uses those of the batch even at inference.',
    forms=one_form(
        Tensor("cls_token", "1 n d", ("query",), QUERIES_IN_HEADS),
        Tensor("k.weight", "d d", KERNELS[1:2], TORCH_IN_HEADS),
        Tensor("v.weight", "d d", KERNELS[2:], TORCH_IN_HEADS),
        Tensor("bn.running_mean", "d", ("mean",)),
        Tensor("bn.running_var", "d", ("variance",)),
        Tensor("bn.num_batches_tracked", "", optional=True),
        Tensor("linear.weight", "o d", optional=True),
        Tensor("linear.bias", "o", optional=True),
    ),
    sizes=_SIZES,
    fixed={"variant": "aim"},
    num_heads=GIVEN,
    refused={"k.bias": "biases in AIM's probe (`qkv_bias`)", "v.bias": "biases in AIM's probe (`qkv_bias`)"},
)

ROWS = (VJEPA, VJEPA2_HF, AIM)

"""Formats of heads with learned queries, and of attentive probes of frozen encoders."""

from dataclasses import replace

from attnpool_ref.formats.row import (
    BIAS_OF_HEADS,
    BIASES,
    GIVEN,
    KERNELS,
    LEADING,
    LINEAR,
    LINEAR_INTO_HEADS,
    LINEAR_OUT_OF_HEADS,
    PERCEPTRON,
    QUERIES_IN_HEADS,
    TORCH_IN_HEADS,
    Form,
    Format,
    Tensor,
    linear,
    norm,
    one_form,
)

_HF_CONFIG = {"num_heads": "num_attention_heads", "epsilon": "layer_norm_eps", "activation": "hidden_act"}

_MAP_SIZES = {"in_features": "d", "num_heads": "H", "hidden_features": "f"}

SIGLIP = Format(
    "siglip",
    title="the head of SigLIP and SigLIP 2 in Hugging Face's transformers",
    source="transformers 5.23, models/siglip/modeling_siglip.py and models/siglip2/modeling_siglip2.py",
    module="MAPHead",
    verified="5.2e-16, with and without the mask of SigLIP 2",
    usual="vision_model.head.",
    notes="This is the head of the image tower. Its prefix is `vision_model.head.` in a file of `SiglipModel`; in one of `SiglipVisionModel` it is `head.`, or `vision_model.head.` if an older transformers wrote the file. For SigLIP 2 with NaFlex (images of different sizes), pass `pixel_attention_mask` as the mask. The result has an axis for the query, which the original drops: compare `result[..., 0, :]` with the original.",
    forms=one_form(
        Tensor("probe", "1 1 d", ("query",), LEADING),
        Tensor("attention.in_proj_weight", "3d d", KERNELS, TORCH_IN_HEADS),
        Tensor("attention.in_proj_bias", "3d", BIASES, BIAS_OF_HEADS),
        *linear("attention.out_proj", "d d", LINEAR_OUT_OF_HEADS, "out_"),
        *norm("layernorm", "d"),
        *PERCEPTRON,
    ),
    sizes=_MAP_SIZES,
    num_heads=GIVEN,
    epsilon=1e-6,
    activation="gelu_tanh",
    config=_HF_CONFIG,
    config_heads=dict.fromkeys(("siglip", "siglip_vision_model", "siglip2", "siglip2_vision_model"), 12),
    config_needs={"vision_use_head": True},
)

SIGLIP_BV = Format(
    "siglip_bv",
    title="the head of SigLIP and SigLIP 2 in big_vision",
    source="google-research/big_vision 0127fb6, big_vision/models/vit.py, MAPHead",
    module="MAPHead",
    verified="5.2e-16, with and without the original's mask",
    usual="params/img/MAPHead_0/",
    separator="/",
    framework="",
    notes="The parameters are the same as in the format `siglip`, bit for bit. The result has an axis for the query, which the original drops: compare `result[..., 0, :]` with the original. The text tower of a model may have such a head too, under `params/txt/`.",
    forms=one_form(
        Tensor("probe", "1 1 d", ("query",), LEADING),
        *(
            Tensor(f"MultiHeadDotProductAttention_0/{name}/{kind}", shape, (f"{name}_{kind}",))
            for name in ("query", "key", "value")
            for kind, shape in (("kernel", "d H c"), ("bias", "H c"))
        ),
        Tensor("MultiHeadDotProductAttention_0/out/kernel", "H c d", ("out_kernel",)),
        Tensor("MultiHeadDotProductAttention_0/out/bias", "d", ("out_bias",)),
        Tensor("LayerNorm_0/scale", "d", ("norm_scale",)),
        Tensor("LayerNorm_0/bias", "d", ("norm_bias",)),
        Tensor("MlpBlock_0/Dense_0/kernel", "d f", ("mlp_kernel",)),
        Tensor("MlpBlock_0/Dense_0/bias", "f", ("mlp_bias",)),
        Tensor("MlpBlock_0/Dense_1/kernel", "f d", ("mlp_out_kernel",)),
        Tensor("MlpBlock_0/Dense_1/bias", "d", ("mlp_out_bias",)),
    ),
    sizes=_MAP_SIZES,
    num_heads="H",
    epsilon=1e-6,
    activation="gelu_tanh",
)

TIMM_LATENT = Format(
    "timm_latent",
    title="timm's AttentionPoolLatent with a norm layer and one latent, as in timm's SigLIP models",
    source="timm 1.0.31, timm/layers/attention_pool.py",
    module="MAPHead",
    verified="5.6e-16, with and without the original's mask",
    usual="attn_pool.",
    notes="The file holds neither the kind of gelu nor the epsilon: take both from the model's code. timm's SigLIP models need `epsilon=1e-6`. Those whose code has `act_layer='gelu_tanh'` need `activation=\"gelu_tanh\"`; the others, such as `vit_base_patch16_siglip_224`, have timm's default, the exact gelu: `activation=\"gelu\"`. The result has an axis for the query, which the original drops: compare `result[..., 0, :]` with the original.",
    forms=one_form(
        Tensor("latent", "1 1 d", ("query",), LEADING),
        *linear("q", "d d", LINEAR_INTO_HEADS, "query_", optional=True),
        *linear("kv", "2d d", LINEAR_INTO_HEADS, "key_", "value_", optional=True),
        *linear("proj", "d d", LINEAR_OUT_OF_HEADS, "out_", optional=True),
        *norm("norm", "d"),
        *PERCEPTRON,
    ),
    sizes=_MAP_SIZES,
    num_heads=GIVEN,
    epsilon=GIVEN,
    activation=GIVEN,
    refused={
        "q_norm.": "a norm per head (`qk_norm`)",
        "k_norm.": "a norm per head (`qk_norm`)",
        "pos_embed": "positions of its own (`pos_embed='abs'`)",
    },
)

PERCEPTION_ENCODER = Format(
    "perception_encoder",
    title="the head of Perception Encoder (PE-Core)",
    source="facebookresearch/perception_models 3e352cc, core/vision_encoder/pe.py, AttentionPooling",
    module="MAPHead",
    verified="6.5e-16, without padding, because the original has no mask",
    usual="visual.attn_pool.",
    notes="The image towers of PE-Core have 8 heads in this layer, whatever their own number. The projection after it, `proj`, is not part of the head. The image tower drops the axis of the query: compare `result[..., 0, :]` with its `_pool`.",
    forms=one_form(
        Tensor("probe", "1 1 d", ("query",), LEADING),
        Tensor("attn.in_proj_weight", "3d d", KERNELS, TORCH_IN_HEADS),
        Tensor("attn.in_proj_bias", "3d", BIASES, BIAS_OF_HEADS),
        *linear("attn.out_proj", "d d", LINEAR_OUT_OF_HEADS, "out_"),
        *norm("layernorm", "d"),
        *linear("mlp.c_fc", "f d", LINEAR, "mlp_"),
        *linear("mlp.c_proj", "d f", LINEAR, "mlp_out_"),
    ),
    sizes=_MAP_SIZES,
    num_heads=GIVEN,
    epsilon=1e-5,
    activation="gelu",
)

CLIP = Format(
    "clip",
    title="the AttentionPool2d of OpenAI's and open_clip's CLIP ResNets",
    source="openai/CLIP d05afc4, clip/model.py; open_clip 3.3.0, modified_resnet.py",
    module="AttentionPool2d",
    verified="4.1e-16, without padding, because the original has no mask",
    usual="visual.attnpool.",
    notes="The tokens are the positions of the feature map, row by row: [B, height * width, d]. The learned positions are not resized, so the feature map must have the size that the head was trained for.",
    forms=one_form(
        Tensor("positional_embedding", "s+1 d", ("position",)),
        *linear("q_proj", "d d", LINEAR_INTO_HEADS, "query_", optional=True),
        *linear("k_proj", "d d", LINEAR_INTO_HEADS, "key_", optional=True),
        *linear("v_proj", "d d", LINEAR_INTO_HEADS, "value_", optional=True),
        *linear("c_proj", "o d", LINEAR_OUT_OF_HEADS, "out_", optional=True),
    ),
    sizes={"in_features": "d", "num_heads": "H", "num_slots": "s", "out_features": "o"},
    fixed={"use_class_token": False},
    num_heads=64,
)


def _of_timm_2d(fused, class_token):
    """Returns one of the four forms of timm's AttentionPool2d.

    With ``fused`` one kernel computes query, key and value; with ``class_token`` there is a learned class token.
    """
    maps = (
        (("qkv", KERNELS, BIASES),)
        if fused
        else tuple((part, KERNELS[place : place + 1], BIASES[place : place + 1]) for place, part in enumerate("qkv"))
    )
    width = "3w" if fused else "w"
    return Form(
        (
            Tensor("pos_embed", "s+1 d", ("position",)),
            *((Tensor("cls_token", "1 d", ("class_token",), LEADING),) if class_token else ()),
            *(Tensor(f"{part}.weight", f"{width} d", kernels, TORCH_IN_HEADS) for part, kernels, _ in maps),
            *(Tensor(f"{part}.bias", width, biases, BIAS_OF_HEADS, optional=True) for part, _, biases in maps),
            *linear("proj", "o w", LINEAR_OUT_OF_HEADS, "out_", optional=True),
        ),
        fixed={"use_class_token": class_token},
    )


TIMM_POOL2D = Format(
    "timm_pool2d",
    title="timm's AttentionPool2d, with fused or separate kernels for query, key and value, with and without a class token",
    source="timm 1.0.31, timm/layers/attention_pool2d.py",
    module="AttentionPool2d",
    verified="7.4e-16, without padding, because the original has no mask",
    usual="head.",
    notes="The tokens are the positions of the feature map, row by row: [B, height * width, d]. The feature map must have the size that the head was trained for: timm resizes the learned positions for other sizes, attnpool does not. Loading a `RotAttentionPool2d`, which has rotary positions instead, is an error.",
    forms=tuple(_of_timm_2d(fused, class_token) for class_token in (False, True) for fused in (True, False)),
    sizes={"in_features": "d", "num_heads": "H", "num_slots": "s", "qkv_features": "w", "out_features": "o"},
    num_heads=64,
    width="w",
    refused={"pos_embed.": "rotary positions (`RotAttentionPool2d`)"},
    absent={"pos_embed": "the rotary positions of `RotAttentionPool2d`"},
)


def _of_coca(width):
    """Returns the tensors that both forms of CoCa have; ``width`` is the letter of the tokens' width."""
    return (
        Tensor("query", "n d", ("query",)),
        *norm("ln_q", "d", "query_norm"),
        *norm("ln_k", width),
        Tensor("attn.in_proj_bias", "3d", BIASES, BIAS_OF_HEADS, optional=True),
        *linear("attn.out_proj", "d d", LINEAR_OUT_OF_HEADS, "out_", optional=True),
    )


COCA = Format(
    "coca",
    title="the AttentionalPooler of CoCa and CONCH",
    source="open_clip 3.3.0, src/open_clip/transformer.py; mahmoodlab/CONCH 141cc09",
    module="AttentionalPooler",
    verified="6.7e-16, with and without CONCH's mask",
    usual="visual.attn_pool.",
    notes="After this head CoCa computes `layer_norm(pooled, scale, bias, epsilon=1e-5)[..., 0, :] @ proj`, with the tensors `ln_post.weight`, `ln_post.bias` and `proj` of the file. By default, CoCa has 8 heads.",
    forms=(
        Form(
            (*_of_coca("d"), Tensor("attn.in_proj_weight", "3d d", KERNELS, TORCH_IN_HEADS)), sizes={"in_features": "d"}
        ),
        Form(
            (
                *_of_coca("e"),
                Tensor("attn.q_proj_weight", "d d", KERNELS[:1], TORCH_IN_HEADS),
                Tensor("attn.k_proj_weight", "d e", KERNELS[1:2], TORCH_IN_HEADS),
                Tensor("attn.v_proj_weight", "d e", KERNELS[2:], TORCH_IN_HEADS),
            )
        ),
    ),
    sizes={"in_features": "e", "num_heads": "H", "num_queries": "n", "query_features": "d"},
    num_heads=GIVEN,
    epsilon=1e-5,
    refused={"attn.bias_k": "an extra key and value", "attn.bias_v": "an extra key and value"},
)


_PROBE_SIZES = {"in_features": "d", "num_heads": "H", "num_queries": "n"}


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
            *linear("xattn.q", "d d", LINEAR_INTO_HEADS, "query_", optional=True),
            *linear("xattn.kv", "2d d", LINEAR_INTO_HEADS, "key_", "value_", optional=True),
            Tensor("xattn.proj.weight", "d d", optional=True),  # V-JEPA 1 stores it and never applies it
            Tensor("xattn.proj.bias", "d", optional=True),
            *PERCEPTRON,
        ),
    ),
    sizes=_PROBE_SIZES | {"hidden_features": "f"},
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
            *linear("cross_attn.q_proj", "d d", LINEAR_INTO_HEADS, "query_"),
            *linear("cross_attn.k_proj", "d d", LINEAR_INTO_HEADS, "key_"),
            *linear("cross_attn.v_proj", "d d", LINEAR_INTO_HEADS, "value_"),
            *PERCEPTRON,
        ),
    ),
    sizes=_PROBE_SIZES | {"hidden_features": "f"},
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
    sizes=_PROBE_SIZES,
    fixed={"variant": "aim"},
    num_heads=GIVEN,
    refused={"k.bias": "biases in AIM's probe (`qkv_bias`)", "v.bias": "biases in AIM's probe (`qkv_bias`)"},
)

ROWS = (SIGLIP, SIGLIP_BV, TIMM_LATENT, PERCEPTION_ENCODER, CLIP, TIMM_POOL2D, COCA, VJEPA, VJEPA2_HF, AIM)

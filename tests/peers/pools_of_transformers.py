"""transformers' heads with random parameters, and the statistics of its x-vectors."""

from types import SimpleNamespace

import head_formulas
import torch
from imported import (
    Aimv2AttentionPoolingHead,
    Aimv2VisionConfig,
    Siglip2MultiheadAttentionPoolingHead,
    Siglip2VisionConfig,
    SiglipMultiheadAttentionPoolingHead,
    SiglipVisionConfig,
    VJEPA2AttentivePooler,
    VJEPA2Config,
    Wav2Vec2Config,
    Wav2Vec2ForXVector,
)
from pools import HEADS, MASK, MLP, NORM, REAL, Case, called, linear, of_heads, prefixed

import attnpool_ref
from attnpool_flax.modules import heads, probes


def sized(config, width=6, num_heads=2, attention="sdpa", **more):
    """Small, and with attention in the dtype of its inputs: the plain one takes its softmax in float32."""
    made = config(hidden_size=width, num_attention_heads=num_heads, **more)
    made._attn_implementation = attention
    return made


def siglip(head, config, *inputs):
    """A head of SigLIP, whose query is its ``probe``."""

    def pool(arrays):
        parameters = {"probe": arrays["query"][None]} | prefixed("attention", of_heads(arrays))
        parameters |= {"layernorm.weight": arrays["norm_scale"], "layernorm.bias": arrays["norm_bias"]}
        parameters |= prefixed("mlp.fc1", linear(arrays, "mlp")) | prefixed("mlp.fc2", linear(arrays, "mlp_out"))
        return called(head(sized(config, intermediate_size=8)), parameters, arrays["x"], *inputs)

    return pool


def our_map_head(mask):
    def pool(package, arrays):
        if package is attnpool_ref:
            return head_formulas.map_head(package, mask=mask, **arrays)[0][:, 0]
        return heads.map_head(mask=mask, **arrays)[:, 0]

    return pool


def vjepa(arrays):
    layer = {"layer_norm1.weight": arrays["norm_scale"], "layer_norm1.bias": arrays["norm_bias"]}
    layer |= {"layer_norm2.weight": arrays["mlp_norm_scale"], "layer_norm2.bias": arrays["mlp_norm_bias"]}
    for part in ("query", "key", "value"):
        layer |= prefixed(f"cross_attn.{part[0]}_proj", linear(arrays, part))
    layer |= prefixed("mlp.fc1", linear(arrays, "mlp")) | prefixed("mlp.fc2", linear(arrays, "mlp_out"))
    parameters = {"query_tokens": arrays["query"][None]} | prefixed("cross_attention_layer", layer)
    config = sized(VJEPA2Config, mlp_ratio=8 / 6, num_pooler_layers=0, layer_norm_eps=1e-5)
    return called(VJEPA2AttentivePooler(config), parameters, arrays["x"])


def our_probe(package, arrays):
    if package is attnpool_ref:
        return head_formulas.attentive_probe(package, **arrays)[0][:, 0]
    return probes.attentive_probe(**arrays)[:, 0]


def aimv2(arrays):
    parameters = {"cls_token": arrays["query"].reshape(1, 1, 6)}
    parameters |= prefixed("k_proj", linear(arrays, "key")) | prefixed("v_proj", linear(arrays, "value"))
    out = {"weight": arrays["out_kernel"].reshape(6, 6).T, "bias": arrays["out_bias"]}
    head = Aimv2AttentionPoolingHead(sized(Aimv2VisionConfig, qkv_bias=True))
    return called(head, parameters | prefixed("output_proj", out), arrays["x"])


class Given(torch.nn.Module):
    """Stands where the encoder does: the states are what is put in."""

    def forward(self, states, **_):
        return SimpleNamespace(last_hidden_state=states, hidden_states=None, attentions=None)


def x_vector(arrays, mask=REAL):
    """The model's own forward pass, with nothing before its statistics and nothing after."""
    width = arrays["x"].shape[-1]
    one = {"conv_dim": (width,), "conv_kernel": (1,), "conv_stride": (1,)}
    one |= {"tdnn_dim": (width,), "tdnn_kernel": (1,), "tdnn_dilation": (1,), "num_conv_pos_embedding_groups": 1}
    config = Wav2Vec2Config(hidden_size=width, num_attention_heads=1, intermediate_size=4, num_hidden_layers=0, **one)
    model = Wav2Vec2ForXVector(config)
    model.wav2vec2, model.tdnn = Given(), torch.nn.ModuleList()
    model.projector = model.feature_extractor = model.classifier = torch.nn.Identity()
    return model(arrays["x"], attention_mask=mask.long()).embeddings


X = {"x": (3, 5, 6), "query": (1, 6)}
MAP_HEAD = X | HEADS | NORM | MLP
PROBE = X | {name: shape for name, shape in HEADS.items() if not name.startswith("out")} | NORM | MLP
PROBE |= {"mlp_norm_scale": (6,), "mlp_norm_bias": (6,)}
SPLIT = {
    name: HEADS[name] for name in ("key_kernel", "key_bias", "value_kernel", "value_bias", "out_kernel", "out_bias")
}

CASES = [
    Case(
        "SiglipMultiheadAttentionPoolingHead",
        MAP_HEAD,
        siglip(SiglipMultiheadAttentionPoolingHead, SiglipVisionConfig),
        our_map_head(None),
    ),
    Case(
        "Siglip2MultiheadAttentionPoolingHead, a mask",
        MAP_HEAD,
        siglip(Siglip2MultiheadAttentionPoolingHead, Siglip2VisionConfig, REAL),
        our_map_head(MASK),
    ),
    Case("VJEPA2AttentivePooler", PROBE, vjepa, our_probe),
    Case(
        "Aimv2AttentionPoolingHead",
        {"x": (3, 5, 6), "query": (1, 2, 3)} | SPLIT,
        aimv2,
        lambda package, arrays: package.multi_head_attention_pooling(**arrays)[:, 0],
    ),
    Case(
        "Wav2Vec2ForXVector",
        {"x": (3, 5, 4)},
        x_vector,
        lambda package, arrays: package.statistics_pooling(arrays["x"], MASK, ddof=1),
    ),
]

"""transformers' heads with random parameters, and the statistics of its x-vectors."""

from types import SimpleNamespace

import head_formulas
import torch
from imported import (
    Aimv2AttentionPoolingHead,
    Aimv2VisionConfig,
    Siglip2MultiheadAttentionPoolingHead,
    Siglip2VisionConfig,
    Wav2Vec2Config,
    Wav2Vec2ForXVector,
)
from pools import HEADS, MASK, MLP, NORM, REAL, Case, called, linear, of_heads, prefixed

import attnpool_ref
from attnpool_flax.modules import heads


def sized(config, width=6, num_heads=2, attention="sdpa", **more):
    """Small, and with attention in the dtype of its inputs: the plain one takes its softmax in float32."""
    made = config(hidden_size=width, num_attention_heads=num_heads, **more)
    made._attn_implementation = attention
    return made


def siglip(arrays):
    """The head of SigLIP 2, whose query is its ``probe``; `test_heads_of_libraries.py` has the other heads."""
    parameters = {"probe": arrays["query"][None]} | prefixed("attention", of_heads(arrays))
    parameters |= {"layernorm.weight": arrays["norm_scale"], "layernorm.bias": arrays["norm_bias"]}
    parameters |= prefixed("mlp.fc1", linear(arrays, "mlp")) | prefixed("mlp.fc2", linear(arrays, "mlp_out"))
    head = Siglip2MultiheadAttentionPoolingHead(sized(Siglip2VisionConfig, intermediate_size=8))
    return called(head, parameters, arrays["x"], REAL)


def our_map_head(package, arrays):
    if package is attnpool_ref:
        return head_formulas.map_head(package, mask=MASK, **arrays)[0][:, 0]
    return heads.map_head(mask=MASK, **arrays)[:, 0]


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
SPLIT = {
    name: HEADS[name] for name in ("key_kernel", "key_bias", "value_kernel", "value_bias", "out_kernel", "out_bias")
}

CASES = [
    Case("Siglip2MultiheadAttentionPoolingHead, a mask", X | HEADS | NORM | MLP, siglip, our_map_head),
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

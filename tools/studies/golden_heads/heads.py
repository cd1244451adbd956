"""Golden files of heads with learned queries."""

import functools

import numpy as np
import torch

from golden_heads import numbers
from golden_heads.golden import Golden, run
from golden_heads.in_torch import Calling, filled
from golden_heads.originals import installed

WIDTH, HEADS, HIDDEN = 8, 2, 12


def siglip(checkouts, rng, naflex=False):
    """Runs transformers' head; SigLIP 2's applies a mask only with a chosen implementation of attention."""
    from transformers import Siglip2VisionConfig, SiglipVisionConfig
    from transformers.models.siglip import modeling_siglip
    from transformers.models.siglip2 import modeling_siglip2

    sizes = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "intermediate_size": HIDDEN}
    if naflex:
        config = Siglip2VisionConfig(**sizes)
        config._attn_implementation = "eager"
        head = modeling_siglip2.Siglip2MultiheadAttentionPoolingHead(config)
    else:
        head = modeling_siglip.SiglipMultiheadAttentionPoolingHead(SiglipVisionConfig(**sizes))
    head, tensors = filled(head, rng, {"attention.out_proj": numbers.SMALL})
    forward = head if naflex else lambda x, mask: head(x)
    return run(Calling(forward), tensors, numbers.inputs(rng, x=WIDTH), own=naflex, one_query=True)


def siglip_bv(checkouts, rng):
    """Runs big_vision's head, with the numbers of transformers' file."""
    import jax

    block = checkouts.definitions("big_vision", "big_vision/models/vit.py", "MlpBlock")
    vit = type("vit", (), {"MlpBlock": functools.partial(block, dtype_mm="float64")})
    path = "big_vision/models/proj/image_text/naflex_vit.py"
    head = checkouts.definitions("big_vision", path, "MAPHead", given={"vit": vit})(HIDDEN, HEADS)
    same = siglip(checkouts, numbers.generator("siglip"))
    tensors = _of_big_vision(same.tensors)
    variables = {"params": _nested(tensors)}

    def call(inputs, mask):
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda array: array.astype(np.float64), variables)
            return np.asarray(head.apply(wide, inputs["x"], mask))

    return run(call, tensors, same.inputs, own=True, one_query=True)


def _of_big_vision(torch_tensors):
    def heads(matrix):
        return matrix.T.reshape(WIDTH, HEADS, -1)

    attention, tensors = "MultiHeadDotProductAttention_0", {"probe": torch_tensors["probe"]}
    weights = np.split(torch_tensors["attention.in_proj_weight"], 3)
    biases = np.split(torch_tensors["attention.in_proj_bias"], 3)
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        tensors[f"{attention}/{name}/kernel"] = heads(weight)
        tensors[f"{attention}/{name}/bias"] = bias.reshape(HEADS, -1)
    tensors[f"{attention}/out/kernel"] = torch_tensors["attention.out_proj.weight"].T.reshape(HEADS, -1, WIDTH)
    tensors[f"{attention}/out/bias"] = torch_tensors["attention.out_proj.bias"]
    tensors["LayerNorm_0/scale"] = torch_tensors["layernorm.weight"]
    tensors["LayerNorm_0/bias"] = torch_tensors["layernorm.bias"]
    for place, layer in enumerate(("mlp.fc1", "mlp.fc2")):
        tensors[f"MlpBlock_0/Dense_{place}/kernel"] = torch_tensors[f"{layer}.weight"].T
        tensors[f"MlpBlock_0/Dense_{place}/bias"] = torch_tensors[f"{layer}.bias"]
    return {key: np.ascontiguousarray(array) for key, array in tensors.items()}


def _nested(tensors):
    tree = {}
    for key, array in tensors.items():
        *path, leaf = key.split("/")
        node = tree
        for piece in path:
            node = node.setdefault(piece, {})
        node[leaf] = array
    return tree


def timm_latent(checkouts, rng, bias=True, epsilon=1e-6, activation="tanh"):
    """Runs timm's head, which applies a mask correctly only with PyTorch's fused attention."""
    mlp = installed("timm", "layers/mlp.py", "Mlp", given={"to_2tuple": lambda x: (x, x)})
    pool = installed(
        "timm",
        "layers/attention_pool.py",
        "AttentionPoolLatent",
        given={"Mlp": mlp, "use_fused_attn": lambda: True, "trunc_normal_tf_": torch.nn.init.trunc_normal_},
    )
    head = pool(
        WIDTH,
        num_heads=HEADS,
        mlp_ratio=HIDDEN / WIDTH,
        qkv_bias=bias,
        norm_layer=functools.partial(torch.nn.LayerNorm, eps=epsilon),
        act_layer=functools.partial(torch.nn.GELU, approximate=activation),
    )
    head, tensors = filled(head, rng, {"proj.": numbers.SMALL})
    forward = Calling(lambda x, mask: head(x, None if mask is None else mask[:, None, None]))
    return run(forward, tensors, numbers.inputs(rng, x=WIDTH), own=True, one_query=True)


def perception_encoder(checkouts, rng):
    """Runs Perception Encoder's head, whose norms have the epsilon that the image tower passes."""
    pool = checkouts.definitions("perception_models", "core/vision_encoder/pe.py", "AttentionPooling")
    norm = functools.partial(torch.nn.LayerNorm, eps=1e-5)
    head, tensors = filled(
        pool(WIDTH, HEADS, mlp_ratio=HIDDEN / WIDTH, norm_layer=norm), rng, {"attn.out_proj": numbers.SMALL}
    )
    return run(Calling(lambda x, mask: head(x)), tensors, numbers.inputs(rng, x=WIDTH))


def clip(checkouts, rng):
    """Runs OpenAI's head for a picture of 2 by 2, so that there are four tokens, with channels first."""
    head = checkouts.definitions("CLIP", "clip/model.py", "AttentionPool2d")(2, WIDTH, HEADS, 6)
    head, tensors = filled(head, rng)
    x = {"x": numbers.inputs(rng, x=WIDTH)["x"][:, :4]}
    call = Calling(lambda x, mask: head(x.transpose(1, 2).reshape(len(x), WIDTH, 2, 2)))
    return run(call, tensors, x, maskable=False)


def timm_pool2d(checkouts, rng, **options):
    """Runs timm's head for a picture of 2 by 2, with fused or separate kernels."""
    given = {"register_notrace_function": lambda function: function, "is_exporting": lambda: False}
    resample = installed("timm", "layers/pos_embed.py", "resample_abs_pos_embed", given=given)
    given = {
        "use_fused_attn": lambda: True,
        "to_2tuple": lambda x: (x, x),
        "trunc_normal_": torch.nn.init.trunc_normal_,
        "resample_abs_pos_embed": resample,
    }
    pool = installed("timm", "layers/attention_pool2d.py", "AttentionPool2d", given=given)
    head, tensors = filled(pool(WIDTH, 2, 6, num_heads=HEADS, **options), rng)
    x = {"x": numbers.inputs(rng, x=WIDTH)["x"][:, :4]}
    call = Calling(lambda x, mask: head(x.transpose(1, 2).reshape(len(x), WIDTH, 2, 2)))
    return run(call, tensors, x, maskable=False)


def coca(checkouts, rng):
    """Runs open_clip's head, with tokens of another width than its queries."""
    pooler = installed("open_clip", "transformer.py", "AttentionalPooler", given={"LayerNorm": torch.nn.LayerNorm})
    head, tensors = filled(pooler(WIDTH, 6, HEADS, 3), rng)
    call = Calling(lambda x, mask: head(x))
    return run(call, tensors, numbers.inputs(rng, numbers.SMALL, x=6))


def conch(checkouts, rng):
    """Runs CONCH's head, whose single width packs the kernels; it takes a mask."""
    path = "conch/open_clip_custom/transformer.py"
    pooler = checkouts.definitions("CONCH", path, "AttentionalPooler", given={"LayerNorm": torch.nn.LayerNorm})
    head, tensors = filled(pooler(WIDTH, WIDTH, HEADS, 3), rng)
    return run(Calling(head), tensors, numbers.inputs(rng, numbers.SMALL, x=WIDTH), own=True)


def _pool2d(name, **options):
    given = {"num_heads": HEADS}
    return Golden(name, "timm", timm_pool2d, given, "head.", options=options, library="timm")


_FLOAT64 = "MlpBlock computes in float64, by its own `dtype_mm`"

GOLDENS = (
    Golden("siglip", "transformers", siglip, {"num_heads": HEADS}, "vision_model.head.", library="transformers"),
    Golden(
        "siglip-naflex",
        "transformers",
        siglip,
        {"num_heads": HEADS},
        "head.",
        options={"naflex": True},
        library="transformers",
    ),
    Golden("siglip_bv", "big_vision", siglip_bv, prefix="params/img/MAPHead_0/", note=_FLOAT64),
    Golden(
        "timm_latent",
        "timm",
        timm_latent,
        {"num_heads": HEADS, "epsilon": 1e-6, "activation": "gelu_tanh"},
        "attn_pool.",
        library="timm",
    ),
    Golden(
        "timm_latent-exact_gelu_no_bias",
        "timm",
        timm_latent,
        {"num_heads": HEADS, "epsilon": 1e-5, "activation": "gelu"},
        options={"bias": False, "epsilon": 1e-5, "activation": "none"},
        library="timm",
    ),
    Golden("perception_encoder", "perception_models", perception_encoder, {"num_heads": HEADS}, "visual.attn_pool."),
    Golden("clip", "CLIP", clip, {"num_heads": HEADS}, "visual.attnpool."),
    _pool2d("timm_pool2d", embed_dim=12),
    _pool2d("timm_pool2d-apart", embed_dim=10, qkv_separate=True),
    _pool2d("timm_pool2d-class_token", class_token=True),
    _pool2d("timm_pool2d-apart_class_token", class_token=True, qkv_separate=True),
    Golden("coca", "open_clip_torch", coca, {"num_heads": HEADS}, "visual.attn_pool.", library="open_clip"),
    Golden("coca-conch", "CONCH", conch, {"num_heads": HEADS}),
)

"""Golden files of probes of frozen encoders."""

import numpy as np

from golden_heads import numbers
from golden_heads.golden import Golden, run
from golden_heads.in_torch import Calling, filled, seen_by

WIDTH, HEADS, HIDDEN = 8, 2, 12


def _values(array):
    """Makes the values small; keys and values are in one packed tensor."""
    keys, values = np.split(array, 2)
    return np.concatenate([keys, numbers.SMALL * values])


def _small(block, query, value):
    """Makes vectors before both norms small: small queries and values; scores are as large as elsewhere."""
    return {"query_tokens": numbers.SMALL, f"{block}.{query}.weight": 1 / numbers.SMALL} | {
        f"{block}.{key}": change for key, change in value.items()
    }


def vjepa(checkouts, rng, repository="jepa", queries=1, bias=True):
    """Runs the pooler of the repository of either version."""
    tensors_file = checkouts.definitions(repository, "src/utils/tensors.py", "trunc_normal_", "_no_grad_trunc_normal_")
    names = ("CrossAttention", "MLP", "CrossAttentionBlock")
    parts = checkouts.definitions(repository, "src/models/utils/modules.py", *names)
    given = dict(zip(names, parts, strict=True)) | {"trunc_normal_": tensors_file[0]}
    pooler = checkouts.definitions(repository, "src/models/attentive_pooler.py", "AttentivePooler", given=given)
    head = pooler(queries, WIDTH, HEADS, HIDDEN / WIDTH, qkv_bias=bias)
    head, tensors = filled(head, rng, _small("cross_attention_block", "xattn.q", {"xattn.kv": _values}))
    for module in head.modules():
        if hasattr(module, "use_sdpa"):
            module.use_sdpa = False  # the other implementation calls a function that PyTorch has removed
    call = Calling(lambda x, mask: head(x))
    return run(call, tensors, numbers.inputs(rng, numbers.SMALL, x=WIDTH))


def vjepa2_hf(checkouts, rng):
    """Runs transformers' pooler, without layers before it."""
    from transformers import VJEPA2Config
    from transformers.models.vjepa2.modeling_vjepa2 import VJEPA2AttentivePooler

    config = VJEPA2Config(hidden_size=WIDTH, num_attention_heads=HEADS, mlp_ratio=HIDDEN / WIDTH, num_pooler_layers=0)
    config._attn_implementation = "sdpa"
    small = _small("cross_attention_layer", "cross_attn.q_proj", {"cross_attn.v_proj": numbers.SMALL})
    head, tensors = filled(VJEPA2AttentivePooler(config), rng, small)
    call = Calling(lambda x, mask: head(x))
    return run(call, tensors, numbers.inputs(rng, numbers.SMALL, x=WIDTH), one_query=True)


def aim(checkouts, rng):
    """Runs AIM's classifier without its linear layer."""
    path = "aim-v1/aim/v1/torch/layers.py"
    classifier = checkouts.definitions("ml-aim", path, "AttentionPoolingClassifier")(WIDTH, 4, HEADS, 3)
    head, tensors = filled(classifier, rng)
    call = Calling(lambda x, mask: seen_by(head.linear, head)(x))
    return run(call, tensors, numbers.inputs(rng, x=WIDTH))


_ENDED = "the output is what its classifier is given"

GOLDENS = (
    Golden("vjepa", "jepa", vjepa, {"num_heads": HEADS}, "module.pooler."),
    Golden(
        "vjepa-2_no_bias",
        "vjepa2",
        vjepa,
        {"num_heads": HEADS},
        "pooler.",
        options={"repository": "vjepa2", "queries": 3, "bias": False},
    ),
    Golden("vjepa2_hf", "transformers", vjepa2_hf, {"num_heads": HEADS}, "pooler.", library="transformers"),
    Golden("aim", "ml-aim", aim, {"num_heads": HEADS}, "head.", note=_ENDED),
)

"""Formats of attention whose scores a perceptron computes: over bags of instances, and statistics over frames."""

import numpy as np

from attnpool_ref.formats.row import CONVOLUTION, LINEAR, TRANSPOSED, Form, Format, Layout, Tensor, linear

ONE_HOP = Layout("(1, in)", lambda tensor, sizes: tensor[0], lambda ours: ours[None])

_BAG_SIZES = {"in_features": "d", "hidden_features": "h", "num_queries": "K"}


def _bag_forms(hidden, out, gate=None, bare=False):
    """Returns the forms with one hop (one score for each instance; no axis of hops in the result) and with several.

    ``hidden``, ``gate`` and ``out`` are the names of the layers in the file; see :class:`Form` for ``bare``.
    """
    shared = linear(hidden, "h d", LINEAR, "")
    if gate is not None:
        shared += linear(gate, "h d", LINEAR, "gate_")
    last = (
        (Tensor(f"{out}.weight", "1 h", ("out_kernel",), ONE_HOP), Tensor(f"{out}.bias", "1")),
        (Tensor(f"{out}.weight", "K h", ("out_kernel",), TRANSPOSED), Tensor(f"{out}.bias", "K")),
    )
    fixed = {"activation": "tanh", "gated": gate is not None}
    return tuple(Form(shared + tensors, fixed=fixed, bare=bare) for tensors in last)


CLAM = Format(
    "clam",
    title="the attention of CLAM and of MIL-Lab (FEATHER), gated or not, without CLAM's first layer (`attention_net.0`, then ReLU)",
    source="mahmoodlab/CLAM 53e2409, models/model_clam.py",
    module="AdditiveAttentionPool",
    verified="3.0e-16, without padding, because the original has no mask",
    usual="attention_net.3.",
    notes="MIL-Lab's ABMIL, such as FEATHER, has the same tensors under `global_attn.`; the tokens to pass there are the output of `patch_embed`. The tokens to pass are the output of `attention_net.0` and ReLU, which are not part of the head. If `.module` was removed from the keys of the file, as CLAM's evaluation does (without a gate), pass the prefix, `attention_net.3.`: `load` does not search for such short keys. For CLAM_SB, which has one attention map whatever the number of classes, the result is [B, d] (the original's is [1, d], because it takes one bag). For CLAM_MB with K classes it is [B, K, d].",
    forms=(
        *_bag_forms("attention_a.0", "attention_c", gate="attention_b.0"),
        *_bag_forms("module.0", "module.2"),
        *_bag_forms("module.0", "module.3"),
        *_bag_forms("0", "2", bare=True),  # CLAM's evaluation cuts ".module" out of every key
        *_bag_forms("0", "3", bare=True),
    ),
    sizes=_BAG_SIZES,
)

ABMIL = Format(
    "abmil",
    title="Ilse et al.'s attention over a bag, gated or not",
    source="AMLab-Amsterdam/AttentionDeepMIL eb0434b, model.py",
    module="AdditiveAttentionPool",
    verified="3.1e-16, without padding, because the original has no mask",
    notes="The tokens to pass are the output of `feature_extractor_part2`. With one attention map (`ATTENTION_BRANCHES = 1` in the original) the result is [B, d]; the original's is [1, d], because it takes one bag. With n maps it is [B, n, d]. Files of others have the paper's letters as keys: `V`, `U` and `w`.",
    forms=(
        *_bag_forms("attention_V.0", "attention_w", gate="attention_U.0"),
        *_bag_forms("attention_V.0", "attention_weights", gate="attention_U.0"),  # before June 2023
        *_bag_forms("attention.0", "attention.2"),
        *_bag_forms("V", "w", gate="U"),  # by the letters of the paper, as others write it
        *_bag_forms("V.0", "w", gate="U.0"),
    ),
    sizes=_BAG_SIZES,
    beside=("feature_extractor_part1.", "feature_extractor_part2.", "classifier."),
)


BATCH_NORM_EPSILON = 1e-5
"""Default of PyTorch's batch normalization, which SpeechBrain does not change."""

_FRAME_SIZES = {"in_features": "d", "hidden_features": "h"}
_NORM = tuple(f"tdnn.norm.norm.{part}" for part in ("weight", "bias", "running_mean", "running_var"))


def _frame_forms(tensors, hidden, derived=frozenset(), context_ddof=0):
    """Returns the forms without and with global statistics as inputs of the hidden layer.

    ``hidden`` is the key of that layer's kernel, and ``tensors`` are all others.
    """
    return tuple(
        Form(
            (*tensors, Tensor(hidden, f"h {width} 1", ("kernel",), CONVOLUTION)),
            fixed={"activation": "tanh", "global_context": width == "3d"}
            | ({"context_ddof": context_ddof} if width == "3d" else {}),
            derived=derived,
        )
        for width in ("d", "3d")
    )


def _affine(extras):
    """Returns scale and shift of a batch normalization with frozen statistics, from its four tensors in ``extras``."""
    with np.errstate(all="ignore"):  # a variance below 0, an infinite mean: NaN, as the original has it
        scale, bias, mean, variance = (np.asarray(extras[key], np.float64) for key in _NORM)
        slope = scale / np.sqrt(variance + BATCH_NORM_EPSILON)
        return slope, bias - mean * slope


def _derive(parameters, extras):
    dtype = extras[_NORM[0]].dtype
    with np.errstate(over="ignore", invalid="ignore"):  # as above
        return {
            name: part.astype(dtype) for name, part in zip(("norm_scale", "norm_bias"), _affine(extras), strict=True)
        }


def _restore(parameters, extras):
    """Returns tensors of a batch normalization with these parameters; {} if one is None, or ``extras`` has them."""
    if any(parameters.get(name) is None for name in ("norm_scale", "norm_bias")):
        return {}
    if all(key in extras for key in _NORM):
        old = _derive(parameters, extras)
        if all(_same_bits(old[name], parameters[name]) for name in old):
            return {}
    scale, bias = parameters["norm_scale"], parameters["norm_bias"]
    neutral = np.zeros_like(scale), np.full_like(scale, 1 - BATCH_NORM_EPSILON)
    return dict(zip(_NORM, (scale, bias, *neutral), strict=True))


def _same_bits(old, new):
    """Returns whether a parameter has the bits of the file; NaNs count as equal, because a cast may change their bits."""
    if old.shape != new.shape:
        return False
    with np.errstate(over="ignore"):
        old = old.astype(new.dtype)
    bits = f"u{new.dtype.itemsize}"
    same = np.ascontiguousarray(old).view(bits) == np.ascontiguousarray(new).view(bits)
    return bool(np.all(same | (np.isnan(old) & np.isnan(new))))


SPEECHBRAIN_ASP = Format(
    "speechbrain_asp",
    title="SpeechBrain's AttentiveStatisticsPooling (ECAPA-TDNN)",
    source="speechbrain 1.1.2, speechbrain/lobes/models/ECAPA_TDNN.py",
    module="AttentiveStatisticsPool",
    verified="3.6e-16, with and without the original's mask",
    usual="asp.",
    notes="The frames to pass are [B, L, C] (batch, frames, channels), not [B, C, L]. `norm_scale` and `norm_bias` are computed from the four tensors of the batch normalization. `save` writes these four as they were in the file; if one of the two parameters has changed, it writes the parameters as weight and bias, with mean 0 and variance 1 - 1e-5, which gives the same result.",
    forms=_frame_forms(
        (
            Tensor("conv.conv.weight", "d h 1", ("out_kernel",), CONVOLUTION),
            Tensor("conv.conv.bias", "d"),  # cancels in the softmax
            Tensor("tdnn.conv.conv.bias", "h", ("bias",)),
            *(Tensor(key, "h") for key in _NORM),
            Tensor("tdnn.norm.norm.num_batches_tracked", "", optional=True),
        ),
        "tdnn.conv.conv.weight",
        derived=frozenset({"norm_scale", "norm_bias"}),
    ),
    sizes=_FRAME_SIZES,
    fixed={"use_norm": True},
    epsilon=1e-12,
    derive=_derive,
    restore=_restore,
)

WESPEAKER_ASTP = Format(
    "wespeaker_astp",
    title="the ASTP of WeSpeaker and 3D-Speaker (for 3D-Speaker pass `epsilon=1e-10`)",
    source="wenet-e2e/wespeaker, wespeaker/models/pooling_layers.py; 3D-Speaker 09e7806",
    module="AttentiveStatisticsPool",
    verified="9.3e-15, without padding, because the original has no mask; 6.4e-8 with the global context, for the reason below",
    usual="pool.",
    notes="The frames to pass are [B, L, C] (batch, frames, channels), not [B, C, L]. With the global context, WeSpeaker adds 1e-7 to the variance of the context before the square root, where attnpool takes 1e-7 as the minimum of this variance. The two deviations of the context differ by up to 1e-7 / (2 sigma), sigma being the deviation.",
    forms=_frame_forms(
        (
            Tensor("linear2.weight", "d h 1", ("out_kernel",), CONVOLUTION),
            Tensor("linear2.bias", "d"),  # cancels in the softmax
            Tensor("linear1.bias", "h", ("bias",)),
        ),
        "linear1.weight",
        context_ddof=1,
    ),
    sizes=_FRAME_SIZES,
    epsilon=1e-7,
)

ROWS = (CLAM, ABMIL, SPEECHBRAIN_ASP, WESPEAKER_ASTP)

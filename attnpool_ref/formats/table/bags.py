"""Formats of attention over bags of instances, which a perceptron scores one by one."""

from attnpool_ref.formats.layouts import TRANSPOSED, Layout
from attnpool_ref.formats.row import Form, Format, Tensor
from attnpool_ref.formats.table.parts import DENSE, linear

ONE_HOP = Layout("(1, in)", lambda tensor, sizes: tensor[0], lambda ours: ours[None])

_SIZES = {"in_features": "d", "hidden_features": "h", "num_queries": "K"}


def _forms(hidden, out, gate=None, bare=False):
    """Returns the forms with one hop (one score for each instance; no axis of hops in the result) and with several.

    ``hidden``, ``gate`` and ``out`` are the names of the layers in the file; see :class:`Form` for ``bare``.
    """
    shared = linear(hidden, "h d", DENSE, "")
    if gate is not None:
        shared += linear(gate, "h d", DENSE, "gate_")
    last = (
        (Tensor(f"{out}.weight", "1 h", ("out_kernel",), ONE_HOP), Tensor(f"{out}.bias", "1")),
        (Tensor(f"{out}.weight", "K h", ("out_kernel",), TRANSPOSED), Tensor(f"{out}.bias", "K")),
    )
    fixed = {"activation": "tanh", "gated": gate is not None}
    return tuple(Form(shared + tensors, fixed=fixed, bare=bare) for tensors in last)


CLAM = Format(
    "clam",
    title="the attention of CLAM, gated or not, without CLAM's first layer (`attention_net.0`, then ReLU)",
    source="mahmoodlab/CLAM 53e2409, models/model_clam.py",
    module="AdditiveAttentionPool",
    verified="3.0e-16, without padding, because the original has no mask",
    usual="attention_net.3.",
    notes="The tokens to pass are the output of `attention_net.0` and ReLU, which are not part of the head. If `.module` was removed from the keys of the file, as CLAM's evaluation does (without a gate), pass the prefix, `attention_net.3.`: `load` does not search for such short keys. For CLAM_SB, which has one attention map whatever the number of classes, the result is [B, d] (the original's is [1, d], because it takes one bag). For CLAM_MB with K classes it is [B, K, d].",
    forms=(
        *_forms("attention_a.0", "attention_c", gate="attention_b.0"),
        *_forms("module.0", "module.2"),
        *_forms("module.0", "module.3"),
        *_forms("0", "2", bare=True),  # CLAM's evaluation cuts ".module" out of every key
        *_forms("0", "3", bare=True),
    ),
    sizes=_SIZES,
)

ABMIL = Format(
    "abmil",
    title="Ilse et al.'s attention over a bag, gated or not",
    source="AMLab-Amsterdam/AttentionDeepMIL eb0434b, model.py",
    module="AdditiveAttentionPool",
    verified="3.1e-16, without padding, because the original has no mask",
    notes="The tokens to pass are the output of `feature_extractor_part2`. With one attention map (`ATTENTION_BRANCHES = 1` in the original) the result is [B, d]; the original's is [1, d], because it takes one bag. With n maps it is [B, n, d].",
    forms=(
        *_forms("attention_V.0", "attention_w", gate="attention_U.0"),
        *_forms("attention.0", "attention.2"),
    ),
    sizes=_SIZES,
    beside=("feature_extractor_part1.", "feature_extractor_part2.", "classifier."),
)

ROWS = (CLAM, ABMIL)

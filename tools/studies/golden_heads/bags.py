"""Golden files of attention over bags of instances; each bag is a call, because the originals have no batch axis."""

import torch

from golden_heads import numbers
from golden_heads.golden import Golden, run
from golden_heads.in_torch import Calling, filled, seen_by

WIDTH, HIDDEN = 6, 5


def _each(forward):
    """Calls the original for each bag of a batch; with one hop, each result is one row."""

    def call(x, mask):
        results = torch.stack([forward(bag) for bag in x])
        return results[:, 0] if results.shape[1] == 1 else results

    return Calling(call)


def clam(checkouts, rng, several=False, gate=True, dropout=0.0):
    """Runs CLAM without its first layer; the instances are the inputs of its attention."""
    names = ("Attn_Net", "Attn_Net_Gated", "CLAM_SB", "CLAM_MB")
    *_, single, multiple = checkouts.definitions(
        "CLAM", "models/model_clam.py", *names, replaced=[("512, 256]", f"{WIDTH}, {HIDDEN}]")]
    )
    model = (multiple if several else single)(gate=gate, dropout=dropout, n_classes=3, embed_dim=WIDTH)
    for place in range(3):
        model.attention_net[place] = torch.nn.Identity()
    model, tensors = filled(model, rng)
    attention = {key.removeprefix("attention_net.3."): value for key, value in tensors.items() if "_net.3." in key}
    call = _each(lambda bag: model(bag, return_features=True)[-1]["features"])
    return run(call, attention, numbers.inputs(rng, x=WIDTH))


def abmil(checkouts, rng, gate=True):
    """Runs ABMIL without its classifier; the instances are the inputs of its attention."""
    model = checkouts.definitions(
        "AttentionDeepMIL",
        "model.py",
        "GatedAttention" if gate else "Attention",
        replaced=[
            ("self.M = 500", f"self.M = {WIDTH}"),
            ("self.L = 128", f"self.L = {HIDDEN}"),
            ("50 * 4 * 4", f"{WIDTH}"),
        ],
    )()
    model.feature_extractor_part1 = model.feature_extractor_part2 = torch.nn.Identity()
    model, tensors = filled(model, rng)
    call = _each(lambda bag: seen_by(model.classifier, model)(bag[None]))
    return run(call, tensors, numbers.inputs(rng, x=WIDTH))


def _clam(name, prefix="attention_net.3.", **options):
    note = "narrower, without its first layer; the output is what its classifier is given"
    return Golden(name, "CLAM", clam, prefix=prefix, note=note, options=options)


def _abmil(name, **options):
    note = "narrower, without its features; the output is what its classifier is given"
    return Golden(name, "AttentionDeepMIL", abmil, note=note, options=options)


GOLDENS = (
    _clam("clam"),
    _clam("clam-several_classes", several=True),
    _clam("clam-ungated", gate=False),
    _clam("clam-ungated_several_classes_dropout", gate=False, several=True, dropout=0.25),
    _abmil("abmil"),
    _abmil("abmil-ungated", gate=False),
)

"""Golden files of attentive statistics, channels first; one channel is constant, so that the floor matters."""

import torch

from golden_heads import numbers
from golden_heads.golden import Golden, run
from golden_heads.in_torch import Calling, filled
from golden_heads.originals import installed

WIDTH, HIDDEN = 6, 5


def _frames(rng):
    x = numbers.inputs(rng, x=WIDTH)
    x["x"][..., 0] = 0.5
    return x


def speechbrain_asp(checkouts, rng, context=True):
    """Runs SpeechBrain's pooling, which takes relative lengths."""
    from torch import nn

    mask_of = installed("speechbrain", "dataio/dataio.py", "length_to_mask")
    convolution, *_ = installed("speechbrain", "nnet/CNN.py", "Conv1d", "get_padding_elem")
    norm = installed("speechbrain", "nnet/normalization.py", "BatchNorm1d")
    given = {"length_to_mask": mask_of, "_Conv1d": convolution, "_BatchNorm1d": norm, "nn": nn}
    names = ("AttentiveStatisticsPooling", "TDNNBlock", "Conv1d", "BatchNorm1d")
    pooling, *_ = installed("speechbrain", "lobes/models/ECAPA_TDNN.py", *names, given=given)
    head, tensors = filled(pooling(WIDTH, HIDDEN, context), rng)

    def forward(x, mask):
        real = torch.ones(x.shape[:2]) if mask is None else mask
        return head(x.transpose(1, 2), real.double().mean(1))[..., 0]

    return run(Calling(forward), tensors, _frames(rng), own=True, mask=numbers.FROM_LEFT)


def wespeaker_astp(checkouts, rng, context=True):
    """Runs WeSpeaker's pooling."""
    pooling = checkouts.definitions("wespeaker", "wespeaker/models/pooling_layers.py", "ASTP")
    head, tensors = filled(pooling(WIDTH, HIDDEN, context), rng)
    return run(Calling(lambda x, mask: head(x.transpose(1, 2))), tensors, _frames(rng))


def _speechbrain(name, prefix="", **options):
    return Golden(name, "speechbrain", speechbrain_asp, prefix=prefix, options=options, library="speechbrain")


def _wespeaker(name, **options):
    return Golden(name, "wespeaker", wespeaker_astp, prefix="pool.", options=options)


GOLDENS = (
    _speechbrain("speechbrain_asp", prefix="asp."),
    _speechbrain("speechbrain_asp-no_context", context=False),
    _wespeaker("wespeaker_astp"),
    _wespeaker("wespeaker_astp-no_context", context=False),
)

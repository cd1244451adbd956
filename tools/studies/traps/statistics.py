"""Mistakes in mean and standard deviation poolings of speech and other signals."""

import numpy as np
from bugs.table import Section

from traps.sources import filled_scores, noisy_mean, std_by_moments, unbiased_std

STATISTICS = Section(
    "Statistics",
    "Means and standard deviations over frames of speech: WeSpeaker, 3D-Speaker, voxceleb_trainer, SpeechBrain, pyannote, transformers.",
)
MOMENTS = "wespeaker and 3D-Speaker `pooling_layers.py`, voxceleb_trainer"


@STATISTICS.wrong("P-6a", was="0.000316", now="0.005", place=MOMENTS)
def _(attnpool):
    """In attentive statistics, the standard deviation is the root of E[x^2] - mean^2. This difference is computed in
    float32 and bounded from below, in wespeaker by 1e-7. Here, with equal weights, all digits of the difference cancel,
    and the result is the root of the bound.
    """
    x = np.float32([[100], [100.01]])
    return (
        lambda: std_by_moments(x, 1e-7),
        lambda: attnpool.std_pooling(x),
    )


@STATISTICS.wrong("P-6b", was="0.003906", now="0.001", place=MOMENTS)
def _(attnpool):
    """In attentive statistics, the standard deviation is the root of E[x^2] - mean^2, computed in float32. Here, with
    equal weights, only rounding errors of the difference are left.
    """
    x = np.float32([[10], [10.002]])
    return (
        lambda: std_by_moments(x, 1e-7),
        lambda: attnpool.std_pooling(x),
    )


@STATISTICS.wrong(
    "P-6c",
    was="nan",
    now="0",
    place="wespeaker TSTP, line 81, speechbrain `pooling.py:308`, transformers `Wav2Vec2ForXVector`, pyannote without weights",
)
def _(attnpool):
    """The unbiased standard deviation (divided by n - 1) of a single frame is 0/0."""
    x = np.array([[1.0]])
    return (
        lambda: unbiased_std(x),
        lambda: attnpool.std_pooling(x, ddof=1),
    )


@STATISTICS.wrong("P-7a", was="nan", now="2", place="speechbrain `pooling.py:331,363`")
def _(attnpool):
    """Noise of up to 9e-5 is added to the means of a batch, also in evaluation. The noise is divided by the difference
    of its largest and smallest number. If the batch has only one mean (one utterance with one channel),
    this is 0/0.
    """
    x, noise = np.array([[[1.0], [3.0]]]), np.array([[0.3]])
    return (
        lambda: noisy_mean(x, noise),
        lambda: attnpool.statistics_pooling(x)[:, :1],
    )


@STATISTICS.wrong("P-7b", was="nan nan", now="0 0", place="speechbrain `ECAPA_TDNN.py:296`")
def _(attnpool):
    """Scores of padding are set to -inf, so the weights of a fully masked row are NaN."""
    s, mask = np.array([1.0, 2.0]), np.array([False, False])
    return (
        lambda: filled_scores(s, mask),
        lambda: attnpool.masked_softmax(s, mask),
    )

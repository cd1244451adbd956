"""Mistakes in attention over bags, spans, frames and patches, and in clusters."""

import numpy as np
from bugs.table import Section
from notebooks import softmax

from traps.sources import (
    clam_instances,
    clamped_weights,
    dsmil_weights,
    entmax_by_bisection,
    han_weights,
    latent_of_timm,
    output_map_applied,
    penalty_by_ones,
    penalty_without_square,
    span_weights_of_allennlp,
    vlad_assignment,
    vlad_with_padding,
)

WEIGHTS = Section(
    "Attention",
    "Attention over bags, documents, spans and sound events. `A` or `a` are weights, one row for each query.",
)


@WEIGHTS.wrong("P-11a", was="2.25", now="0.25", place="chaycao/self-attention-embedding")
def _(attnpool):
    """The penalty of Lin et al. is |A A^T - I|^2. Here 1 is subtracted from every entry, not only from the diagonal."""
    a = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    return (
        lambda: penalty_by_ones(a),
        lambda: attnpool.attention_penalty(a),
    )


@WEIGHTS.wrong("P-11b", was="0", now="2", place="chaycao/self-attention-embedding")
def _(attnpool):
    """If 1 is subtracted from every entry of A A^T, the penalty is lowest for hops (rows of A) that are all the same,
    which it should prevent.
    """
    a = np.array([[1.0, 0.0], [1.0, 0.0]])
    return (
        lambda: penalty_by_ones(a),
        lambda: attnpool.attention_penalty(a),
    )


@WEIGHTS.wrong("P-11c", was="0.5", now="0.25", place="kaushalshetty/Structured-Self-Attention")
def _(attnpool):
    """The penalty of Lin et al. is |A A^T - I|^2. The code computes the norm without the square."""
    a = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    return (
        lambda: penalty_without_square(a),
        lambda: attnpool.attention_penalty(a),
    )


@WEIGHTS.wrong(
    "P-12",
    was="0.3302 0.6698 0.3302 0.6698",
    now="0.3302 0.6698 0.6698 0.3302",
    place="binli123/dsmil-wsi `dsmil.py` at 01400d7, mended in 37d9458",
)
def _(attnpool):
    """For each class, a loop sorts the features by the scores of the class, and the first is the query. It sorts the
    array that it sorted for the previous class, but the indices refer to the original order. So the second class takes
    its query from the wrong instance.
    """
    x, c = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])
    return (
        lambda: dsmil_weights(x, c),
        lambda: attnpool.dot_product_attention(
            attnpool.attend(c.T, x, normalizer="hardmax"), x, x, return_weights=True
        )[1],
    )


@WEIGHTS.wrong("P-13a", was="nan 0", now="1 0", place="richliao/textClassifier `textClassifierHATT.py`")
def _(attnpool):
    """The maximum is not subtracted from the scores before the exponential, which is infinite in float32 for scores
    above 88.72.
    """
    s = np.float32([89, 1])
    return (
        lambda: han_weights(s),
        lambda: attnpool.masked_softmax(s),
    )


@WEIGHTS.wrong("P-13b", was="5.8e-11", now="1", place="richliao/textClassifier `textClassifierHATT.py`")
def _(attnpool):
    """1e-7 is added to the denominator, the sum of exponentials. If all scores are low, this sum is smaller than 1e-7,
    and the weights are too small. The numbers are sums of the weights.
    """
    s = np.float32([-40, -41])
    return (
        lambda: han_weights(s).sum(),
        lambda: attnpool.masked_softmax(s).sum(),
    )


@WEIGHTS.wrong("P-13c", was="4.2e-11 1.6e-11", now="0.731059 0.268941", place="richliao/textClassifier")
def _(attnpool):
    """1e-7 is added to the denominator, the sum of exponentials. If all scores are low, this sum is smaller than 1e-7,
    and the weights are too small. The numbers are the weights.
    """
    s = np.float32([-40, -41])
    return (
        lambda: han_weights(s),
        lambda: attnpool.masked_softmax(s),
    )


@WEIGHTS.wrong("P-13d", was="4", now="1.238406", place="ematvey/hierarchical-attention-networks at 515cade, mended")
def _(attnpool):
    """The softmax runs over an axis of length 1, so every weight is 1, and the result is a sum."""
    x, s = np.array([[1.0], [3.0]]), np.array([[2.0], [0.0]])
    return (
        lambda: (softmax(s, axis=1) * x).sum(0),
        lambda: attnpool.attend(s.T, x)[0],
    )


@WEIGHTS.wrong("P-16", was="4", now="2", place="AllenNLP `self_attentive_span_extractor.py:87`")
def _(attnpool):
    """The extractor ignores its argument for the mask of the sequence, so padding inside a span gets weight."""
    x, mask, spans = np.array([[1.0], [3.0], [8.0]]), np.array([True, True, False]), np.array([[0, 2]])
    return (
        lambda: span_weights_of_allennlp(np.zeros(3), spans) @ x,
        lambda: attnpool.attend(np.zeros((1, 3)), x, attnpool.spans_to_mask(spans, 3) & mask[None]),
    )


@WEIGHTS.wrong(
    "P-18", was="0.993307", now="0.999955", place="PANNs `AttBlock` (qiuqiangkong/audioset_tagging_cnn `models.py`)"
)
def _(attnpool):
    """Scores are clamped to ±10. The numbers are the weight of the token with the highest score. The batch
    normalization `bn_att` is created and never used.
    """
    s = np.array([15.0, 5.0])
    return (
        lambda: clamped_weights(s)[0],
        lambda: attnpool.masked_softmax(s)[0],
    )


@WEIGHTS.error("P-25a", was="RuntimeError", now="0 0", place="entmax 1.3, `sparsemax` and `entmax15`")
def _(attnpool):
    """`sparsemax` and `entmax15` have no mask argument. If all scores are -inf, no score is in the support, and the
    index of the last score in the support is -1.
    """
    s, mask = np.array([1.0, 2.0]), np.array([False, False])
    return (
        None,
        lambda: attnpool.entmax15(s, mask),
    )


@WEIGHTS.wrong("P-25b", was="nan nan", now="0 0", place="entmax 1.3, `entmax_bisect`")
def _(attnpool):
    """`entmax_bisect` has no mask argument. If all scores are -inf, the weights are NaN."""
    s, mask = np.array([1.0, 2.0]), np.array([False, False])
    return (
        lambda: entmax_by_bisection(np.where(mask, s, -np.inf), 1.3),
        lambda: attnpool.entmax(s, mask, alpha=1.3),
    )


@WEIGHTS.wrong(
    "P-25c",
    was="0.333333 0.333333 0.333333",
    now="0.231224 0.628532 0.140244",
    place="entmax 1.3, `entmax_bisect` with alpha = 1, of which it warns",
)
def _(attnpool):
    """With alpha = 1 every score is multiplied by alpha - 1 = 0, so the weights are uniform. The limit for alpha = 1 is
    the softmax.
    """
    s = np.array([1.0, 2.0, 0.5])
    return (
        lambda: entmax_by_bisection(s, 1.0),
        lambda: attnpool.entmax(s, alpha=1.0),
    )


IMAGES = Section(
    "Heads and clusters",
    "Attention heads of image models and clusters: V-JEPA, a PyTorch port of NetVLAD, CLAM, timm, transformers.",
)


@IMAGES.wrong("P-24a", was="2 4", now="0 0", place="transformers 5.23 `Siglip2MultiheadAttentionPoolingHead`")
def _(attnpool):
    """The lowest number of the dtype is added to scores of padding. In a fully masked row rounding makes all scores
    equal, so the result is an average of the padding.
    """
    x, mask = np.array([[1.0, 3.0], [3.0, 5.0]]), np.array([False, False])
    return (
        lambda: softmax(np.where(mask, 0, np.finfo(x.dtype).min)) @ x,
        lambda: attnpool.attention_pooling(x, mask, np.zeros(2)),
    )


@IMAGES.wrong("P-24b", was="2 4", now="1 3", place="transformers 5.23 `Siglip2MultiheadAttentionPoolingHead`")
def _(attnpool):
    """If the head is created without its model, from a configuration that names no attention implementation, it ignores
    the mask.
    """
    x, mask = np.array([[1.0, 3.0], [3.0, 5.0]]), np.array([True, False])
    return (
        lambda: softmax(np.zeros(len(x))) @ x,
        lambda: attnpool.attention_pooling(x, mask, np.zeros(2)),
    )


@IMAGES.wrong("P-4", was="4000000 4000000", now="1 3", place="facebookresearch/jepa `modules.py:137`, issue 94")
def _(attnpool):
    """The map `proj` of the cross-attention is created, rescaled and saved in checkpoints, but never applied. Loading
    it as the output map gives another head. The numbers are for one token and a `proj` of 1e6.
    """
    x, proj, identity = np.array([[1.0, 3.0]]), np.full((2, 2), 1e6), np.eye(2).reshape(2, 1, 2)
    return (
        lambda: output_map_applied(x, proj),
        lambda: attnpool.multi_head_attention_pooling(
            x, query=np.zeros((1, 2)), query_kernel=identity, key_kernel=identity, value_kernel=identity
        ),
    )


@IMAGES.wrong(
    "P-17a",
    was="1.164041 3.586313 0.282830 -0.480053",
    now="1.639061 3.586313 0.282830 0.569905",
    place="Nanne/pytorch-NetVlad `netvlad.py`",
)
def _(attnpool):
    """Padding of zeros is assigned to clusters like a token. For each cluster with center c it adds -a c, where a is
    its assignment weight.
    """
    x, mask = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 4.0], [0.0, 0.0]]), np.array([True, True, True, False])
    kernel, bias, centers = (
        np.array([[1.0, -1.0], [0.5, 0.5]]),
        np.array([0.0, 0.1]),
        np.array([[1.0, 0.0], [0.0, 2.0]]),
    )
    return (
        lambda: vlad_with_padding(x, kernel, bias, centers),
        lambda: attnpool.vlad_pooling(
            x, mask, assign_kernel=kernel, assign_bias=bias, centers=centers, normalize=False
        ),
    )


@IMAGES.wrong("P-17b", was="0.047426 0.952574", now="0.952574 0.047426", place="Nanne/pytorch-NetVlad `netvlad.py`")
def _(attnpool):
    """With `vladv2=True` the bias of the assignment is initialized as -alpha times the norm of the center (by default the
    layer has no bias). The paper's distances need the square of the norm: without it this token is assigned to the
    farther center.
    """
    x, centers, alpha = np.array([[1.0]]), np.array([[0.0], [3.0]]), 1.0
    return (
        lambda: vlad_assignment(x, centers, alpha, 1),
        lambda: attnpool.vlad_pooling(
            x,
            assign_kernel=2 * alpha * centers.T,
            assign_bias=-alpha * (centers**2).sum(-1),
            centers=centers,
            return_weights=True,
        )[1],
    )


IMAGES.note(
    "P-17c",
    "alpha, the factor of the distances to the centers, is computed from the second result of the neighbor search, which contains indices, not distances (issue 84).",
    "The mistake is in the initialization of a training script. attnpool takes kernel and bias as arguments.",
    place="Nanne/pytorch-NetVlad `netvlad.py`",
)


@IMAGES.error(
    "P-21", was="RuntimeError", now="3.000000", raises=ValueError, place="mahmoodlab/CLAM `model_clam.py:111`"
)
def _(attnpool):
    """The code takes the eight instances with the highest attention, and raises an error for a bag of five. attnpool
    takes the mean of all five.
    """
    x = np.array([[1.0], [2.0], [3.0], [4.0], [5.0]])
    return (
        lambda: clam_instances(x, 8),
        lambda: attnpool.top_k_pooling(x, k=8),
    )


@IMAGES.error(
    "P-22",
    was="RuntimeError",
    now="1 1 2",
    raises=ValueError,
    place="timm `AttentionPoolLatent`, line 72, `embed_dim` that is not `in_features`",
)
def _(attnpool):
    """The kernel of keys and values has the input width `embed_dim`, but the tokens have the width `in_features`."""
    x, kernel = np.array([[1.0, 2.0]]), np.array([[[1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
    return (
        lambda: latent_of_timm(x, np.eye(3)),
        lambda: attnpool.multi_head_attention_pooling(
            x, query=np.zeros((1, 1, 3)), key_kernel=kernel, value_kernel=kernel
        ),
    )

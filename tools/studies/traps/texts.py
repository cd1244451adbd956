"""Mistakes in poolings of texts: last tokens, sentence-transformers' modes, late interaction."""

import numpy as np
from bugs.table import Section

from traps.sources import (
    cls_of_sentence_transformers,
    last_token_pool,
    latents_ask,
    layers_by_weights,
    max_of_sentence_transformers,
    maxsim_of_colbert,
    maxsim_of_pylate,
    mean_of_sentence_transformers,
    slot_weighted_mean,
)

TEXTS = Section(
    "Texts", "Poolings of sentence embeddings: sentence-transformers 6.2.0, late interaction, and code of model cards."
)


@TEXTS.wrong(
    "P-3",
    was="-0.129911 -0.160624 -0.043660 0.113445",
    now="0.281683 0.224868 -0.038689 -0.266676",
    place="five of nine public classes `LatentAttentionPooling`",
)
def _(attnpool):
    """Queries and keys are exchanged: the latents are the queries.

    In the original NV-Embed the tokens are queries. Your class has the mistake if it attends with the latents as queries
    and the tokens as keys. The nine classes were read, not run; their repositories are not named here.
    """
    x, latents = 2 * np.sin(np.arange(12)).reshape(3, 4), np.sin(19 + np.arange(8)).reshape(2, 4)
    query_kernel, key_kernel, value_kernel = [np.sin(k + np.arange(16)).reshape(4, 1, 4) / 2 for k in (2, 3, 4)]
    out_kernel, mlp_out_kernel = (
        np.sin(5 + np.arange(16)).reshape(1, 4, 4) / 2,
        np.sin(21 + np.arange(16)).reshape(4, 4) / 2,
    )
    maps = dict(query_kernel=query_kernel, key_kernel=key_kernel, value_kernel=value_kernel, out_kernel=out_kernel)
    mlp = dict(mlp_kernel=np.sin(20 + np.arange(32)).reshape(4, 8) / 2, mlp_out_kernel=mlp_out_kernel)
    return (
        lambda: latents_ask(x, latents, **{name: kernel.reshape(4, 4) for name, kernel in maps.items()}, **mlp),
        lambda: attnpool.latent_attention_pooling(x, latents=latents, **maps, **mlp),
    )


@TEXTS.wrong("P-5", was="9", now="1", place="`last_token_pool` on the cards of E5-mistral and GTE-Qwen")
def _(attnpool):
    """It takes the last position of each row if that position is real in all rows of the batch. Otherwise it takes the position
    that is the row's number of real tokens minus 1, as if all padding were on the right. Because of one fully masked row,
    that is padding in the other row.
    """
    x, mask = np.array([[[9.0], [1.0]], [[9.0], [9.0]]]), np.array([[False, True], [False, False]])
    return (
        lambda: last_token_pool(x, mask)[0],
        lambda: attnpool.last_pooling(x, mask)[0],
    )


@TEXTS.wrong("P-9a", was="-inf", now="0", place="sentence-transformers `Pooling`, max")
def _(attnpool):
    """The maximum of a fully masked row is -inf."""
    x, mask = np.array([[1.0]]), np.array([False])
    return (
        lambda: max_of_sentence_transformers(x, mask),
        lambda: attnpool.max_pooling(x, mask),
    )


@TEXTS.wrong("P-9b", was="9", now="0", place="sentence-transformers `Pooling`, cls")
def _(attnpool):
    """The first token of a fully masked row is padding."""
    x, mask = np.array([[9.0]]), np.array([False])
    return (
        lambda: cls_of_sentence_transformers(x, mask),
        lambda: attnpool.first_pooling(x, mask),
    )


@TEXTS.wrong("P-9c", was="nan", now="1", place="sentence-transformers `Pooling`, the means")
def _(attnpool):
    """Padding is multiplied by a weight of 0, and 0 times NaN is NaN."""
    x, mask = np.array([[1.0], [np.nan]]), np.array([True, False])
    return (
        lambda: mean_of_sentence_transformers(x, mask),
        lambda: attnpool.mean_pooling(x, mask),
    )


@TEXTS.wrong("P-9d", was="1.750000", now="1.666667", place="sentence-transformers `Pooling`, weightedmean")
def _(attnpool):
    """The weight of a token is its position, counted from the first real token. A masked token in between is counted,
    too, so it changes the weights of the tokens after it. attnpool counts only real tokens.
    """
    x, mask = np.array([[1.0], [9.0], [2.0]]), np.array([True, False, True])
    return (
        lambda: slot_weighted_mean(x, mask),
        lambda: attnpool.weighted_pooling(x, attnpool.token_positions(mask) + 1, mask),
    )


@TEXTS.wrong("P-9e", was="1.666667", now="1.600000", place="own versions of `include_prompt=False`")
def _(attnpool):
    """In the mode weightedmean, the weights of tokens are their positions. Code that removes the prompt first and then
    counts positions differs from sentence-transformers, which counts positions first, as attnpool does.
    """
    x, mask = np.array([[7.0], [1.0], [2.0]]), np.ones(3, bool)
    positions = np.arange(3)
    return (
        lambda: slot_weighted_mean(x[positions >= 1], mask[positions >= 1]),
        lambda: attnpool.weighted_pooling(x, attnpool.token_positions(mask) + 1, mask & (positions >= 1)),
    )


@TEXTS.wrong("P-10a", was="0", now="-0.600000", place="pylate `scores.py`")
def _(attnpool):
    """Similarities to padding are multiplied by 0 before the maximum. The score 0 is greater than negative similarities
    of real tokens.
    """
    x, y, mask = np.array([[1.0, 0.0]]), np.array([[-0.6, 0.8], [9.0, 9.0]]), np.array([True, False])
    return (
        lambda: maxsim_of_pylate(x, y, mask),
        lambda: attnpool.maxsim_score(x, y, y_mask=mask),
    )


@TEXTS.wrong("P-10b", was="0", now="-0.600000", place="ColBERT `segmented_maxsim.cpp:59`")
def _(attnpool):
    """In the CPU's loop the maximum starts at 0, so it is never negative, even without padding. The GPU's code sets
    similarities to padding to -9999.
    """
    x, y = np.array([[1.0, 0.0]]), np.array([[-0.6, 0.8]])
    return (
        lambda: maxsim_of_colbert(x, y),
        lambda: attnpool.maxsim_score(x, y),
    )


@TEXTS.wrong("P-19", was="-inf", now="0", place="sentence-transformers `WeightedLayerPooling`, line 42")
def _(attnpool):
    """Weights that sum to 0 are divided by their sum."""
    layers, weights = np.array([[1.0], [3.0]]), np.array([1.0, -1.0])
    return (
        lambda: layers_by_weights(layers, weights),
        lambda: attnpool.weighted_pooling(layers, weights),
    )

"""Mistakes in readouts."""

import numpy as np
from conformance.mutants.mistakes import Mistakes, halves_swapped, over_the_padded_length

import attnpool_ref as ref
from attnpool_ref.primitives import mean


def _vlad(a, centers, norms):
    """VLAD as sums of tokens less sums of centres."""
    _, weights = a.oracle(return_weights=True)
    x = a.zeroed
    raw = np.swapaxes(weights, -1, -2) @ x - np.sum(weights, -2)[..., None] * centers
    return a.returns(norms(raw) if a.normalize else raw, weights)


def _whole(raw):
    return ref.l2_normalize(raw.reshape(*raw.shape[:-2], -1)).reshape(raw.shape)


def _other_gates(kernel):
    i, f, g, o = np.split(kernel, 4, -1)
    return np.concatenate([i, f, o, g], -1)


MUTANTS = Mistakes(
    latent_attention_pooling={
        "latent: the mean over the padded length": lambda a: a.exchanged(mean, over_the_padded_length),
        "latent: zeros for padding, and then what the map makes of them": lambda a: a.oracle(x=a.zeroed, mask=None),
        "latent: scaled by the width of all heads": lambda a: a.oracle(
            query_kernel=a.query_kernel * a.query_kernel.shape[1] ** -0.5
        ),
        "latent: the gelu of the other half": lambda a: a.mapped(mlp_kernel=halves_swapped, mlp_bias=halves_swapped),
    },
    set2set_pooling={
        "set2set: one step too few": lambda a: (
            a.oracle(num_steps=max(a.num_steps - 1, 1)) if a.num_steps > 1 else a.oracle(num_steps=2)
        ),
        "set2set: padding is a token of zeros": lambda a: a.oracle(x=a.zeroed, mask=None),
        "set2set: the gates in another order": lambda a: a.mapped(
            input_kernel=_other_gates, recurrent_kernel=_other_gates, bias=_other_gates
        ),
        "set2set: what was read is forgotten": lambda a: a.mapped(
            input_kernel=lambda kernel: np.where(np.arange(len(kernel))[:, None] < len(kernel) // 2, kernel, 0)
        ),
        "set2set: the halves the other way round": lambda a: a.changed(halves_swapped),
    },
    vlad_pooling={
        "vlad: the norm of the whole alone": lambda a: _vlad(a, a.centers, _whole),
        "vlad: the norm of each cluster alone": lambda a: _vlad(a, a.centers, ref.l2_normalize),
        "vlad: padding is a token of zeros": lambda a: a.returns(
            a.oracle(x=a.zeroed, mask=None), a.oracle(return_weights=True)[1]
        ),
        "vlad: the ghosts are left out of the softmax": lambda a: a.mapped(
            assign_kernel=lambda kernel: kernel[:, : len(a.centers)], assign_bias=lambda bias: bias[: len(a.centers)]
        ),
        "vlad: the ghosts come first": lambda a: a.mapped(
            **dict.fromkeys(("assign_kernel", "assign_bias"), lambda x: np.roll(x, x.shape[-1] - len(a.centers), -1))
        ),
    },
    gated_sum_pooling={
        "gated sum: padding is a token of zeros": lambda a: a.oracle(x=a.zeroed, mask=None),
        "gated sum: the gate and the value exchanged": lambda a: a.oracle(
            gate_kernel=a.value_kernel, value_kernel=a.gate_kernel, gate_bias=a.value_bias, value_bias=a.gate_bias
        ),
        "gated sum: the mean": lambda a: a.oracle() / np.maximum(np.sum(a.mask, -1), 1)[..., None],
        "gated sum: the paper's outer tanh": lambda a: np.tanh(a.oracle()),
    },
)


@MUTANTS.of("latent_attention_pooling", "latent: the latents ask the tokens")
def latents_ask_the_tokens(a):
    """Where the widths allow it; the latents are then averaged."""
    if a.x.shape[-1] != a.latents.shape[-1]:
        return a.oracle()
    width = a.x.shape[-1]
    tokens, masks = a.x.reshape(-1, *a.x.shape[-2:]), a.mask.reshape(-1, a.mask.shape[-1])
    parts = [
        a.oracle(x=a.latents, latents=x[m], mask=None) if np.any(m) else np.zeros(width)
        for x, m in zip(tokens, masks, strict=True)
    ]
    return np.reshape(parts, (*a.x.shape[:-2], width))


@MUTANTS.of("vlad_pooling", "vlad: no direction where the weights are too small for float32")
def vlad_loses_small_weights(a):
    _, weights = a.oracle(return_weights=True)
    lost = ~np.any(np.float32(weights), -2)[..., None]
    raw = np.where(lost, 0, a.oracle(normalize=False, return_weights=False))
    return a.returns(_whole(ref.l2_normalize(raw)) if a.normalize else raw, weights)


@MUTANTS.of("vlad_pooling", "vlad: the ghosts are cut off by [:-G], which leaves nothing where there are none")
def vlad_ghosts_cut_off_by_a_negative_slice(a):
    pooled, weights = a.oracle(return_weights=True)
    clusters = np.arange(a.assign_kernel.shape[1])
    left = np.isin(clusters[: len(a.centers)], clusters[: len(a.centers) - len(clusters)])
    return a.returns(np.where(left[:, None], pooled, 0), np.where(left, weights, 0))


@MUTANTS.of("latent_attention_pooling", "latent: the latents without their norm")
def latents_scaled(a):
    scale = np.ones(a.latents.shape[-1]) if a.latent_norm_scale is None else a.latent_norm_scale
    return a.oracle(latent_norm_scale=scale * np.std(a.latents))


@MUTANTS.of("set2set_pooling", "set2set: the query where nothing is real")
def set2set_keeps_the_query(a):
    other, _ = a.oracle(mask=np.ones_like(a.mask), x=0 * np.nan_to_num(a.x), return_weights=True)
    return a.changed(lambda read: np.where(a.empty, other, read))

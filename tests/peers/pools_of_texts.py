"""sentence-transformers' modules: pooling by all its modes, padded on both sides and packed, layers, SPLADE, MaxSim."""

import numpy as np
import torch
from imported import Pooling, SpladePooling, WeightedLayerPooling, maxsim
from pools import MASK, NUMPY, REAL, SIZES, Case, called

SIDES = np.stack([np.ones(5, bool), MASK[1], MASK[2, ::-1]])
"""[3, 5]: a whole row, one that is padded on the right, one on the left."""

MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PROMPT = 1
Y_MASK = np.arange(6) < np.array([[6], [1], [4], [3]])


def padded(mask, include_prompt):
    def pool(arrays):
        features = {"attention_mask": torch.tensor(mask).long(), "prompt_length": PROMPT}
        return Pooling(4, MODES, include_prompt)(features | {"token_embeddings": arrays["x"]})["sentence_embedding"]

    return pool


def packed(include_prompt):
    """As flash attention leaves the tokens: one row, and where each sequence begins."""

    def pool(arrays):
        ends = torch.tensor([0, *np.cumsum(SIZES)])
        features = {"cu_seq_lens_q": ends, "prompt_length": PROMPT, "token_embeddings": arrays["x"][REAL][None]}
        return Pooling(4, MODES, include_prompt)(features)["sentence_embedding"]

    return pool


def every_mode(mask, include_prompt):
    """The calls of attnpool_ref/table/names.md, one after another."""

    def pool(package, arrays):
        x, positions = arrays["x"], package.token_positions(mask)
        kept = mask if include_prompt else mask & (positions >= PROMPT)
        numpy = NUMPY[package]
        parts = [
            package.first_pooling(x, kept),
            package.max_pooling(x, kept),
            package.mean_pooling(x, kept),
            package.sum_pooling(x, kept) / numpy.sqrt(kept.sum(-1, keepdims=True)),
            package.weighted_pooling(x, positions + 1, kept),
            package.last_pooling(x, kept),
        ]
        return numpy.concatenate(parts, -1)

    return pool


def layers(arrays):
    given = {"all_layer_embeddings": list(arrays["layers"].movedim(-2, 0))}
    return called(WeightedLayerPooling(4, 2, 0), {"layer_weights": arrays["weights"]}, given)["token_embeddings"]


def splade(strategy):
    def pool(arrays):
        module = SpladePooling(strategy).train()  # otherwise it writes over what its gradient needs
        return module({"token_embeddings": arrays["x"], "attention_mask": torch.tensor(SIDES)})["sentence_embedding"]

    return pool


def our_splade(strategy):
    def pool(package, arrays):
        numpy = NUMPY[package]
        return getattr(package, f"{strategy}_pooling")(numpy.log1p(numpy.maximum(arrays["x"], 0)), SIDES)

    return pool


X = {"x": (3, 5, 4)}
CASES = [
    *(
        Case(f"Pooling, every mode, include_prompt={prompt}", X, padded(SIDES, prompt), every_mode(SIDES, prompt))
        for prompt in (True, False)
    ),
    *(
        Case(f"Pooling, packed, include_prompt={prompt}", X, packed(prompt), every_mode(MASK, prompt))
        for prompt in (True, False)
    ),
    Case(
        "WeightedLayerPooling",
        {"layers": (2, 5, 3, 4), "weights": (3,)},
        layers,
        lambda package, arrays: package.weighted_pooling(arrays["layers"], arrays["weights"]),
        positive=("weights",),
    ),
    *(Case(f"SpladePooling, {name}", X, splade(name), our_splade(name)) for name in ("max", "sum")),
    *(
        Case(
            f"maxsim, length_normalize={mean}",
            {"x": (3, 5, 4), "y": (4, 6, 4)},
            lambda arrays, mean=mean: maxsim(
                arrays["x"], arrays["y"], torch.tensor(SIDES), torch.tensor(Y_MASK), length_normalize=mean
            ),
            lambda package, arrays, mean=mean: package.maxsim_score_all_pairs(
                arrays["x"], arrays["y"], SIDES, Y_MASK, mean=mean
            ),
            dtype="float32",
        )
        for mean in (False, True)
    ),
]

"""The stages of a sentence-transformers model as recipes over the oracle, and how far rounding may take a result."""

import math

import numpy as np

import attnpool_ref
from attnpool_ref.conformance.checks import tolerances

ACTIVATIONS = {
    "identity": lambda x: x,
    "tanh": np.tanh,
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def pooled(stages, parameters, x, mask, prompt_length):
    """The stages as recipes over the oracle."""
    ranks = attnpool_ref.token_positions(mask)
    for number, stage in enumerate(stages):
        own = {name: parameters[f"{name}_{number}"] for name, _ in stage.shapes}
        if stage.kind == "layers":
            weights = own["layer_weights"]
            x = np.tensordot(weights / weights.sum(), np.where(mask[..., None], x[stage.start :], 0), 1)
        elif stage.kind == "pooling":
            kept = ranks >= (0 if stage.include_prompt else prompt_length)
            parts = {
                "cls": attnpool_ref.first_pooling(x, kept),
                "max": attnpool_ref.max_pooling(x, kept),
                "mean": attnpool_ref.mean_pooling(x, kept),
                "mean_sqrt_len_tokens": attnpool_ref.sum_pooling(x, kept)
                / np.sqrt(np.maximum(kept.sum(-1), 1))[:, None],
                "weightedmean": attnpool_ref.weighted_pooling(x, ranks + 1.0, kept),
                "lasttoken": attnpool_ref.last_pooling(x, kept),
            }
            x = np.concatenate([parts[mode] for mode in stage.modes], -1)
        elif stage.kind == "dense":
            residual = x @ own["residual_kernel"] if "residual_kernel" in own else x
            x = ACTIVATIONS[stage.activation](x @ own["kernel"] + own.get("bias", 0)) + (
                residual if stage.residual else 0
            )
        elif stage.kind == "layer_norm":
            x = attnpool_ref.layer_norm(x, own["scale"], own["bias"], epsilon=1e-5)
        else:
            x = attnpool_ref.l2_normalize(x)
    return x if any(stage.kind == "pooling" for stage in stages) else np.where(mask[..., None], x, 0)


def allowed_errors(stages, parameters, x, mask, expected, prompt_length):
    """How far from a result that was computed otherwise a result may be, by dtype."""

    def definition(arrays):
        return [pooled(stages, arrays, arrays["x"], mask, prompt_length)]

    terms = x.shape[-2] + sum(sum(array.shape) for array in parameters.values())
    random = np.random.default_rng(0)
    moved = np.max(tolerances.sensitivity(definition, parameters | {"x": x}, random)[0])
    return {
        dtype: 2 * tolerances.allowed_error(np.max(np.abs(expected)), moved, terms, dtype)
        for dtype in ("float32", "float64")
    }

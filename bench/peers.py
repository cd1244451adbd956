"""Peers of each function, the peers that are not installed, and versions."""

import contextlib
import platform
from importlib import metadata
from importlib.util import find_spec

import attnpool_ref
from bench import layers_flax, layers_others
from bench.calls import step_of
from bench.layers_others import pooling_by
from bench.programs import PEER, Way

PACKAGES = {"PyTorch": "torch", "PyG": "torch_geometric", "Keras": "keras", "Equinox": "equinox"}
"""Peers of the extra `bench`, by the package that each needs; JAX and Flax are always installed."""


def missing(find=find_spec):
    """Returns the peers that are not installed."""
    return [peer for peer, package in PACKAGES.items() if find(package) is None]


def installed():
    """Returns the version of Python and those of the installed packages."""
    found = {"python": platform.python_version(), "attnpool": attnpool_ref.__version__}
    for name in ("jax", "jaxlib", "flax", "numpy", "torch", "torch-geometric", "keras", "equinox"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _jax_peers():
    linen, nnx, others = layers_flax.linen_layer, layers_flax.nnx_layer, layers_others
    return {
        "attention_pooling": {"jax.nn": others.jax_pooling},
        "multi_head_attention_pooling": {
            "Flax Linen": pooling_by(linen),
            "Flax NNX": pooling_by(nnx),
            "jax.nn": pooling_by(others.jax_layer),
            "Keras": pooling_by(others.keras_layer),
            "Equinox": pooling_by(others.equinox_layer),
        },
        "mask_attention": {"jax.nn": others.jax_mask_attention, "Keras": others.keras_mask_attention},
        "additive_attention": {"Keras": others.keras_additive},
    }


def _torch_peers():
    from bench import layers_torch

    return {
        "attention_pooling": layers_torch.pooling_function,
        "multi_head_attention_pooling": layers_torch.pooling_layer,
        "cross_attention_pooling": layers_torch.cross_pooling,
        "mask_attention": layers_torch.mask_attention_function,
        "additive_attention": layers_torch.additive_attention,
        "additive_attention_pooling": layers_torch.gated_pooling,
        "maxsim_score_all_pairs": layers_torch.maxsim_in_blocks,
    }


def _pyg_peers():
    from bench import layers_torch

    return {"additive_attention_pooling": layers_torch.gated_aggregation}


def ways(function, absent=None):
    """Returns the installed peers of a function."""
    absent = missing() if absent is None else absent
    jax_peers = {name: call for name, call in _jax_peers().get(function, {}).items() if name not in absent}
    found = [Way(name, PEER, call, step_of(call)) for name, call in jax_peers.items()]
    for name, calls in (("PyTorch", _torch_peers), ("PyG", _pyg_peers)):
        if name not in absent and function in (known := calls()):
            found.append(Way(name, PEER, known[function], library="torch"))
    return found

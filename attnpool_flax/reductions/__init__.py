"""Reductions over tokens: every loop over the tokens of a sequence is in this folder.

A pooling computes its weights from reductions of a tokens object: :class:`Dense` or :class:`Packed`, or channel by channel
:class:`DenseChannels` or :class:`PackedChannels`. The object resolves the implementation and calls a kernel: ``plain``
(whole products, "einsum") or ``tiled`` (tiles in the cache of a CPU, "tiles").

===========================================  ==========================================================================
layouts of tokens                            ``dense``, ``packed``, ``channels``
accumulators and their merge                 ``accumulators``, ``softmax`` (:class:`~softmax.OnlineSoftmax`), ``max``, ``moments``,
                                             ``exponents``; of chunks ``state`` and ``state_base``
kernels of dense tokens                      ``softmax``, ``sums``, ``max``, ``perceptron``, ``cross``, ``largest_products``
kernels of packed tokens                     ``packed_softmax``, ``packed_kernels``, ``segment_sums``; on accelerators
                                             ``packed_chunks`` (TPUs) and ``packed_slots`` (GPUs)
kernels on request                           ``kernels``; ``pallas_softmax`` of dense tokens, ``pallas_segments`` of packed ones
loops                                        ``blocks`` (along one axis), ``tiling`` (dense tokens), ``query_blocks``
gradient rules of kernels                    ``rules``
choice of the implementation                 ``dispatch``
merge over a mesh                            ``collectives``
===========================================  ==========================================================================

A parallel reduction is a commutative monoid: tiles, shards of a mesh and chunks of a stream merge by the same methods.
"""

from attnpool_flax.reductions.channels import DenseChannels, PackedChannels, exp_scores
from attnpool_flax.reductions.collectives import all_reduced_softmax, all_reduced_sums, axis_names
from attnpool_flax.reductions.dense import Dense
from attnpool_flax.reductions.dispatch import (
    IMPLEMENTATIONS,
    cast_varying,
    default_implementation,
    in_forward_mode,
    log_dispatch,
    logged_dispatches,
    resolve,
    resolve_for_units,
    unify_varying,
    varying_axes,
)
from attnpool_flax.reductions.moments import moments
from attnpool_flax.reductions.packed import Packed

__all__ = [
    "Dense",
    "DenseChannels",
    "IMPLEMENTATIONS",
    "Packed",
    "PackedChannels",
    "all_reduced_softmax",
    "all_reduced_sums",
    "axis_names",
    "cast_varying",
    "default_implementation",
    "exp_scores",
    "in_forward_mode",
    "log_dispatch",
    "logged_dispatches",
    "moments",
    "resolve",
    "resolve_for_units",
    "unify_varying",
    "varying_axes",
]

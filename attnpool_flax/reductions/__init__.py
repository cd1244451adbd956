"""Reductions over tokens: every loop over the tokens of a sequence is in this folder.

Most pooling functions put their tokens into an object: :class:`Dense` (padded) or :class:`Packed` (sequences one after
another), or, to reduce each channel separately, :class:`DenseChannels` or :class:`PackedChannels`. The methods of the
object resolve the implementation and call a kernel. Attention of many queries calls ``query_blocks`` directly. The
names of kernels mean the same in all modules:

* ``plain`` is the implementation "einsum": whole matrix products, which JAX differentiates in forward and reverse mode.
* ``tiled`` is the implementation "tiles", which has its own gradient rule. On CPUs it loops over tiles that fit the
  cache (kernels whose names end with ``_tiles``). On accelerators it computes whole products of the tokens in their
  own dtype, without a float32 copy of them (``_whole``); on TPUs those of packed tokens chunk by chunk.

===========================================  ==========================================================================
layouts of tokens                            ``dense``, ``packed``, ``channels``
accumulators and their merge                 ``accumulators``, ``softmax`` (``OnlineSoftmax``), ``max``, ``moments``,
                                             ``exponents``; of chunks ``state`` and ``state_base``
kernels of dense tokens                      ``softmax``, ``sums``, ``max``, ``end_tokens``, ``perceptron``, ``cross``,
                                             ``largest_products``; of narrow dtypes ``narrow_products``
kernels of packed tokens                     ``packed_softmax``, ``packed_kernels``, ``segment_sums``; on accelerators
                                             ``packed_chunks`` (TPUs) and ``packed_slots`` (GPUs); ``perceptron``
sums of residuals                            ``residuals``, of packed tokens in ``packed_pairs``
sums of a function of each token             ``mapped_sums``
attention of many queries                    ``query_blocks``, ``example_blocks``; on GPUs ``softmax_average``; on
                                             TPUs ``product_average``; ``raw_keys`` (keys that no query sees)
kernels on request                           ``kernels``; ``pallas_softmax`` of dense tokens
loops                                        ``blocks`` (along one axis), ``tiling`` (dense tokens), ``query_blocks``,
                                             ``example_blocks``
gradient rules of kernels                    ``rules``
choice of the implementation                 ``dispatch``
merge over a mesh                            ``collectives``
===========================================  ==========================================================================

``OnlineSoftmax`` accumulators of tiles, of the devices of a mesh and of chunks of a stream merge by the same methods.
"""

from attnpool_flax.reductions.channels import DenseChannels, PackedChannels, exp_scores
from attnpool_flax.reductions.collectives import all_reduced_softmax, all_reduced_sums, axis_names
from attnpool_flax.reductions.dense import Dense
from attnpool_flax.reductions.dispatch import (
    IMPLEMENTATIONS,
    default_implementation,
    in_forward_mode,
    log_dispatch,
    logged_dispatches,
    resolve,
    resolve_for_units,
)
from attnpool_flax.reductions.example_blocks import over_examples
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
    "default_implementation",
    "exp_scores",
    "in_forward_mode",
    "log_dispatch",
    "logged_dispatches",
    "moments",
    "over_examples",
    "resolve",
    "resolve_for_units",
]

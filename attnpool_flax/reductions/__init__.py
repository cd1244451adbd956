"""Reductions over tokens: softmax, sums, maxima and residuals, with their loops over the tokens of a sequence.

The names of kernels mean the same in all modules:

* ``plain`` is the implementation "einsum": whole matrix products, which JAX differentiates in forward and reverse mode.
* ``tiled`` is the implementation "tiles", which has its own gradient rule. On CPUs it loops over tiles that fit the
  cache (kernels whose names end with ``_tiles``), sums and softmax only of masked or narrow tokens. On accelerators it
  computes whole products of the tokens in their own dtype, without a float32 copy of them (``_whole``); on TPUs those
  of packed tokens chunk by chunk.

===========================================  ==========================================================================
accumulators and their merge, over a mesh    ``accumulators``, ``softmax`` (``OnlineSoftmax``), ``max``, ``moments``,
                                             ``exponents``
kernels of dense tokens                      ``softmax``, ``sums``, ``max``, ``perceptron``, ``cross``
kernels of packed tokens                     ``packed``
sums of residuals (VLAD)                     ``vlad``
loops                                        ``loops``
gradient rules of kernels                    ``rules``
choice of the implementation                 ``dispatch``
===========================================  ==========================================================================

``OnlineSoftmax`` accumulators of tiles, of the devices of a mesh and of chunks of a stream merge by the same methods.
"""

"""Pallas kernels of the softmax over dense tokens, which run only on request, by ``implementation="pallas"``.

Pallas is slow to import, therefore the first request of a kernel imports it.
"""

from attnpool_flax.reductions.dispatch import KERNEL, log_dispatch


def softmax_kernel():
    """Logs the dispatch and returns the Pallas kernel that computes scores and ``OnlineSoftmax`` of dense tokens."""
    from attnpool_flax.kernels import softmax

    log_dispatch(KERNEL)
    return softmax.kernel

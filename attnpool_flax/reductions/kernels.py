"""Kernels that are requested by name. Pallas is slow to import: the first request imports it."""

from attnpool_flax.reductions.dispatch import KERNEL, log_dispatch


def softmax_kernel():
    """Logs and returns the function that computes scores and accumulator of the softmax by a kernel."""
    from attnpool_flax.reductions import pallas_softmax

    log_dispatch(KERNEL)
    return pallas_softmax.kernel

"""Kernels that are requested by name. Pallas is slow to import: the first request imports it."""

from attnpool_flax.reductions.dispatch import CUDNN, KERNEL, log_dispatch


def softmax_kernel():
    """Logs and returns the function that computes scores and accumulator of the softmax by a kernel."""
    from attnpool_flax.reductions import pallas_softmax

    log_dispatch(KERNEL)
    return pallas_softmax.kernel


def packed_softmax_kernel():
    """Logs and returns the function that computes :func:`softmax_kernel` of packed tokens."""
    from attnpool_flax.reductions import pallas_segments

    log_dispatch(KERNEL)
    return pallas_segments.kernel


def attention_kernel(**refused):
    """Logs and returns the function that computes attention of many queries by cuDNN.

    Args:
      **refused: arguments that it does not take, by name.

    Raises:
      KernelRefusal: one of them is given.
    """
    from attnpool_flax.reductions import cudnn_attention

    for name, value in refused.items():
        cudnn_attention.refuse(name, value)
    log_dispatch(CUDNN)
    return cudnn_attention.attention

"""Kernels that run only on request, by ``implementation="pallas"`` or ``"cudnn"``.

Pallas is slow to import, therefore the first request of a kernel imports it.
"""

from attnpool_flax.reductions.dispatch import CUDNN, KERNEL, log_dispatch


def softmax_kernel():
    """Logs the dispatch and returns the Pallas kernel that computes scores and accumulator of the softmax."""
    from attnpool_flax.reductions import pallas_softmax

    log_dispatch(KERNEL)
    return pallas_softmax.kernel


def packed_softmax_kernel():
    """Logs and returns the function that computes :func:`softmax_kernel` of packed tokens."""
    from attnpool_flax.reductions import pallas_segments

    log_dispatch(KERNEL)
    return pallas_segments.kernel


def attention_kernel(**refused):
    """Logs the dispatch and returns the function that computes attention of many queries by cuDNN.

    Args:
      **refused: the arguments of the call that cuDNN does not support, by name; each must be None.

    Raises:
      KernelRefusal: one of them is not None.
    """
    from attnpool_flax.reductions import cudnn_attention

    for name, value in refused.items():
        cudnn_attention.refuse(name, value)
    log_dispatch(CUDNN)
    return cudnn_attention.attention

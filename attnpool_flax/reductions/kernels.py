"""Kernels that run only on request, by ``implementation="pallas"``, ``"cudnn"`` or ``"splash"``.

Pallas is slow to import, therefore the first request of a kernel imports it.
"""

from attnpool_flax.reductions.dispatch import CUDNN, KERNEL, log_dispatch


def softmax_kernel():
    """Logs the dispatch and returns the Pallas kernel that computes scores and ``OnlineSoftmax`` of dense tokens."""
    from attnpool_flax.reductions import pallas_softmax

    log_dispatch(KERNEL)
    return pallas_softmax.kernel


def attention_kernel(implementation, **refused):
    """Logs the dispatch and returns the function that computes attention of many queries by a kernel.

    Args:
      implementation: "cudnn" or "splash".
      **refused: the arguments of the call that these kernels do not support, by name; each must be None.

    Raises:
      KernelRefusal: one of them is not None.
    """
    from attnpool_flax.reductions.attention_kernels import refuse_arguments

    refuse_arguments(implementation, refused)
    log_dispatch(implementation)
    if implementation == CUDNN:
        from attnpool_flax.reductions.cudnn_attention import attention
    else:
        from attnpool_flax.reductions.splash_attention import attention
    return attention

"""Linen module of the pooling stages of sentence-transformers."""

import flax.linen as nn
import jax.numpy as jnp
from flax.typing import Dtype, PrecisionLike

from attnpool_flax.linen.creation import PoolingModule
from attnpool_flax.modules.parameters import cast, check_dtypes
from attnpool_flax.modules.sentence_pool import sentence_pool
from attnpool_flax.modules.sentences import shaped


class SentencePool(PoolingModule):
    """Pooling stages of a sentence-transformers model, applied in order.

    :func:`attnpool_flax.load` makes one from the model's folder. Parameters, each with the number of its stage: of a
    dense layer ``kernel_i`` [d, o], ``bias_i`` [o] and ``residual_kernel_i`` [d, o]; of a layer normalisation
    ``scale_i`` [d] and ``bias_i`` [d]; of a mean of layers ``layer_weights_i`` [k].

    Attributes:
      stages: :class:`attnpool_ref.formats.sentences.Stage`, in order.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.

    >>> from attnpool_ref.formats.sentences import Stage
    >>> import jax
    >>> pool = SentencePool((Stage("pooling", modes=("mean", "max")), Stage("normalize")))
    >>> pool.apply({}, jnp.ones((2, 3, 4))).shape
    (2, 8)
    """

    stages: tuple
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None

    def __post_init__(self):
        super().__post_init__()
        check_dtypes("SentencePool", {"dtype": self.dtype, "param_dtype": self.param_dtype})

    @nn.compact
    def __call__(self, x, mask=None, prompt_length=0, *, lengths=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens; [layers, ..., L, d] where the first stage is a mean of layers.
          mask: bool, broadcastable to [..., L], True = real.
          prompt_length: how many of the first real tokens are the prompt; counts where the model leaves it out.
          lengths: number of real tokens, counted from the left: integers [...] or (). Give this or ``mask``.

        Returns:
          [..., o].
        """
        parameters = {
            name: cast(self.param(name, init, shape, self.param_dtype), self.dtype)
            for name, shape, init in shaped(self.stages)
        }
        return sentence_pool(cast(x, self.dtype), mask, lengths, prompt_length, self.stages, parameters, self.precision)

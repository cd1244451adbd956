"""NNX module of the pooling stages of sentence-transformers."""

import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype, PrecisionLike

from attnpool_flax.modules.creation import PoolingModule
from attnpool_flax.modules.parameters import KERNEL_INIT, cast, check_dtypes
from attnpool_flax.modules.sentence_pool import sentence_pool


class SentencePool(PoolingModule):
    """Pooling stages of a sentence-transformers model, applied in order.

    :func:`attnpool_flax.load` makes one from the model's folder. Parameters, each with the number of its stage: of a
    dense layer ``kernel_i`` [d, o], ``bias_i`` [o] and ``residual_kernel_i`` [d, o]; of a layer normalisation
    ``scale_i`` [d] and ``bias_i`` [d]; of a mean of layers ``layer_weights_i`` [k].

    Args:
      stages: :class:`attnpool_ref.formats.sentences.Stage`, in order.
      dtype: the dtype to which data and parameters are cast first; None promotes them.
      param_dtype: the dtype of the parameters.
      precision: of the products; None is full float32.
      rngs: "params" for the parameters.

    >>> from attnpool_ref.formats.sentences import Stage
    >>> pool = SentencePool((Stage("pooling", modes=("mean", "max")), Stage("normalize")), rngs=nnx.Rngs(0))
    >>> pool(jnp.ones((2, 3, 4))).shape
    (2, 8)
    """

    def __init__(
        self,
        stages: tuple,
        *,
        dtype: Dtype | None = None,
        param_dtype: Dtype = jnp.float32,
        precision: PrecisionLike = None,
        rngs: nnx.Rngs,
    ):
        self.stages = stages
        self.dtype = dtype
        self.param_dtype = param_dtype
        self.precision = precision
        check_dtypes("SentencePool", vars(self))
        for name, shape, init in shaped(stages):
            setattr(self, name, nnx.Param(init(rngs.params(), shape, param_dtype)))

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
        parameters = {name: cast(getattr(self, name)[...], self.dtype) for name, _, _ in shaped(self.stages)}
        return sentence_pool(cast(x, self.dtype), mask, lengths, prompt_length, self.stages, parameters, self.precision)


def shaped(stages):
    """Returns the name, the shape and the initialiser of each parameter."""
    inits = {"bias": nnx.initializers.zeros, "scale": nnx.initializers.ones, "layer_weights": nnx.initializers.ones}
    for number, stage in enumerate(stages):
        for name, shape in stage.shapes:
            yield f"{name}_{number}", shape, inits.get(name, KERNEL_INIT)

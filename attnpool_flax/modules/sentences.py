"""NNX module of the pooling stages of sentence-transformers."""

from dataclasses import KW_ONLY, InitVar

import jax.numpy as jnp
from flax import nnx
from flax.typing import Dtype, PrecisionLike

from attnpool_flax.modules.creation import PoolingModule, constructor_from_fields
from attnpool_flax.modules.parameters import KERNEL_INIT, Shaped, cast, check_dtypes
from attnpool_flax.modules.sentence_functions import sentence_pool
from attnpool_flax.modules.specs import Parameter

_INITIALIZERS = {
    "bias": nnx.initializers.zeros,
    "scale": nnx.initializers.ones,
    "layer_weights": nnx.initializers.ones,
}
"""Initializers of parameters that are not kernels."""


@constructor_from_fields
class SentencePool(PoolingModule):
    """Pooling stages of a sentence-transformers model, applied in order.

    :func:`attnpool_flax.load` makes one from the model's folder. Dense layers and normalizations before the pooling, or
    without one, as in ColBERT and PyLate, apply to each token. Parameters, where i is the stage's number from 0:
    ``kernel_i`` [d, o], ``bias_i`` [o] and ``residual_kernel_i`` [d, o] of a dense layer from width d to o; ``scale_i``
    [d] and ``bias_i`` [d] of a layer normalization; ``layer_weights_i`` [k] of a mean of k layers of the encoder.

    Args:
      stages: the stages in order, each a :class:`attnpool_ref.formats.sentences.Stage`.

    >>> from attnpool_ref.formats.sentences import Stage
    >>> pool = SentencePool((Stage("pooling", modes=("mean", "max")), Stage("normalize")), rngs=nnx.Rngs(0))
    >>> x = jnp.ones((2, 3, 4))
    >>> pool(x).shape
    (2, 8)
    """

    stages: tuple
    _: KW_ONLY
    dtype: Dtype | None = None
    param_dtype: Dtype = jnp.float32
    precision: PrecisionLike = None
    rngs: InitVar[nnx.Rngs]

    @classmethod
    def _check(cls, given):
        check_dtypes("SentencePool", given)

    @classmethod
    def _resolved(cls, given):
        return given

    @classmethod
    def _shaped(cls, given):
        """Returns the parameters of all stages, named as in the class docstring, with the shapes in each stage."""
        shaped = {}
        for number, stage in enumerate(given["stages"]):
            for kind, shape in stage.shapes:
                name = f"{kind}_{number}"
                shaped[name] = Shaped(
                    Parameter(name, (), _INITIALIZERS.get(kind, KERNEL_INIT)), (), shape, present=True
                )
        return shaped

    def __call__(self, x, mask=None, prompt_length=0, *, lengths=None):
        """Pools tokens.

        Args:
          x: [..., L, d] tokens; [layers, ..., L, d] if the first stage is a mean of layers.
          mask: bool, broadcastable to [..., L], True = real; None if all are.
          prompt_length: the number of first real tokens that are left out because they are a prompt, such as
            "query: "; it has no effect unless the model's pooling leaves prompts out (``include_prompt`` is False).
          lengths: number of real tokens, counted from the left: int [...] or (). Give this or ``mask``.

        Returns:
          [..., o], where o is the width after the last stage; without a pooling [..., L, o], 0 at padding.
        """
        values = self._values()
        return sentence_pool(cast(x, self.dtype), mask, lengths, prompt_length, self.stages, values, self.precision)

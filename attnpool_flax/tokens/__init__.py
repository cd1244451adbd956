"""Tokens of a pooling: padded (:class:`Dense`) or one sequence after another (:class:`Packed`), with their reductions.

The bodies of pooling functions get such an object and call its methods, which ``protocol`` lists, so one body serves
both layouts. To reduce each channel separately they use :class:`DenseChannels` or :class:`PackedChannels`.
"""

from attnpool_flax.tokens.channels import DenseChannels, PackedChannels
from attnpool_flax.tokens.dense import Dense
from attnpool_flax.tokens.packed import Packed

__all__ = ["Dense", "DenseChannels", "Packed", "PackedChannels"]

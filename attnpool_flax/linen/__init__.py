"""The modules of :mod:`attnpool_flax.modules` for Flax Linen: same names, same parameters, same layouts.

``init`` reads sizes of the data, as usual in Linen, except ``num_slots`` of AttentionPool2d and optional ones such as
``num_features``. The other arguments of the constructors are those of NNX, without ``rngs``, and modules with dropout
also have ``deterministic``. Each class is derived from the NNX class of the same name
(:mod:`attnpool_flax.linen.deriving`); the second argument of ``derived`` lists the sizes that are read.
"""

from attnpool_flax import modules
from attnpool_flax.linen.deriving import derived
from attnpool_flax.linen.formats import load, save
from attnpool_flax.modules import sentences

BilinearScore = derived(modules.BilinearScore, ("query_features", "key_features"))
AdditiveScore = derived(modules.AdditiveScore, ("query_features", "key_features"))
ConcatScore = derived(modules.ConcatScore, ("query_features", "key_features"))
TanhSumScore = derived(modules.TanhSumScore, ("query_features", "key_features"))
LocationScore = derived(modules.LocationScore, ("query_features", "state_features"))
TrilinearScore = derived(modules.TrilinearScore, ("in_features",))
AdditiveAttention = derived(modules.AdditiveAttention, ("query_features", "key_features"))
TanhSumAttention = derived(modules.TanhSumAttention, ("query_features", "key_features"))
LocationAttention = derived(
    modules.LocationAttention, ("query_features", "state_features", "value_features", "num_slots")
)
MultiHeadAttention = derived(modules.MultiHeadAttention, ("query_features", "key_features", "value_features"))
WeightedPool = derived(modules.WeightedPool, ("num_slots",))
AttentionPool = derived(modules.AttentionPool, ("in_features",))
MultiHeadAttentionPool = derived(modules.MultiHeadAttentionPool, ("in_features",))
PowerMeanPool = derived(modules.PowerMeanPool)
LogSumExpPool = derived(modules.LogSumExpPool)
SoftmaxPool = derived(modules.SoftmaxPool)
AttentiveStatisticsPool = derived(modules.AttentiveStatisticsPool, ("in_features",))
MAPHead = derived(modules.MAPHead, ("in_features",))
AttentionalPooler = derived(modules.AttentionalPooler, ("in_features",))
AttentionPool2d = derived(modules.AttentionPool2d, ("in_features",))
PMA = derived(modules.PMA, ("in_features",))
AttentiveProbe = derived(modules.AttentiveProbe, ("in_features",))
AdditiveAttentionPool = derived(modules.AdditiveAttentionPool, ("in_features",))
LatentAttentionPool = derived(modules.LatentAttentionPool, ("in_features",))
Set2SetPool = derived(modules.Set2SetPool, ("in_features",))
VLADPool = derived(modules.VLADPool, ("in_features",))
GatedSumPool = derived(modules.GatedSumPool, ("in_features",))


def _projected_sides(module):
    """Returns the names of the widths that are read from the data: both, if ``qk_features`` is given alone, else none.

    To project only one side, the caller gives the width of this side.
    """
    both = module.x_features is None and module.y_features is None
    return ("x_features", "y_features") if both and module.qk_features is not None else ()


CrossAttentionPool = derived(
    modules.CrossAttentionPool,
    _projected_sides,
    x_features="d; needed only to project x and not y: give it without ``y_features``.",
    y_features="e; needed only to project y and not x: give it without ``x_features``.",
)
CodeWiseAttention = derived(modules.CodeWiseAttention)
MaskAttention = derived(modules.MaskAttention)
BiDAFAttention = derived(modules.BiDAFAttention, ("in_features",))
RelationVector = derived(modules.RelationVector, ("in_features",))
FieldAttentionPool = derived(modules.FieldAttentionPool, ("target_features", "field_features"))
LabelAttention = derived(modules.LabelAttention, ("in_features",))
SentencePool = derived(sentences.SentencePool)

__all__ = [*modules.__all__, "load", "save"]  # pyright: ignore[reportUnsupportedDunderAll]

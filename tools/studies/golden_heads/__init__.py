"""Golden files of the formats: the originals' results for random weights. ``make_golden_heads.py`` writes them."""

from golden_heads.bags import GOLDENS as BAGS
from golden_heads.heads import GOLDENS as HEADS
from golden_heads.layers import GOLDENS as LAYERS
from golden_heads.probes import GOLDENS as PROBES
from golden_heads.statistics import GOLDENS as STATISTICS

GOLDENS = (*HEADS, *PROBES, *LAYERS, *BAGS, *STATISTICS)

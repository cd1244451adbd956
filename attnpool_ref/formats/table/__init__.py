"""Table of the formats, in the order of the documentation."""

from attnpool_ref.formats.table.bags import ROWS as BAGS
from attnpool_ref.formats.table.heads import ROWS as HEADS
from attnpool_ref.formats.table.layers import ROWS as LAYERS
from attnpool_ref.formats.table.models import ROWS as MODELS
from attnpool_ref.formats.table.probes import ROWS as PROBES
from attnpool_ref.formats.table.statistics import ROWS as STATISTICS

ROWS = (*HEADS, *PROBES, *LAYERS, *MODELS, *BAGS, *STATISTICS)

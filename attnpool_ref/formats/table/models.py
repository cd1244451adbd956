"""Formats of folders with whole models, of which only the pooling stages are read."""

from attnpool_ref.formats import sentences
from attnpool_ref.formats.row import Format

SENTENCE_TRANSFORMERS = Format(
    sentences.NAME,
    title="what follows the encoder in a folder of sentence-transformers",
    source="sentence-transformers 6.2.0, sentence_transformer/modules/ and base/modules/",
    module="SentencePool",
    verified="1.2e-15, padded on either side, with and without a prompt",
    notes="Pooling in all modes, Dense, LayerNorm, Normalize, WeightedLayerPooling; the encoder is not part of it. Call it as `pool(x, mask, prompt_length)`. Saved into a new or empty folder, or into the folder of its encoder or model, whose other files do not change. Dropout is neither read nor written.",
    forms=(),
    sizes={},
)

ROWS = (SENTENCE_TRANSFORMERS,)

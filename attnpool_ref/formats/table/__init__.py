"""Table of the formats, in the order of the documentation.

A new format of trained heads needs two edits by hand:

* A row in a file of this folder: keys, shapes, layouts, and the options that no file contains. Everything else follows from
  it (docs/decisions/0011-formats-are-rows.md).
* A row in ``tools/studies/golden_heads/``, which calls the original with random weights and, where possible, with sizes that
  are all different. ``tools/studies/make_golden_heads.py`` writes its file in ``tests/formats/golden/``, and
  ``tools/studies/golden_differences.py`` prints how much the oracle differs from each original. If the library can be
  installed, ``make peers`` also tests the row with other weights.
"""

from attnpool_ref.formats import sentences
from attnpool_ref.formats.row import Format
from attnpool_ref.formats.table.heads import ROWS as HEADS
from attnpool_ref.formats.table.layers import ROWS as LAYERS
from attnpool_ref.formats.table.perceptrons import ROWS as PERCEPTRONS

SENTENCE_TRANSFORMERS = Format(
    sentences.NAME,
    title="the layers after the encoder in a model folder of sentence-transformers",
    source="sentence-transformers 6.2.0, sentence_transformer/modules/ and base/modules/",
    module="SentencePool",
    verified="1.2e-15, with padding on either side, with and without a prompt",
    notes="The layers may be `Pooling` in all modes, `Dense` with the activation Identity, Tanh, ReLU, GELU, SiLU or Sigmoid, `LayerNorm`, `Normalize` and `WeightedLayerPooling`. `Dense` and `Normalize` before the pooling apply to each token. A folder without `Pooling` (ColBERT, PyLate) gives vectors of tokens for `maxsim_score`, [B, L, o], 0 at padding. PyLate normalizes them outside of the parts in the folder: apply `l2_normalize`. `MultiVectorMask` is not read: pass the mask of the tokens that count. The encoder is not loaded. Call the module as `pool(x, mask, prompt_length)`. `prompt_length` (default 0) is the number of the prompt's tokens, which are the first real tokens; it matters only if the model's pooling leaves the prompt out (`include_prompt` false), and without it such a model pools the prompt too. If the first layer is `WeightedLayerPooling`, `x` is [layers, ..., L, d]. `save` adds the layers to the folder of an encoder, replaces the layers after the encoder in the folder of a model, and writes only the layers into a new or empty folder. No file of an encoder changes. Dropout is neither read nor written.",
    forms=(),
    sizes={},
)
"""The format of folders with whole models, of which only the pooling stages are read."""

ROWS = (*HEADS, *LAYERS, SENTENCE_TRANSFORMERS, *PERCEPTRONS)

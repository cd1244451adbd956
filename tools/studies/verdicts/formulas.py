"""Two formulas that everybody writes by hand, in NumPy and in PyTorch."""

import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.table import Entry


def masked_array(dtype):
    """`numpy.ma`: operations on a masked array leave masked elements out; a mean of nothing is masked itself.
    It is judged with `filled(0)`, which says what a masked mean becomes, and rounded to the tokens' dtype, for it is float64.
    """
    del dtype

    def pool(x, mask=None):
        hidden = np.ma.nomask if mask is None else np.broadcast_to(~mask[..., None], x.shape)
        return np.ma.masked_array(x, hidden).mean(-2).filled(0).astype(x.dtype)

    return Candidate(pool, arrays="numpy")


def model_card(dtype):
    """The mean pooling of many model cards: tokens times the mask, summed, over the sum of the mask, no less than 1e-9.
    The attention mask is an integer array of 0 and 1, as tokenizers give it.
    """
    del dtype
    import torch

    def pool(x, mask):
        kept = mask[..., None].expand(x.shape).to(x.dtype)
        return torch.sum(x * kept, 1) / torch.clamp(kept.sum(1), min=1e-9)

    return Candidate(pool, arrays="torch", mask_form="integer", batched=True)


ENTRIES = (
    Entry(
        "numpy.ma mean",
        "mean_pooling",
        masked_array,
        ("numpy",),
        "Look for NaN yourself, which it takes for masked. Round the result to the dtype that you need: it is float64.",
        long=True,
    ),
    Entry(
        "mean pooling of model cards",
        "mean_pooling",
        model_card,
        ("torch",),
        "Write `torch.where(mask[..., None] > 0, x, 0)` in place of the product if padding may hold NaN or inf.",
        long=True,
    ),
)

"""Two formulas that many people write by hand, in NumPy and in PyTorch."""

import numpy as np

from attnpool_ref.conformance import Candidate
from verdicts.table import Entry


def masked_array(dtype):
    """Averages a masked array along the tokens. `numpy.ma` ignores masked elements, and the mean of no elements is itself
    masked: `filled(0)` replaces it by 0. `astype` converts the result, float64 with a mask, to the dtype of the tokens.
    """
    del dtype

    def pool(x, mask=None):
        hidden = np.ma.nomask if mask is None else np.broadcast_to(~mask[..., None], x.shape)
        return np.ma.masked_array(x, hidden).mean(-2).filled(0).astype(x.dtype)

    return Candidate(pool, arrays="numpy")


def model_card(dtype):
    """Averages tokens as on many model cards: the sum of tokens times the mask, divided by the sum of the mask or by 1e-9
    if that is greater. The attention mask is an integer array of 0 and 1, as tokenizers return it.
    """
    del dtype
    import torch

    def pool(x, mask):
        kept = mask[..., None].expand(x.shape).float()
        return torch.sum(x * kept, 1) / torch.clamp(kept.sum(1), min=1e-9)

    return Candidate(pool, arrays="torch", mask_form="integer", batched=True)


ENTRIES = (
    Entry(
        "numpy.ma mean",
        "mean_pooling",
        masked_array,
        ("numpy",),
        "Check the tokens for NaN and infinities yourself, because with a mask `numpy.ma` masks a quotient that is not finite. Do not pool sequences of length 0.",
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

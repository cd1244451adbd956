"""Pooling of sentence-transformers, in the modes that have a row of their own in attnpool's table."""

from attnpool_ref.conformance import Candidate
from verdicts.table import Entry


def _pooled(mode):
    from sentence_transformers.models import Pooling

    pooling = Pooling(8, mode)

    def pool(x, mask=None):
        features = {"token_embeddings": x} | ({} if mask is None else {"attention_mask": mask})
        return pooling(features)["sentence_embedding"]

    return Candidate(pool, arrays="torch", mask_form="integer", batched=True)


def mean(dtype):
    """Averages the token embeddings whose `attention_mask` is 1, or all of them without a mask."""
    del dtype
    return _pooled("mean")


def maximum(dtype):
    """Takes the maximum of the token embeddings whose `attention_mask` is 1, feature by feature."""
    del dtype
    return _pooled("max")


def first(dtype):
    """Takes the embedding of the first token whose `attention_mask` is 1."""
    del dtype
    return _pooled("cls")


def last(dtype):
    """Takes the embedding of the last token whose `attention_mask` is 1."""
    del dtype
    return _pooled("lasttoken")


SELECT = (
    "If padding may hold NaN or inf, set it to 0 before the call: `torch.where(attention_mask[..., None] > 0, x, 0)`, where "
    "`x` [B, L, d] are the token embeddings."
)
SKIP = "If a text may have no tokens, set its vector to 0 after the call, `torch.where(attention_mask.any(-1)[:, None], result, 0)`."
TIES = (
    " If tokens tie for the maximum, the gradient goes to one of them, where attnpool divides it evenly. This has no remedy "
    "outside of the function."
)
NOTHING = "its documentation does not say what the vector of a text without tokens is"
ENTRIES = tuple(
    Entry(f"Pooling({mode!r}) (sentence-transformers)", row, make, ("sentence-transformers", "torch"), advice, **rest)
    for mode, row, make, advice, rest in (
        ("mean", "mean_pooling", mean, SELECT, {"long": True}),
        ("max", "max_pooling", maximum, SKIP + TIES, {"nothing_real": NOTHING}),
        ("cls", "first_pooling", first, SKIP, {"nothing_real": NOTHING}),
        ("lasttoken", "last_pooling", last, SELECT + " Do not call it with sequences of length 0.", {}),
    )
)

"""PyTorch's own reductions, of the real tokens of each example by themselves, and entmax's normalisers."""

import torch
from imported import entmax
from pools import MASK, SIZES, Case
from torch.nn import functional

X = {"x": (3, 5, 4)}
SCORES = {"scores": (3, 5)}


def each(reduction):
    """A reduction of [n, d] to [d], for each example."""
    return lambda arrays: torch.stack([reduction(x[:n]) for x, n in zip(arrays["x"], SIZES, strict=True)])


def rows(normalizer):
    """A function of the scores of one example, whose padding gets 0."""

    def normalize(scores, *rest):
        parts = [normalizer(row[:n], *rest) for row, n in zip(scores, SIZES, strict=True)]
        return torch.stack([functional.pad(part, (0, 5 - len(part))) for part in parts])

    return normalize


def seeded():
    """PyTorch's generator, as it stands before each draw here."""
    torch.manual_seed(0)


def gumbel(hard):
    def normalize(arrays):
        with torch.random.fork_rng():
            seeded()
            return functional.gumbel_softmax(arrays["scores"], tau=0.5, hard=hard)

    return normalize


def noise():
    """What gumbel_softmax draws."""
    with torch.random.fork_rng():
        seeded()
        return -torch.empty(3, 5, dtype=torch.float64).exponential_().log().numpy()


CASES = [
    Case(
        "torch.topk",
        X,
        each(lambda x: x.topk(2, 0).values.mean(0)),
        lambda package, arrays: package.top_k_pooling(arrays["x"], MASK, k=2),
    ),
    Case(
        "torch.logsumexp",
        X,
        each(lambda x: x.logsumexp(0)),
        lambda package, arrays: package.logsumexp_pooling(arrays["x"], MASK, mean=False),
    ),
    Case(
        "torch.prod",
        X,
        each(lambda x: 1 - (1 - x).prod(0)),
        lambda package, arrays: package.noisy_or_pooling(arrays["x"], MASK),
    ),
    Case(
        "torch.nn.functional.lp_pool1d",
        X,
        each(lambda x: functional.lp_pool1d(x.T, 3.0, len(x))[:, 0]),
        lambda package, arrays: (
            MASK.sum(-1, keepdims=True) ** (1 / 3) * package.power_mean_pooling(arrays["x"], MASK, 3.0)
        ),
        positive=("x",),
    ),
    *(
        Case(
            f"entmax.{name}",
            SCORES,
            lambda arrays, theirs=theirs: rows(theirs)(arrays["scores"]),
            lambda package, arrays, ours=ours, options=options: getattr(package, ours)(
                arrays["scores"], MASK, **options
            ),
        )
        for name, theirs, ours, options in (
            ("sparsemax", entmax.sparsemax, "sparsemax", {}),
            ("entmax15", entmax.entmax15, "entmax15", {}),
            ("sparsemax_bisect", entmax.sparsemax_bisect, "entmax", {"alpha": 2.0}),
        )
    ),
    Case(
        "entmax.entmax_bisect, alpha as well",
        SCORES | {"more": ()},
        lambda arrays: rows(entmax.entmax_bisect)(arrays["scores"], 1 + arrays["more"]),
        lambda package, arrays: package.entmax(arrays["scores"], MASK, alpha=1 + arrays["more"]),
        positive=("more",),
    ),
    Case(
        "attention whose weights are entmax15's",
        X | {"query": (4,)},
        lambda arrays: torch.einsum("bl,bld->bd", rows(entmax.entmax15)(arrays["x"] @ arrays["query"]), arrays["x"]),
        lambda package, arrays: package.attention_pooling(
            arrays["x"], MASK, arrays["query"], scale=1.0, normalizer="entmax15"
        ),
    ),
    *(
        Case(
            f"torch.nn.functional.gumbel_softmax, hard={hard}",
            SCORES,
            gumbel(hard),
            lambda package, arrays, hard=hard: package.gumbel_softmax(
                arrays["scores"], None, noise(), temperature=0.5, hard=hard
            ),
        )
        for hard in (False, True)
    ),
]

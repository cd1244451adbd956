"""Further published mistakes in PyTorch: gated attention as a module, deviations, packed tokens, wrong axes."""

import itertools

import torch


def _real(x, mask):
    return torch.ones(x.shape[:-1], dtype=torch.bool) if mask is None else mask.bool().expand(x.shape[:-1])


class Gated(torch.nn.Module):
    """Gated attention over a bag, in which ``weights_of(scores, real)`` may be wrong, as in ABMIL and CLAM."""

    def __init__(self, weights_of):
        super().__init__()
        torch.manual_seed(0)
        self.V, self.U, self.w = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3), torch.nn.Linear(3, 1)
        self.weights_of = weights_of

    def forward(self, x, mask=None):
        scores = self.w(torch.tanh(self.V(x)) * torch.sigmoid(self.U(x))).squeeze(-1)
        return torch.einsum("...l,...ld->...d", self.weights_of(scores, _real(x, mask)), x)


PARAMETERS = {"kernel": "V.weight.T", "bias": "V.bias", "gate_kernel": "U.weight.T", "gate_bias": "U.bias"}
PARAMETERS |= {"out_kernel": "w.weight[0]", "out_bias": "w.bias[0]"}

gated_masked_after_the_softmax = Gated(lambda scores, real: scores.softmax(-1) * real)
gated_scores_times_mask = Gated(lambda scores, real: (scores * real).softmax(-1))
gated_filled = Gated(lambda scores, real: scores.masked_fill(~real, -1e9).softmax(-1))


def nan_for_a_single_token(x, mask=None):
    real = _real(x, mask).unsqueeze(-1)
    count = real.sum(-2)
    mean = torch.where(real, x, 0).sum(-2, keepdim=True) / count.unsqueeze(-2).clamp(min=1)
    squares = torch.where(real, (x - mean) ** 2, 0).sum(-2)
    return torch.where(count == 0, 0, (squares / (count - 1)).sqrt())


def moments_with_a_clamp(x, mask=None):
    real = _real(x, mask).unsqueeze(-1)
    x, count = torch.where(real, x, 0), real.sum(-2).clamp(min=1)
    mean = x.sum(-2) / count
    return ((x**2).sum(-2) / count - mean**2).clamp(min=1e-5).sqrt()


def softmax_of_all_segments(x, segment_ids, num_segments, query, mask=None):
    query = query if query.ndim == 1 else query[segment_ids]
    scores = (x * query).sum(-1) / x.shape[-1] ** 0.5
    weights = scores.masked_fill(~_real(x, mask), float("-inf")).softmax(-1)
    return x.new_zeros(num_segments, x.shape[-1]).index_add(0, segment_ids, weights.unsqueeze(-1) * x)


def maximum_of_all_subtracted(scores, mask=None, *, axis=-1):
    real = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.bool().expand(scores.shape)
    top = scores.masked_fill(~real, float("-inf")).max() if scores.numel() else 0
    powers = torch.where(real, (scores - top).exp(), 0)
    total = powers.sum(axis, keepdim=True)
    return powers / torch.where(total == 0, 1, total)


def maximum_by_reduce(x, segment_ids, num_segments):
    if len(x) == 0:
        return x.new_zeros(num_segments, x.shape[-1])
    x = x[segment_ids.argsort(stable=True)]
    ends = torch.bincount(segment_ids, minlength=num_segments).cumsum(0)
    parts = [x[a : max(a + 1, b)].amax(0) for a, b in itertools.pairwise([0, *ends.tolist()]) if a < len(x)]
    parts += [x.new_zeros(x.shape[-1])] * (num_segments - len(parts))
    return torch.stack(parts)


def as_many_as_the_largest_id(x, segment_ids, num_segments, mask=None):
    real = _real(x, mask)
    size = int(segment_ids.max()) + 1 if len(segment_ids) else 0
    ids = segment_ids[real]
    total = x.new_zeros(size, x.shape[-1]).index_add(0, ids, x[real])
    return total / torch.bincount(ids, minlength=size).clamp(min=1).unsqueeze(-1)

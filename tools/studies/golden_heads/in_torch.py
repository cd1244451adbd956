"""Originals in PyTorch: their random numbers and their calls."""

import torch

from golden_heads import numbers


def filled(module, rng, scaled=None):
    """Sets a module's tensors to random numbers; the module then computes in float64 and in evaluation mode.

    Args:
      module: the original.
      rng: a NumPy generator.
      scaled: factors by the beginnings of keys, or a function from key and tensor to a tensor.

    Returns:
      The module, and its tensors in float32.
    """
    tensors = {}
    for key, tensor in module.state_dict().items():
        array = numbers.drawn(rng, key, tuple(tensor.shape))
        for beginning, change in (scaled or {}).items():
            if key.startswith(beginning):
                array = (change(array) if callable(change) else change * array).astype(array.dtype)
        tensors[key] = array
    module = module.double().eval()
    module.load_state_dict({key: torch.tensor(array) for key, array in tensors.items()})
    return module, tensors


class Calling:
    """Wrapper of a function of tensors (the last is a mask or None) as a function of arrays by name."""

    def __init__(self, forward):
        self.forward = forward

    def __call__(self, inputs, mask):
        """Returns the result."""
        with torch.no_grad():
            return self._result(map(torch.tensor, inputs.values()), mask).numpy()

    def gradients(self, inputs, mask, factors):
        """Returns the gradients of the sum of results times factors (which may have one more axis of 1) by each input."""
        tensors = [torch.tensor(array, requires_grad=True) for array in inputs.values()]
        result = self._result(tensors, mask)
        slopes = torch.autograd.grad((result * torch.tensor(factors.reshape(result.shape))).sum(), tensors)
        return [slope.numpy() for slope in slopes]

    def _result(self, tensors, mask):
        return self.forward(*tensors, None if mask is None else torch.tensor(mask)).double()


def seen_by(part, forward):
    """Returns the input of an inner module in a call of the original: the end of its head, before a classifier."""

    def call(*arguments):
        seen = []
        handle = part.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
        forward(*arguments)
        handle.remove()
        return seen[0]

    return call

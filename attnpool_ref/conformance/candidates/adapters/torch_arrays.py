"""Adapter of PyTorch tensors, for functions and ``torch.nn.Module``."""

import importlib

import numpy as np

from attnpool_ref.conformance.candidates.adapters import Constant, NumpyArrays, bfloat16


class TorchArrays(NumpyArrays):
    """Adapter of PyTorch tensors on one device, by default the CPU."""

    name = "torch"
    promotes = False
    ids = np.int64  # scatter_add_ gives a wrong gradient for int32, silently

    def __init__(self, device="cpu"):
        self._device, self._torch = device, importlib.import_module("torch")

    def device(self):
        known = self._torch.cuda.get_device_name(self._device) if str(self._device).startswith("cuda") else "PyTorch"
        return f"{self._device} ({known})"

    def versions(self):
        return {"numpy": np.__version__, "torch": self._torch.__version__}

    def reduced_products(self):
        return str(self._device) != "cpu"

    def is_reproducible(self):
        return str(self._device) == "cpu"

    def array(self, value, dtype):
        """Returns a NumPy array as a tensor: floats in ``dtype``, booleans and integers unchanged.

        bfloat16 is converted by its bits, because PyTorch cannot read NumPy's bfloat16 arrays.
        """
        value = np.array(super().array(value, dtype), order="C", copy=True)
        if value.dtype.name == "bfloat16":  # `== bfloat16()` may compare with None, which NumPy takes for float64
            return self._torch.from_numpy(value.view(np.int16)).view(self._torch.bfloat16).to(self._device)
        return self._torch.from_numpy(value).to(self._device)

    def strided(self, value, dtype):
        tensor = self.array(value, dtype)
        reverse = tuple(reversed(range(tensor.ndim)))
        memory = tensor.new_zeros((*reversed(tensor.shape), 2))
        memory[..., 0] = tensor.permute(reverse)
        return memory[..., 0].permute(reverse)

    def read(self, value):
        """Returns a tensor as a NumPy array.

        Raises:
          TypeError: the tensor is bfloat16, and ml_dtypes is not installed.
        """
        if not isinstance(value, self._torch.Tensor):
            return super().read(value)
        value = value.detach().cpu().contiguous()
        if value.dtype == self._torch.bfloat16:
            if bfloat16() is None:
                raise TypeError("returns bfloat16, which NumPy reads with ml_dtypes: pip install ml_dtypes")
            return value.view(self._torch.int16).numpy().view(bfloat16())
        return value.numpy()

    def imports(self, dtype):
        return ["import torch"]

    def held_code(self, expression):
        """Returns code that makes a NumPy array of the expression of a parameter that a module holds."""
        return f"{expression}.detach().numpy()"

    def code(self, name, dtype):
        """Returns code that makes a tensor of the NumPy array called ``name`` on the adapter's device.

        bfloat16 is passed as a list.
        """
        made = f"torch.from_numpy({name})"
        if dtype == "bfloat16":
            kind = f"torch.bfloat16 if {name}.dtype == ml_dtypes.bfloat16 else None"
            made = f"torch.tensor({name}.tolist(), dtype={kind})"
        device = self._device if isinstance(self._device, int) else str(self._device)
        return made if device == "cpu" else f"{made}.to({device!r})"

    def gradient(self, function, arrays, fixed, cotangents, held=None):
        """Returns gradients of the sum of outputs times cotangents, for each of ``arrays``, as a dict of NumPy arrays.

        The arguments are those of ``JaxArrays.gradient``. ``held`` has the tensors of :meth:`differentiable`, whose
        gradients are in the dict, too.

        Raises:
          Constant: no result has a gradient function.
        """
        leaves, traced = self._traced(function, arrays, fixed, cotangents)
        sources = _sources(held or {})
        found = self._torch.autograd.grad(
            [output for output, _ in traced], [*leaves.values(), *sources], [c for _, c in traced], allow_unused=True
        )
        of_arrays, of_own = found[: len(leaves)], found[len(leaves) :]
        return self._by_argument(leaves, of_arrays) | self._by_argument(
            held or {}, self._as_held(held or {}, sources, of_own)
        )

    def differentiable(self, held):
        """Returns the tensors whose elements are elements of trained parameters, each of one, such as a transpose."""
        torch = self._torch
        found = {key: v for key, v in held.items() if isinstance(v, torch.Tensor) and v.requires_grad}
        numbered = {key: torch.arange(1, 1 + v.numel()).reshape(v.shape).to(v) for key, v in found.items()}
        sources = _sources(found)
        back = torch.autograd.grad([*found.values()], sources, [*numbered.values()], retain_graph=True) if found else []
        again = dict(zip(found, self._as_held(found, sources, back), strict=True))
        return {key: value for key, value in found.items() if torch.equal(again[key], numbered[key])}

    def _as_held(self, held, sources, gradients):
        """Yields the gradients of the parameters ``own`` in the form of each tensor of ``held``, made of these."""
        grad, zeros = self._torch.autograd.grad, self._torch.zeros_like
        gradients = [zeros(leaf) if g is None else g for leaf, g in zip(sources, gradients, strict=True)]
        for tensor in held.values():
            probe = zeros(tensor).requires_grad_()
            back = grad(
                tensor, sources, probe, create_graph=True, allow_unused=True
            )  # linear in `probe`: its transpose
            yield grad(sum((b * g).sum() for b, g in zip(back, gradients, strict=True) if b is not None), probe)[0]

    def second(self, function, arrays, fixed, cotangents, directions, forward):
        """Returns Hessian-vector products along ``directions``, an array for each of ``arrays``, by argument.

        The Hessian is that of the sum of c (o + o² / 2) over the outputs o with cotangents c. The gradient is
        differentiated in reverse mode: ``forward`` is False, because :attr:`forward_mode` is False. Other arguments are those
        of ``JaxArrays.gradient``.

        Raises:
          RuntimeError: the implementation forbids a second differentiation.
          Constant: no result has a gradient function.
        """
        torch = self._torch
        leaves, traced = self._traced(function, arrays, fixed, cotangents)
        traced = [(torch.where(cotangent == 0, 0, output), cotangent) for output, cotangent in traced]
        total = sum(torch.sum(cotangent * (output + output * output / 2)) for output, cotangent in traced)
        inputs = list(leaves.values())
        first = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True)
        along = [
            torch.sum(gradient * directions[key])
            for key, gradient in zip(leaves, first, strict=True)
            if gradient is not None and gradient.requires_grad
        ]
        if any(map(_refuses, along)):
            raise RuntimeError("trying to differentiate twice what was marked with @once_differentiable")
        found = torch.autograd.grad(sum(along), inputs, allow_unused=True) if along else [None] * len(inputs)
        return self._by_argument(leaves, found)

    def _traced(self, function, arrays, fixed, cotangents):
        """Returns the arrays as leaf tensors, and (output, cotangent) for each output that depends on them."""
        leaves = {key: value.detach().requires_grad_() for key, value in arrays.items()}
        outputs = function(leaves | fixed)
        traced = [
            (output, cotangent.to(output.dtype))
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if isinstance(output, self._torch.Tensor) and output.requires_grad
        ]
        if not traced:
            raise Constant("PyTorch cannot differentiate it: no result remembers the inputs")
        return leaves, traced

    def _by_argument(self, leaves, found):
        """Returns gradients as NumPy arrays by argument; a gradient of None becomes 0."""
        return {
            key: self.read(self._torch.zeros_like(leaf) if gradient is None else gradient)
            for (key, leaf), gradient in zip(leaves.items(), found, strict=True)
        }


def _sources(held):
    """Returns the leaf tensors of which the values of a dict are made, each once."""
    nodes = [node for tensor in held.values() for node in _nodes(tensor.view_as(tensor))]
    return list({id(node.variable): node.variable for node in nodes if hasattr(node, "variable")}.values())


def _refuses(tensor):
    """Returns whether a tensor's graph has a node that forbids differentiation.

    ``autograd.grad`` skips such nodes silently.
    """
    return any(node.name() == "torch::autograd::Error" for node in _nodes(tensor))


def _nodes(tensor):
    seen, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            yield node
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]

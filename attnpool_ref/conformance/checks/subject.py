"""``Subject``: an implementation of one function in one dtype, which is called with cases and returns NumPy arrays."""

import functools

import numpy as np

from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance.candidates import Candidate, held_parameters, naming
from attnpool_ref.conformance.candidates.adapters import Constant
from attnpool_ref.conformance.candidates.calling import (
    Calling,
    NotApplicable,
    Packed,
    arrange,
    check_rank,
    check_side,
    check_some_real,
    fit,
    formed,
    is_number,
)
from attnpool_ref.conformance.candidates.capture import Watch
from attnpool_ref.conformance.candidates.chunks import oracle_of
from attnpool_ref.conformance.checks import optional_checks, tolerances
from attnpool_ref.conformance.checks.agreement import counted
from attnpool_ref.contract.text import type_of
from attnpool_ref.table.language import present


def cached(compute):
    """Returns a function of a subject, a case and ``return_weights`` that computes its result once, see ``cache``."""

    @functools.wraps(compute)
    def once(subject, case, return_weights=False, *more):
        key = (case.title, return_weights, compute.__name__)
        if key not in subject.cache:
            subject.cache[key] = compute(subject, case, return_weights, *more)
        return subject.cache[key]

    return once


class Subject:
    """An implementation of one function, called with cases in one dtype.

    Attributes:
      row: the function's row in the table, with the axis sizes that the implementation fixes.
      candidate, adapter, dtype: the implementation with its calling convention, its array family, and the dtype.
      function: the callable that is judged.
      oracle: the definition with which it is compared.
      calling: the mapping of the function's arguments to those of the implementation.
      parameters: values of the function's arguments that the implementation holds as parameters.
      held: those of ``parameters`` whose gradients are judged, as arrays of the implementation's library.
      whole_contract: whether deviations that are notes for others break guarantees, as in attnpool's own functions.
      tolerated: the deviations that a second run of a failing check tolerates.
      contiguous: whether arrays are passed as they are made, or with other strides.
      skipped: for each gradient that was skipped the reason.
      suggested: what :mod:`~attnpool_ref.conformance.running.suggestions` has found about the signature.
      is_narrow: whether the dtype is float16 or bfloat16.
      cache: results of the oracle; subjects of one function may share one cache for float32 and float64, and one for
        narrow dtypes.
    """

    def __init__(self, row, candidate, adapter, dtype, exact=None, watch=None, whole_contract=True):
        """``exact`` is a cache of the oracle's results, which the subjects of one function may share.

        ``watch`` captures output, warnings and durations of the calls; None makes a new :class:`Watch`.

        Raises:
          ValueError: the calling convention has names, parameters or sizes that do not fit the function.
        """
        self.candidate = candidate if isinstance(candidate, Candidate) else Candidate(candidate)
        self.adapter, self.dtype, self.watch = adapter, dtype, Watch() if watch is None else watch
        self.function = self.candidate.called()
        held = held_parameters.parameters_of(self.candidate, row)
        self.parameters = {key: np.asarray(adapter.read(value)) for key, value in held.items()}
        self.held = adapter.differentiable(held)
        self.row = held_parameters.restricted(row, self.candidate, self.parameters)
        self.calling = Calling(row, self.candidate, self.parameters)
        self.oracle = oracle_of(row.name)
        self.is_narrow = dtype in ("float16", "bfloat16")
        self.cache = {} if exact is None else exact.setdefault(self.is_narrow, {})
        self.skipped, self.suggested = {}, None
        self.whole_contract, self.tolerated, self.contiguous = whole_contract, frozenset(), True
        self._programs, self._answers, self._differentiable = {}, [], False

    @functools.cached_property
    def named(self):
        """Lines of code that assign the implementation to ``candidate``, or None if no name leads to it."""
        return naming.lines_of(self.candidate.target)

    def fit(self, case):
        """Returns the case as the implementation takes it, see :func:`~attnpool_ref.conformance.candidates.calling.fit`."""
        fitted = fit(case, self.calling, self.parameters)
        ids = {key: fitted.values[key].astype(self.adapter.ids) for key in fitted.given("segments")}
        return fitted.with_values("", **ids)

    def takes_weights(self):
        """Returns whether the implementation can return the weights."""
        return bool(self.row.weights) and self.calling.takes("return_weights") and self.candidate.result is None

    def reduced_products(self):
        """Returns whether products of narrow arrays may have been computed in their own dtype, not in float32."""
        return optional_checks.NARROW in self.tolerated or self.adapter.reduced_products()

    def terms(self, case):
        """Returns the number of roundings in the longest chain of operations of a case.

        If computation in a narrow dtype is tolerated, sums do not count, because they are accumulated with more bits.
        """
        return tolerances.NARROW_STEPS if optional_checks.NARROW in self.tolerated else case.terms()

    def logarithms(self, case):
        """Returns the tolerated error of a log-sum-exp of scores, in units of epsilon; 0 if none is tolerated."""
        if optional_checks.LOGARITHMS not in self.tolerated:
            return 0.0
        scores = np.abs(case.values["scores"])
        largest = float(np.max(scores, where=np.isfinite(scores), initial=0))
        return min(largest, tolerances.LARGEST_LOGARITHM)

    def rounding_of(self, dtype, case):
        """Returns the dtype whose rounding is allowed in a result of dtype ``dtype``, or "" if ``dtype`` is wrong."""
        right = case.result or self.dtype
        if optional_checks.ANY_DTYPE in self.tolerated and dtype in tolerances.EPSILON:
            floats = [name for name in (dtype, *(case.dtypes.values() or [self.dtype])) if name in tolerances.EPSILON]
            return max(floats, key=lambda name: tolerances.EPSILON[name])
        if dtype != right and optional_checks.WIDER in self.tolerated and dtype in ("float32", "float64"):
            return right
        return right if dtype == right else ""

    def values(self, case):
        """Returns the case's arguments, rounded to ``case.bits`` bits in narrow dtypes and in cases of several dtypes."""
        if not self.is_narrow and not case.dtypes:
            return case.values
        return drawing.narrow(case.values, case.bits) | {key: case.values[key] for key in self.parameters}

    # Calls

    def passed(self, case, return_weights=False):
        """Returns the arguments to pass, by the function's names: NumPy arrays (masks in its form) and plain values.

        Raises:
          NotApplicable: the implementation cannot be called with the case.
        """
        check_rank(case, self.candidate, self.parameters)
        check_some_real(case, self.calling)
        arguments = self.row.arguments
        numbers, packed = case.given("number"), self._packed(case)
        passed = {}
        for key, value in self.values(case).items():
            if value is None or key in self.parameters:
                continue
            if arguments[key].kind == "mask" and self.candidate.padding is not None:
                check_side(case, value, self.candidate.padding)
                if not self.calling.takes(key):
                    continue
            if not self.calling.takes(key):
                if not is_number(arguments[key]):
                    raise NotApplicable(f"it takes no `{key}`")
                continue
            if packed is not None:
                value = (
                    packed.numbers.astype(self.adapter.ids)
                    if arguments[key].kind == "mask"
                    else packed.pack(key, value)
                )
            elif arguments[key].kind == "mask":
                value = formed(self.candidate, value)
            plain = key in numbers and key not in case.dtypes
            passed[key] = float(value) if plain else value  # numbers are passed as Python floats
        for key, value in case.options.items():
            if self.calling.takes(key):
                passed[key] = value
            elif value != self.calling.default(key):
                raise NotApplicable(f"it takes no `{key}`, and {value!r} is not its default")
        if packed is not None:
            passed["num_segments"] = packed.examples
        return passed | ({"return_weights": True} if return_weights else {})

    def _packed(self, case):
        if self.candidate.mask_form != "segments":
            return None
        return Packed(case, next(k for k, a in self.row.arguments.items() if a.kind == "mask"))

    def converted(self, case, return_weights=False):
        """Returns (args, kwargs) of the call, with arrays of the implementation's library."""
        passed = self.passed(case, return_weights)
        return self.calling.arrange({k: self.convert(v, case.dtypes.get(k)) for k, v in passed.items()})

    def convert(self, value, dtype=None):
        """Returns a NumPy array as an array of the implementation's library; floats get ``dtype`` or the judged dtype.

        Values of other types are returned unchanged.
        """
        return self._array(value, dtype or self.dtype) if isinstance(value, (np.ndarray, np.generic)) else value

    def _array(self, value, dtype):
        return (self.adapter.array if self.contiguous else self.adapter.strided)(value, dtype)

    def raw(self, case, return_weights=False):
        """Calls the implementation and returns its result unchanged."""
        with self.adapter.context(self.dtype), np.errstate(all="ignore"):
            args, kwargs = self.converted(case, return_weights)
            return self.watch.call(self.function, *args, **kwargs)

    def outputs(self, case, return_weights=False):
        """Returns the implementation's results as a list of NumPy arrays, weights last; caches the last few results."""
        for known, weights, answer in self._answers:
            if known is case and weights == return_weights:
                return answer
        answer = self.read(case, self.raw(case, return_weights))
        self._answers = [(case, return_weights, answer), *self._answers[:3]]
        return answer

    def read(self, case, result):
        """Converts the result for a case to a list of NumPy arrays.

        Raises:
          TypeError: a part of the result is not an array of numbers.
        """
        packed = self._packed(case)
        with self.adapter.context(self.dtype):
            found = [self._read(part) for part in _no_none(self.adapter.parts(result))]
        return found if packed is None else [packed.result(output) for output in found]

    def _read(self, part):
        array = self.adapter.read(part)
        if array.dtype.kind in "OUSM":
            raise TypeError(f"returns {type_of(part)}, needs an array of numbers")
        return array

    # Results of the oracle

    @cached
    def exact(self, case, return_weights=False):
        """Returns the oracle's results for the same (rounded) arguments: float64, masks boolean, positions integers."""
        if self._computed_with_weights(return_weights):
            return self.exact(case, True)[: len(self.row.results)]
        return oracle_outputs(self, self.values(case), case, return_weights)

    def _computed_with_weights(self, return_weights):
        """Returns whether results without weights are taken from the oracle's call with weights, to save a call."""
        return not return_weights and self.takes_weights()

    def floats(self, case, kinds=("data", "parameter", "number"), held=()):
        """Returns a dict of the floating-point arguments of these kinds, and of those that broadcast.

        Only arguments that the implementation takes are in it, and of those that it holds itself the ones in ``held``.
        """
        found = self._floats(case, kinds)
        return {k: v for k, v in found.items() if k in held or (k not in self.parameters and self.calling.takes(k))}

    def _floats(self, case, kinds):
        values = self.values(case)
        return {k: np.asarray(values[k]) for k in case.given(*kinds, "stretch") if values[k].dtype.kind == "f"}

    @cached
    def sensitivities(self, case, return_weights):
        """Returns the change of each element of the exact results per relative change of the inputs."""
        if self._computed_with_weights(return_weights):
            return self.sensitivities(case, True)[: len(self.row.results)]
        values, touched = self.values(case), self._floats(case, ("data", "parameter", "number"))
        return tolerances.sensitivity(
            lambda moved: oracle_outputs(self, values | moved, case, return_weights),
            {k: v for k, v in touched.items() if k not in case.exact and np.size(v)},
            case.rng(" sensitivity"),
            self.exact(case, return_weights),
        )

    # Gradients

    def gradients(self, case, cotangents, return_weights):
        """Returns the implementation's gradients of its floating arguments, for cotangents of its outputs.

        The arguments in :attr:`held` are among them. A number that the framework cannot differentiate is left out, and
        noted in ``skipped``; so are the other parameters that the implementation holds.

        Raises:
          Untraceable: there is no gradient at all.
        """
        numbers = [k for k in case.given("number") if k in self.floats(case)]
        left_out = [k for k in numbers if k in self.skipped]
        try:
            return self._gradients(case, cotangents, return_weights, left_out)
        except Exception as error:
            possible = [k for k in numbers if k not in left_out]
            if not possible:
                raise
            self._gradients(case, cotangents, return_weights, numbers)  # raises if no number is the cause
            errors = {k: self._error_of_number(case, cotangents, return_weights, k, numbers) for k in possible}
            causes = {k: cause for k, cause in errors.items() if cause} or dict.fromkeys(possible, error)
            self.skipped |= {k: f"{type(cause).__name__} where `{k}` is traced" for k, cause in causes.items()}
        return self.gradients(case, cotangents, return_weights)

    def _error_of_number(self, case, cotangents, return_weights, key, numbers):
        """Returns the error of the call in which ``key`` is the only number that is differentiated, or None."""
        try:
            self._gradients(case, cotangents, return_weights, [k for k in numbers if k != key])
        except Exception as error:
            return error

    def _gradients(self, case, cotangents, return_weights, left_out):
        self.skipped |= dict.fromkeys(self.parameters.keys() - self.held, "not judged (held by the module)")
        derive = functools.partial(self.adapter.gradient, held=self.held) if self.held else self.adapter.gradient
        return self._differentiated(derive, case, cotangents, return_weights, left_out)

    def second_derivatives(self, case, cotangents, return_weights, directions, forward):
        """Returns Hessian-vector products along ``directions``, an array for each floating-point argument, by argument.

        The Hessian is that of the sum of c (o + o² / 2) over the outputs o with cotangents c. With ``forward`` the
        gradient is differentiated in forward mode, else in reverse mode.
        """

        def second(program, arrays, fixed, cotangents):
            packed = self._packed(case)
            parts = directions if packed is None else {k: packed.pack(k, directions[k]) for k in arrays}
            along = {k: self.traced(case, k, parts[k]) for k in arrays}
            return self.adapter.second(program, arrays, fixed, cotangents, along, forward)

        return self._differentiated(second, case, cotangents, return_weights, self.skipped)

    def _differentiated(self, derive, case, cotangents, return_weights, left_out):
        """Returns the result of ``derive(program, arrays, fixed, cotangents)`` for the case, by argument.

        The arguments ``left_out`` are not differentiated.
        """
        passed, packed = self.passed(case, return_weights), self._packed(case)
        keys = [k for k in self.floats(case) if k not in left_out]
        program = self.program(passed, keys)
        if packed is not None:
            cotangents = [c.reshape(packed.examples, *c.shape[len(case.batch) :]) for c in cotangents]
        with self.adapter.context(self.dtype):
            arrays = {k: self.traced(case, k, passed[k]) for k in keys}
            fixed = {k: self.convert(v) for k, v in passed.items() if k not in keys and isinstance(v, np.ndarray)}
            cotangents = [self.convert(c) for c in cotangents]
            try:
                found = self.watch.call(derive, program, arrays, fixed, cotangents)
            except Constant:
                if not self._differentiable:
                    raise
                found = {key: np.zeros_like(self.adapter.read(array)) for key, array in arrays.items()}
        self._differentiable = True
        return found if packed is None else {k: v if k in self.held else packed.unpack(k, v) for k, v in found.items()}

    def traced(self, case, key, value):
        """Returns an argument as an array that can be differentiated; numbers get float64 if judged, else float32."""
        computing = "float64" if self.dtype == "float64" else "float32"
        return self._array(np.asarray(value, np.float64), computing if key in case.given("number") else self.dtype)

    def program(self, passed, keys):
        """Returns the implementation as a function from a dict of arrays to a list of arrays.

        ``passed`` has all arguments of the call, and ``keys`` are the names in the dict; their values in ``passed`` may
        be numbers. Calls with the same names and plain values get the same function object, so that it is compiled
        once.
        """
        plain = {k: v for k, v in passed.items() if k not in keys and not isinstance(v, np.ndarray)}
        key = (tuple(passed), tuple(keys), tuple(sorted((k, repr(v)) for k, v in plain.items())))
        if key not in self._programs:

            def program(arrays):
                args, kwargs = self.calling.arrange({k: arrays[k] if k in arrays else plain[k] for k in passed})
                return _no_none(flatten(self.function(*args, **kwargs)))

            self._programs[key] = program
        return self._programs[key]


def _no_none(parts):
    """Returns the parts of a result; raises a TypeError if one of several is None, as weights that were not asked for."""
    if len(parts) > 1 and any(part is None for part in parts):
        raise TypeError(f"returns None among {counted(len(parts))}")
    return parts


def flatten(result):
    """Returns nested tuples and lists as a flat list."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flatten(part)]
    return [result]


def output_axes(case, return_weights):
    """Returns the names of each output's axes.

    For functions whose data may have any rank, an output of that rank always gets :data:`ANY_RANK`, also in the cases
    of rank 1, whose arrays have the axis "m" only.
    """
    row = case.row
    axes = present(row.results + (row.weight_results if return_weights else ()), case.sizes)
    any_rank = any(a.shapes == (("...",),) and a.kind == "data" for a in row.arguments.values())
    return [drawing.ANY_RANK if names == ("...",) and any_rank else names for names in axes]


def oracle_outputs(subject, values, case, return_weights):
    """Returns the oracle's results as a flat list of arrays: float64, masks boolean, positions integers."""
    given = {k: v for k, v in values.items() if v is not None} | case.options
    if return_weights:
        given["return_weights"] = True
    args, kwargs = arrange(subject.oracle, given)
    with np.errstate(all="ignore"):
        return flatten(subject.oracle(*args, **kwargs))

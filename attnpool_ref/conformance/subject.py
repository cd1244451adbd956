"""A candidate for one row, and how it is called: arguments in the oracle's order, results as a flat list."""

import inspect

import numpy as np

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import tolerances


class Subject:
    """A candidate for one row, called with the kit's cases in one dtype."""

    def __init__(self, row, function, adapter, dtype, exact=None):
        """``exact`` keeps the oracle's results; subjects of one row may share it."""
        self.row, self.function, self.adapter, self.dtype = row, function, adapter, dtype
        self.oracle = getattr(attnpool_ref, row.name)
        self.is_narrow = dtype in ("float16", "bfloat16")
        self.kept = {} if exact is None else exact.setdefault(self.is_narrow, {})
        self._programs, self._answers = {}, []

    def call_arguments(self, case, return_weights, convert=None):
        """(args, kwargs) of the call: positional as the row's function has them, absent ones left out.

        Args:
          case: the case.
          return_weights: ask for the weights.
          convert: from an array and a dtype's name to the candidate's array; None leaves NumPy arrays.
        """
        values = {k: v for k, v in self.values(case).items() if v is not None}
        numbers = [k for k in case.given("number") if k not in case.dtypes]  # a number has no dtype
        if convert is not None:
            values |= {k: convert(v, case.dtypes.get(k, self.dtype)) for k, v in values.items() if k not in numbers}
        values |= case.options | {k: float(values[k]) for k in numbers}
        if return_weights:
            values["return_weights"] = True
        return arrange(self.oracle, values)

    def values(self, case):
        """The case's arguments as the dtype holds them."""
        return drawing.narrow(case.values) if self.is_narrow or case.dtypes else case.values

    def accepts(self, names, options, return_weights=False, left=()):
        """Whether the candidate's signature takes these arguments, and has defaults for those that are ``left`` away."""
        if any(requires(self.function, name) for name in left):
            return False
        arguments = self.row.arguments
        values = {k: None for k, a in arguments.items() if not a.optional or k in names}
        # An argument that the candidate lacks may stay away where its row's default says the same.
        defaults = contract.signature_of(self.oracle).parameters
        values |= {k: v for k, v in options.items() if defaults[k].default != v}
        return takes(self.function, self.oracle, values | ({"return_weights": True} if return_weights else {}))

    def outputs(self, case, return_weights=False):
        """The candidate's results as a list of NumPy arrays, weights last; those of the last cases are kept."""
        for known, weights, answer in self._answers:
            if known is case and weights == return_weights:
                return answer
        with self.adapter.context(self.dtype), np.errstate(all="ignore"):
            answer = self.call(*self.converted(case, return_weights))
        self._answers = [(case, return_weights, answer), *self._answers[:3]]
        return answer

    def converted(self, case, return_weights):
        """(args, kwargs) of the call as the candidate's own arrays, within the adapter's context."""
        args, kwargs = self.call_arguments(case, return_weights, self.adapter.array)
        return args, self._leave_defaults(kwargs)

    def call(self, args, kwargs):
        """The candidate's results as a list of NumPy arrays, within the adapter's context."""
        return [self.adapter.read(part) for part in flatten(self.function(*args, **kwargs))]

    def _leave_defaults(self, kwargs):
        """Without the arguments that say what the row's default says, where the candidate lacks them."""
        if takes(self.function, None, kwargs):
            return kwargs
        defaults = contract.signature_of(self.oracle).parameters
        return {k: v for k, v in kwargs.items() if takes_name(self.function, k) or defaults[k].default != v}

    def _convert(self, value):
        return self.adapter.array(value, self.dtype) if isinstance(value, (np.ndarray, np.generic)) else value

    def exact(self, case, return_weights=False):
        """The oracle's float64 results for the same (rounded) arguments."""
        key = (case.title, return_weights, "exact")
        if key not in self.kept:
            self.kept[key] = oracle_outputs(self, self.values(case), case, return_weights)
        return self.kept[key]

    def floats(self, case, kinds=("data", "parameter", "number")):
        """The floating arguments that rounding and gradients touch."""
        values = self.values(case)
        kinds = (*kinds, "stretch")
        return {k: np.asarray(values[k]) for k in case.given(*kinds) if values[k].dtype.kind == "f"}

    def sensitivities(self, case, return_weights):
        """How far each element of the exact results moves under relative changes of the inputs."""
        key = (case.title, return_weights, "sensitivity")
        if key not in self.kept:
            values = self.values(case)
            rounded = {k: v for k, v in self.floats(case).items() if k not in case.exact}
            self.kept[key] = tolerances.sensitivity(
                lambda moved: oracle_outputs(self, values | moved, case, return_weights),
                {k: v for k, v in rounded.items() if np.size(v)},
                case.rng(" sensitivity"),
            )
        return self.kept[key]

    def gradients(self, case, cotangents, return_weights, changes=None, numbers=True):
        """The candidate's gradients of all floating arguments, for cotangents of its outputs.

        Args:
          case: the case.
          cotangents: one float64 array for each output.
          return_weights: ask for the weights.
          changes: floating arguments with other values than the case has.
          numbers: differentiate by the numbers as well; otherwise they are Python's, and static.
        """
        values = {k: v for k, v in self.values(case).items() if v is not None}
        floats = self.floats(case) | (changes or {})
        static = {} if numbers else {k: float(values.pop(k)) for k in case.given("number")}
        floats = {k: v for k, v in floats.items() if k not in static}
        program = self.program(case, return_weights, static)
        numbers = case.given("number")
        computing = "float64" if self.dtype == "float64" else "float32"
        with self.adapter.context(self.dtype):
            arrays = {k: self.adapter.array(v, computing if k in numbers else self.dtype) for k, v in floats.items()}
            fixed = {k: self._convert(v) for k, v in values.items() if k not in floats}
            cotangents = [self._convert(c) for c in cotangents]
            return self.adapter.gradient(program, arrays, fixed, cotangents)

    def program(self, case, return_weights, static=None):
        """The candidate as a function of a dict of arrays, which returns a list; the same one for cases of one kind.

        Args:
          case: the case.
          return_weights: ask for the weights.
          static: numbers that are no arguments of the program.
        """
        given = tuple(k for k, v in case.values.items() if v is not None)
        options = case.options | (static or {})
        key = (given, tuple(sorted(options.items())), return_weights)
        if key not in self._programs:
            extra = options | ({"return_weights": True} if return_weights else {})

            def program(arrays):
                args, kwargs = arrange(self.oracle, arrays | extra)
                return flatten(self.function(*args, **self._leave_defaults(kwargs)))

            self._programs[key] = program
        return self._programs[key]


def arrange(oracle, values):
    """(args, kwargs): positional arguments as the oracle's signature has them, up to the last one given."""
    parameters = contract.signature_of(oracle).parameters
    positional = [k for k, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    given = [i for i, k in enumerate(positional) if k in values]
    count = given[-1] + 1 if given else 0
    args = [values.get(k) for k in positional[:count]]
    return args, {k: v for k, v in values.items() if k not in positional}


def takes(function, oracle, values):
    """Whether a signature takes these arguments; one that cannot be read is taken to."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    args, kwargs = ([], values) if oracle is None else arrange(oracle, values)
    try:
        signature.bind_partial(*args, **kwargs)
    except TypeError:
        return False
    return True


def takes_name(function, name):
    """Whether a signature has a parameter of this name, or any name."""
    return takes(function, None, {name: None})


def requires(function, name):
    """Whether a signature has a parameter of this name without a default."""
    try:
        parameter = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):
        return False
    return parameter is not None and parameter.default is inspect.Parameter.empty


def flatten(result):
    """Nested tuples and lists as a flat list."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flatten(part)]
    return [result]


def output_axes(row, return_weights):
    """The axes of each output, as the row's shapes name them; an output of any rank has those that were drawn."""
    axes = row.results + (row.weight_results if return_weights else ())
    return [drawing.ANY_RANK if own == ("...",) and _any_rank(row) else own for own in axes]


def _any_rank(row):
    return any(a.shapes == (("...",),) and a.kind == "data" for a in row.arguments.values())


def oracle_outputs(subject, values, case, return_weights):
    """The oracle's results as a flat list of float64 arrays."""
    given = {k: v for k, v in values.items() if v is not None} | case.options
    if return_weights:
        given["return_weights"] = True
    args, kwargs = arrange(subject.oracle, given)
    with np.errstate(all="ignore"):
        return flatten(subject.oracle(*args, **kwargs))

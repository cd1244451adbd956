"""The checks: agreement with the oracle, gradients, the contract's hazards, and laws that need no oracle.

Each works on one :class:`Subject` (a candidate for one row, in one dtype) and one case, and returns None or a
:class:`Finding`. Hazards change the data of a case and not its shapes, so that a function is compiled once.
"""

import inspect
import re
from dataclasses import dataclass, replace

import numpy as np

import attnpool_ref
from attnpool_ref import contract
from attnpool_ref.conformance import cases as drawing
from attnpool_ref.conformance import tolerances

POISONS = {"NaN": np.nan, "inf": np.inf, "-inf": -np.inf, "1e30": 1e30}


@dataclass
class Finding:
    """What one check measured: in units of epsilon where it is an error, and a message where it failed."""

    check: str
    case: object
    error: float = 0.0
    allowed: float = 0.0
    message: str = ""


class Subject:
    """A candidate for one row, called with the kit's cases in one dtype."""

    def __init__(self, row, function, adapter, dtype, exact=None):
        """``exact`` keeps the oracle's results; subjects of one row may share it."""
        self.row, self.function, self.adapter, self.dtype = row, function, adapter, dtype
        self.oracle = getattr(attnpool_ref, row.name)
        self.is_narrow = dtype in ("float16", "bfloat16")
        self._cache = {} if exact is None else exact.setdefault(self.is_narrow, {})
        self._programs = {}

    def call_arguments(self, case, return_weights):
        """(args, kwargs) of the call as NumPy arrays: positional as the row's function has them, absent ones left out."""
        values = {k: v for k, v in self.values(case).items() if v is not None} | case.options
        values |= {k: float(values[k]) for k in case.given("number")}  # a number has no dtype
        if return_weights:
            values["return_weights"] = True
        return arrange(self.oracle, values)

    def values(self, case):
        """The case's arguments as the dtype holds them."""
        return drawing.narrow(case.values) if self.is_narrow else case.values

    def accepts(self, names, options, return_weights=False):
        """Whether the candidate's signature takes these arguments."""
        arguments = contract.arguments_of(self.row.shapes)
        values = {k: None for k, a in arguments.items() if not a.optional or k in names}
        # An argument that the candidate lacks may stay away where its row's default says the same.
        defaults = contract.signature_of(self.oracle).parameters
        values |= {k: v for k, v in options.items() if defaults[k].default != v}
        return takes(self.function, self.oracle, values | ({"return_weights": True} if return_weights else {}))

    def outputs(self, case, return_weights=False):
        """The candidate's results as a list of NumPy arrays, weights last."""
        args, kwargs = self.call_arguments(case, return_weights)
        kwargs = self._leave_defaults(kwargs)
        with self.adapter.context(self.dtype), np.errstate(all="ignore"):
            args = [self._convert(a) for a in args]
            kwargs = {k: self._convert(v) for k, v in kwargs.items()}
            result = self.function(*args, **kwargs)
            return [self.adapter.read(part) for part in flatten(result)]

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
        if key not in self._cache:
            self._cache[key] = oracle_outputs(self, self.values(case), case, return_weights)
        return self._cache[key]

    def floats(self, case, kinds=("data", "parameter", "number")):
        """The floating arguments that rounding and gradients touch."""
        values = self.values(case)
        kinds = (*kinds, "stretch")
        return {k: np.asarray(values[k]) for k in case.given(*kinds) if values[k].dtype.kind == "f"}

    def sensitivities(self, case, return_weights):
        """How far the exact results move under relative changes of the inputs, for each output."""
        key = (case.title, return_weights, "sensitivity")
        if key not in self._cache:
            values = self.values(case)
            rounded = self.floats(case, ("parameter",)) if case.exact else self.floats(case)
            self._cache[key] = tolerances.sensitivity(
                lambda moved: oracle_outputs(self, values | moved, case, return_weights),
                {k: v for k, v in rounded.items() if np.size(v)},
                case.rng(" sensitivity"),
            )
        return self._cache[key]

    def gradients(self, case, cotangents, return_weights):
        """The candidate's gradients of all floating arguments, for cotangents of its outputs."""
        values = {k: v for k, v in self.values(case).items() if v is not None}
        floats = self.floats(case)
        key = (tuple(values), tuple(sorted(case.options.items())), return_weights)
        if key not in self._programs:
            extra = case.options | ({"return_weights": True} if return_weights else {})

            def program(arrays):
                args, kwargs = arrange(self.oracle, arrays | extra)
                return flatten(self.function(*args, **self._leave_defaults(kwargs)))

            self._programs[key] = program
        numbers = case.given("number")
        computing = "float64" if self.dtype == "float64" else "float32"
        with self.adapter.context(self.dtype):
            arrays = {k: self.adapter.array(v, computing if k in numbers else self.dtype) for k, v in floats.items()}
            fixed = {k: self._convert(v) for k, v in values.items() if k not in floats}
            cotangents = [self._convert(c) for c in cotangents]
            return self.adapter.gradient(self._programs[key], arrays, fixed, cotangents)


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


def flatten(result):
    """Nested tuples and lists as a flat list."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flatten(part)]
    return [result]


def output_axes(row, return_weights):
    """The axes of each output, as the row's shapes name them; an output of any rank has those that were drawn."""
    text = row.shapes.split("->")[1] + (row.weights if return_weights else "")
    axes = [tuple(a.strip() for a in part.split(",")) for part in re.findall(r"\[([^\]]*)\]", text)]
    return [drawing.ANY_RANK if own == ("...",) and _any_rank(row) else own for own in axes]


def _any_rank(row):
    return any(a.shapes == (("...",),) and a.kind == "data" for a in contract.arguments_of(row.shapes).values())


def oracle_outputs(subject, values, case, return_weights):
    """The oracle's results as a flat list of float64 arrays."""
    given = {k: v for k, v in values.items() if v is not None} | case.options
    if return_weights:
        given["return_weights"] = True
    args, kwargs = arrange(subject.oracle, given)
    with np.errstate(all="ignore"):
        return flatten(subject.oracle(*args, **kwargs))


# --------------------------------------------------------------------------------------------------------------
# Against the oracle


def agreement(subject, case, return_weights=False, got=None):
    """The candidate's results, their shape and dtype, against the oracle's on the same arguments."""
    got = subject.outputs(case, return_weights) if got is None else got
    want = subject.exact(case, return_weights)
    return compare(subject, case, "agreement with the oracle", got, want, return_weights)


def compare(subject, case, check, got, want, return_weights):
    """Results against exact ones under the allowed error; the worst output as a finding."""
    dtype = subject.dtype
    if len(got) != len(want):
        return Finding(check, case, np.inf, 0, f"returns {len(got)} arrays, needs {len(want)}")
    sensitive = subject.sensitivities(case, return_weights)
    finding = Finding(check, case)
    for i, (g, w) in enumerate(zip(got, want, strict=True)):
        name = f"output {i + 1} of {len(got)}" if len(got) > 1 else "the result"
        if g.shape != w.shape:
            return Finding(check, case, np.inf, 0, f"{name} has shape {g.shape}, needs {w.shape}")
        if w.dtype == bool:
            if g.dtype != bool or np.any(g != w):
                return Finding(check, case, np.inf, 0, f"{name} is {g.tolist()}, needs {w.tolist()}")
            continue
        if g.dtype.name != dtype:
            return Finding(check, case, np.inf, 0, f"{name} has dtype {g.dtype}, needs {dtype}")
        g = g.astype(np.float64)
        limit = np.finfo(np.float32).max if dtype == "bfloat16" else np.finfo(dtype).max
        if dtype != "float64":
            w = np.where(np.abs(w) > limit, np.copysign(np.inf, w), w)  # what the dtype makes of it
        odd = ~np.isfinite(w)
        if np.any(np.isnan(g) != np.isnan(w)) or np.any(g[odd & ~np.isnan(w)] != w[odd & ~np.isnan(w)]):
            return Finding(check, case, np.inf, 0, f"{name} is {_brief(g)}, needs {_brief(w)}")
        size = float(np.max(np.abs(w[~odd]), initial=0))
        error = float(np.max(np.abs(g[~odd] - w[~odd]), initial=0))
        allowed = tolerances.allowed_error(size, sensitive[i], case.terms(), dtype, subject.adapter.reduced_products())
        unit = tolerances.EPSILON[dtype] * (size or 1)
        finding = _worse(finding, error / unit, allowed / unit, f"{name} is {_brief(g)}, needs {_brief(w)}")
        finding.case = case
    return finding


def _worse(finding, error, allowed, message):
    """The finding that is nearer to its limit, or beyond it."""
    ratio = error / allowed if allowed else (np.inf if error else 0)
    before = finding.error / finding.allowed if finding.allowed else (np.inf if finding.error else -1)
    if ratio <= before:
        return finding
    return replace(finding, error=error, allowed=allowed, message=message if not error <= allowed else "")


def _brief(array):
    text = np.array2string(np.asarray(array), precision=6, threshold=12, edgeitems=3, separator=", ")
    return text if len(text) < 400 else text[:400] + " ..."


def gradient(subject, case, return_weights=False):
    """The candidate's gradients against central differences of the oracle, and exactly 0 at padding."""
    check, rng = "gradient", case.rng(" cotangents")
    exact = subject.exact(case, return_weights)
    if any(w.dtype == bool for w in exact):
        return None
    cotangents = [drawing.narrow({0: rng.standard_normal(w.shape)})[0] for w in exact]
    found = subject.gradients(case, cotangents, return_weights)
    values, floats = subject.values(case), subject.floats(case)

    def objective(arrays):
        outputs = oracle_outputs(subject, values | arrays, case, return_weights)
        return float(sum(np.sum(c * o) for c, o in zip(cotangents, outputs, strict=True)))

    # What cancels in a derivative does so among terms as large as the objective's own.
    total = float(sum(np.sum(np.abs(c * w)) for c, w in zip(cotangents, exact, strict=True))) + sum(
        moves * float(np.sum(np.abs(c)))
        for moves, c in zip(subject.sensitivities(case, return_weights), cotangents, strict=True)
    )
    directions = {key: rng.standard_normal(value.shape) for key, value in floats.items()}
    moved = tolerances.sensitivity(
        lambda arrays: [np.asarray(tolerances.directional_derivative(objective, arrays, directions, total)[0])],
        floats,
        rng,
    )[0]
    finding = Finding(check, case)
    for key, direction in directions.items():
        g = found[key].astype(np.float64)
        if not np.all(np.isfinite(g)):
            return Finding(check, case, np.inf, 0, f"the gradient of `{key}` is {_brief(g)}")
        pad = drawing.padding(case, key)
        if pad is not None and np.any(g[pad] != 0):
            return Finding(check, case, np.inf, 0, f"the gradient of `{key}` is {_brief(g)}, not 0 at padding")
        want, doubt = tolerances.directional_derivative(objective, floats, {key: direction}, total)
        got = float(np.sum(g * direction))
        size = float(np.sum(np.abs(g * direction))) + abs(want)
        allowed = doubt + tolerances.allowed_error(
            size, moved + total, case.terms(), subject.dtype, subject.adapter.reduced_products()
        )
        unit = tolerances.EPSILON[subject.dtype] * (size or 1)
        finding = _worse(
            finding,
            abs(got - want) / unit,
            allowed / unit,
            f"the gradient of `{key}` along a direction is {got:.9g}, needs {want:.9g}",
        )
    return finding


def finite_gradients(subject, case, return_weights):
    """No NaN and no inf in a gradient where scores are extreme, vectors are 0 or sizes far from 1."""
    cotangents = [np.ones(w.shape) for w in subject.exact(case, return_weights)]
    for key, g in subject.gradients(case, cotangents, return_weights).items():
        if not np.all(np.isfinite(g.astype(np.float64))):
            return Finding("finite gradients", case, np.inf, 0, f"the gradient of `{key}` is {_brief(g)}")
    return Finding("finite gradients", case)


# --------------------------------------------------------------------------------------------------------------
# Hazards


def empty_rows(subject, case, return_weights):
    """Exactly 0 wherever the definition is 0 whatever the data are: empty rows, padded rows, weights of padding."""
    zeros = _always_zero(subject, case, return_weights)
    if not any(np.any(z) for z in zeros):
        return None
    for got, zero in zip(subject.outputs(case, return_weights), zeros, strict=True):
        if got.shape != zero.shape or np.any(got[zero] != 0):
            return Finding("empty rows", case, np.inf, 0, f"the result is {_brief(got)}, not 0 where nothing is real")
    return Finding("empty rows", case)


def _always_zero(subject, case, return_weights):
    """Where the exact results are 0 whatever the data are, as in empty rows and padded weights."""
    key = (case.title, return_weights, "zero")
    if key not in subject._cache:
        values, rng = subject.values(case), case.rng(" other data")
        moved = {k: v * rng.uniform(0.5, 1.5, v.shape) for k, v in subject.floats(case, ("data",)).items()}
        other = oracle_outputs(subject, values | moved, case, return_weights)
        exact = subject.exact(case, return_weights)
        subject._cache[key] = [(a == 0) & (b == 0) for a, b in zip(exact, other, strict=True)]
    return subject._cache[key]


def poisoned(case, poison):
    """The case with ``poison`` in every padded place of its data, its bias and its dropout multiplier."""
    values = {}
    for key in case.given("data", "parameter", "stretch"):
        pad = drawing.padding(case, key)
        if pad is not None and np.any(pad) and case.values[key].dtype.kind == "f":
            values[key] = np.where(pad, poison, case.values[key])
    return case.with_values("poison in padding", **values) if values else None


def poison_in_padding(subject, case, name, return_weights, gradients):
    """What stands in padding changes no bit of a result or of a gradient."""
    bad = poisoned(case, POISONS[name])
    check = f"{name} in padding"
    if bad is None:
        return None
    clean, dirty = subject.outputs(case, return_weights), subject.outputs(bad, return_weights)
    for a, b in zip(clean, dirty, strict=True):
        if not same_bits(a, b):
            return Finding(check, bad, np.inf, 0, f"the result changes from {_brief(a)} to {_brief(b)}")
    if gradients:
        cotangents = [np.ones(a.shape) for a in clean]
        before = subject.gradients(case, cotangents, return_weights)
        after = subject.gradients(bad, cotangents, return_weights)
        for key in before:
            if not same_bits(before[key], after[key]):
                message = f"the gradient of `{key}` changes from {_brief(before[key])} to {_brief(after[key])}"
                return Finding(check, bad, np.inf, 0, message)
    return Finding(check, bad)


def same_bits(a, b):
    """Whether two arrays are equal to the last bit."""
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


def weights_change_nothing(subject, case):
    """Asking for the weights changes no bit of the pooled result; on accelerators it agrees to rounding."""
    check = "return_weights"
    alone, both = subject.outputs(case), subject.outputs(case, return_weights=True)
    if not subject.adapter.exact_weights():
        want = [a.astype(np.float64) for a in alone]
        return compare(subject, case, check, both[: len(alone)], want, False)
    for a, b in zip(alone, both, strict=False):
        if not same_bits(a, b):
            return Finding(check, case, np.inf, 0, f"the pooled result changes from {_brief(a)} to {_brief(b)}")
    return Finding(check, case)


def nan_stays_in_its_example(subject, case):
    """NaN at real tokens reaches its own example and no other."""
    check = "NaN at a real token"
    if not case.batch or len(case.batch) != 1 or case.batch[0] < 2:
        return None
    clean = subject.outputs(case)
    for key in case.given("data"):
        if "..." not in case.axes[key] or case.values[key].dtype.kind != "f":
            continue
        value, pad = case.values[key].copy(), drawing.padding(case, key)
        real = np.ones(value.shape, bool) if pad is None else ~pad
        example = next((i for i in range(case.batch[0]) if np.any(real[i])), None)
        if example is None:
            continue
        value[example] = np.where(real[example], np.nan, value[example])
        bad = case.with_values(f"NaN in `{key}`", **{key: value})
        dirty, exact = subject.outputs(bad), subject.exact(bad)
        others = [i for i in range(case.batch[0]) if i != example]
        for a, b, w in zip(clean, dirty, exact, strict=True):
            if a.shape[:1] != case.batch:
                continue
            if not np.array_equal(a[others], b[others]):
                return Finding(check, bad, np.inf, 0, f"NaN in example {example} reaches others: {_brief(b)}")
            if np.any(np.isnan(w[example])) and not np.any(np.isnan(b[example])):
                return Finding(check, bad, np.inf, 0, f"NaN in example {example} was patched away: {_brief(b)}")
    return Finding(check, case)


def batch_mates(subject, case):
    """What else is in the batch does not matter: other data in all other examples, up to rounding."""
    check = "batch mates"
    if len(case.batch) != 1 or case.batch[0] < 2 or "..." not in case.row.shapes:
        return None
    rng, values = case.rng(" mates"), {}
    for key in case.given("data"):
        if "..." in case.axes[key] and case.values[key].dtype.kind == "f":
            value = 3 * rng.standard_normal(case.values[key].shape).astype(np.float32).astype(np.float64)
            value[0] = case.values[key][0]
            values[key] = value
    if not values:
        return None
    other = case.with_values("other batch mates", **values)
    got, want = subject.outputs(other), subject.outputs(case)
    first = [(g[:1], w[:1].astype(np.float64)) for g, w in zip(got, want, strict=True)]
    finding = compare(subject, case, check, [g for g, _ in first], [w for _, w in first], False)
    return replace(finding, case=other)


def inputs_unchanged(subject, case):
    """The caller's arrays are as they were."""
    check = "inputs unchanged"
    args, kwargs = subject.call_arguments(case, False)
    kwargs = subject._leave_defaults(kwargs)
    with subject.adapter.context(subject.dtype), np.errstate(all="ignore"):
        args = [subject._convert(a) for a in args]
        kwargs = {k: subject._convert(v) for k, v in kwargs.items()}
        arrays = [a for a in (*args, *kwargs.values()) if hasattr(a, "shape")]
        before = [np.array(subject.adapter.read(a), copy=True) for a in arrays]
        subject.function(*args, **kwargs)
        after = [subject.adapter.read(a) for a in arrays]
    if not all(same_bits(a, b) for a, b in zip(before, after, strict=True)):
        return Finding(check, case, np.inf, 0, "an argument was changed in place")
    return Finding(check, case)


# --------------------------------------------------------------------------------------------------------------
# Laws that need no oracle: the candidate against itself


@dataclass
class Change:
    """A changed case, and how to look at its outputs and at those of the case it came from so that they agree."""

    case: object
    of_changed: object
    of_original: object


def _as_it_is(output, axes):
    del axes
    return output


def _along(axis, positions):
    """A view that takes positions along a named axis, where an output has it."""

    def view(output, axes):
        for place in drawing.places_of(axis, axes, output.ndim):
            output = np.take(output, positions, place)
        return output

    return view


def appending(subject, case, return_weights):
    """More padding changes nothing."""
    return _each_axis(subject, case, "padding amount", return_weights, _append)


def _append(case, axis):
    return Change(drawing.append(case, axis, 2), _along(axis, range(case.sizes[axis])), _as_it_is)


def deleting(subject, case, return_weights):
    """Deleting a padded token is masking it."""
    return _each_axis(subject, case, "deleting is masking", return_weights, _delete, single=True)


def _delete(case, axis):
    keep = np.flatnonzero(_real_along(case, axis))
    shorter = drawing.take(case, f"padding along {axis} deleted", axis, keep)
    return Change(shorter, _as_it_is, _along(axis, keep))


def siding(subject, case, return_weights):
    """Padding on the left is padding on the right."""
    return _each_axis(subject, case, "padding side", return_weights, _side, single=True)


def _side(case, axis):
    order = np.argsort(_real_along(case, axis), kind="stable")
    return _reorder(case, axis, order, f"padding along {axis} on the left")


def permuting(subject, case, return_weights):
    """The order of the tokens does not matter, where the row does not say it does."""
    if _is_ordered(case):
        return None
    return _each_axis(subject, case, "permuting", return_weights, _shuffle)


def _is_ordered(case):
    ordered = case.row.ordered
    if not ordered or ordered == "always":
        return bool(ordered)
    key, value = ordered.split("=")
    return case.options.get(key) == value


def _shuffle(case, axis):
    order = case.rng(f" order {axis}").permutation(case.sizes[axis])
    return _reorder(case, axis, order, f"permuted along {axis}")


def _reorder(case, axis, order, title):
    return Change(drawing.take(case, title, axis, order), _along(axis, np.argsort(order)), _as_it_is)


def _real_along(case, axis):
    """Positions of an axis that any mask of a case without batch axes calls real."""
    real = np.zeros(case.sizes[axis], bool)
    for name in case.given("mask"):
        own = case.axes[name]
        if axis in own:
            mask, places = case.values[name], drawing.places_of(axis, own, case.values[name].ndim)
            real |= np.any(mask, tuple(i for i in range(mask.ndim) if i not in places))
    return real


def _each_axis(subject, case, check, return_weights, change, single=False):
    """The candidate against itself for every masked axis; ``single`` laws want a case without batch axes."""
    if single and ("..." not in case.row.shapes or case.batch != ()):
        return None  # positions differ by example
    finding, axes = None, output_axes(case.row, return_weights)
    original = subject.outputs(case, return_weights)
    for axis in drawing.masked_axes(case):
        changed = change(case, axis)
        want = [changed.of_original(w, a).astype(np.float64) for w, a in zip(original, axes, strict=True)]
        got = subject.outputs(changed.case, return_weights)
        got = [changed.of_changed(g, a) for g, a in zip(got, axes, strict=True)]
        found = replace(compare(subject, case, check, got, want, return_weights), case=changed.case)
        if found.message:
            return found
        finding = found
    return finding


def shifting(subject, case, return_weights):
    """A constant added to every score changes nothing beyond the rounding of the scores."""
    check, amount = "shifting the scores", 4.0
    if subject.is_narrow:
        return None  # the rounded sums would be other scores
    if "scores" in case.values:
        changed = {"scores": case.values["scores"] + amount}
    elif case.values.get("bias") is not None and case.arguments()["bias"].kind == "stretch":
        changed = {"bias": case.values["bias"] + amount}
    else:
        return None
    if not np.all(np.isfinite(next(iter(changed.values())))):
        return None
    other = case.with_values("scores shifted", **changed)
    want = [w.astype(np.float64) for w in subject.outputs(case, return_weights)]
    finding = compare(subject, other, check, subject.outputs(other, return_weights), want, return_weights)
    return replace(finding, case=other)

"""How a kind of mistake is written once and applies to every row that has what it takes."""

import functools

import attnpool_ref as ref
from attnpool_ref import contract, table


class Call:
    """One call of a candidate: the row, the arguments by name as the caller gave them, and the definition."""

    def __init__(self, row, function, args, kwargs):
        self.row, self._function = row, function
        bound = contract.signature_of(function).bind(*args, **kwargs)
        self.named = set(bound.arguments)
        bound.apply_defaults()
        self.values = dict(bound.arguments)

    def right(self, **changes):
        """What the row returns, with some arguments changed."""
        return self._function(**(self.values | changes))

    def keys(self, *kinds):
        """The arguments of these kinds that are given."""
        return [k for k, a in self.row.arguments.items() if a.kind in kinds and self.values[k] is not None]

    def arrays(self, *kinds):
        """Their values."""
        return [self.values[k] for k in self.keys(*kinds)]

    @property
    def first(self):
        """The first data array; where all axes have names of their own, the first array."""
        return (self.arrays("data") or self.arrays("parameter"))[0]

    def batch_rank(self):
        """How many batch axes the data have."""
        return max((self.values[k].ndim - len(self.row.arguments[k].own) for k in self.keys("data")), default=0)

    def rank_of(self, key):
        """The rank that a mask has in full."""
        return self.batch_rank() + len(self.row.arguments[key].own)

    def size_of(self, mask):
        """The size of the last axis that a mask has in full."""
        axis = self.row.arguments[mask].own[-1] if self.row.arguments[mask].own else None
        for key, argument in self.row.arguments.items():
            if self.values[key] is not None and argument.kind in ("data", "parameter"):
                own = argument.own
                if axis in own:
                    return self.values[key].shape[own.index(axis) - len(own)]
        return self.first.shape[-1]  # of an array of any rank

    @property
    def dtype(self):
        """The dtype of the first array."""
        return self.first.dtype


def every(change, result):
    """The result with a function applied to each of its arrays."""
    if isinstance(result, tuple):
        return tuple(every(change, part) for part in result)
    return change(result)


class Kinds(dict):
    """``{kind: Kind}``, filled by a decorator."""

    def of(self, kind, applies, dtypes=("float32",), namespace=ref):
        """Keeps a body under the name of its kind: from a :class:`Call` to what the candidate returns.

        Args:
          kind: what is wrong.
          applies: from a row to whether it can be wrong there.
          dtypes: the dtypes in which it shows.
          namespace: whose functions are wrapped.
        """

        def keep(body):
            self[kind] = Kind(kind, applies, dtypes, namespace, body)
            return body

        return keep


class Kind:
    """A kind of mistake."""

    def __init__(self, name, applies, dtypes, namespace, body):
        self.name, self.applies, self.dtypes, self._namespace, self._body = name, applies, dtypes, namespace, body

    def rows(self):
        """The rows that it fits, those with the fewest arguments first."""
        fitting = [row for row in table.VARIANTS if row.family != "masks" and self.applies(row)]
        return [row.name for row in sorted(fitting, key=lambda row: len(row.arguments) + 9 * (row.family == "pairs"))]

    def candidate(self, name):
        """The row's function with the mistake."""
        row, function = table.get(name), getattr(self._namespace, name)

        @functools.wraps(function)
        def wrong(*args, **kwargs):
            return self._body(Call(row, function, args, kwargs))

        return wrong

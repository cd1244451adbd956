"""Cases of docs/performance.md, one row each, and their reduction for a run that only tests that everything runs."""

from dataclasses import dataclass, replace

from attnpool_ref import table
from bench import peers
from bench.calls import DENSE, SORTED, Call, step_of
from bench.floors import floor
from bench.programs import FLOOR, OURS, PLAIN, Way

PEERS = "peers"
ALL = (FLOOR, PLAIN, PEERS)
MASK, MASKS = ("mask",), ("x_mask", "y_mask")
QUERY, HEADS = (*MASK, "query", "key_kernel"), (*MASK, "query_kernel", "out_kernel")
HEADS = (*HEADS, "query_bias", "key_bias", "value_bias", "out_bias")
GATED = ("bias", "gate_kernel", "gate_bias", "out_kernel#1")

TINY = {"B": 3, "N": 40, "C": 2, "L": 12, "T": 10, "n": 6, "k": 7, "m": 9, "d": 8, "h": 5, "H": 2, "c": 4, "c'": 4}
TINY |= {"num_segments": 5}


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
      call: the call of the function.
      title: sizes and other properties, as the page shows them.
      beside: the ways besides ours: FLOOR, PLAIN, PEERS.
      dtype: the dtype of the floating arrays.
      steps: whether a step is also measured.
    """

    call: Call
    title: str
    beside: tuple = ALL
    dtype: str = "float32"
    steps: bool = True

    def __str__(self):
        return f"{self.call.row.name}, {self.title}"

    def tiny(self):
        """Returns the case with tiny arrays."""
        own = {letter: min(size, TINY[letter]) for letter, size in self.call.own.items()}
        return replace(self, call=replace(self.call, own=own))

    def arrays(self):
        """Returns the arrays of the call."""
        return self.call.arrays(self.dtype)

    def token_bytes(self):
        """Returns the bytes of the arrays of tokens, the unit of temporaries."""
        shapes = self.call.shapes(self.dtype)
        return sum(shapes[name].size * shapes[name].dtype.itemsize for name in self.call.tokens())

    def ways(self, direction):
        """Returns the ways, ours first."""
        call = self.call
        found = [Way(OURS, OURS, call.forward, step_of(call.forward))]
        if FLOOR in self.beside and (lowest := floor(self, direction)):
            found.append(lowest)
        if PLAIN in self.beside:
            found.append(Way(PLAIN, PLAIN, call.formula, step_of(call.formula)))
        return found + (peers.ways(call.row.name) if PEERS in self.beside else [])


def _case(name, sizes, arguments, note="", *, extra=None, real=(0.5, 1.0), **options):
    row = table.get(name)
    call = Call(row, SORTED if row.packed else DENSE, extra or {}, arguments=arguments, own=sizes, real=real)
    shown = " ".join(f"{letter}={size}" for letter, size in sizes.items() if letter not in ("c", "c'", "num_segments"))
    return Case(call, f"{shown}, {note}" if note else shown, **options)


TOKENS, LONG = {"B": 512, "L": 512, "d": 768}, {"B": 2, "L": 4096, "T": 4096, "d": 256}
CASES = (
    _case("attention_pooling", TOKENS, QUERY, beside=(FLOOR,)),
    _case("attention_pooling", TOKENS, QUERY, "bfloat16", beside=(FLOOR,), dtype="bfloat16"),
    _case("attention_pooling", {"B": 4, "L": 16384, "d": 768}, QUERY, "few long documents", beside=(FLOOR,)),
    _case(
        "attention_pooling",
        {"B": 256, "L": 512, "d": 768},
        QUERY,
        "16 to 128 of 512 tokens real",
        real=(16 / 512, 128 / 512),
        beside=(FLOOR,),
    ),
    _case("attention_pooling", {"B": 32, "L": 256, "d": 768}, QUERY),
    *(
        _case("multi_head_attention_pooling", sizes | {"c'": sizes["c"]}, HEADS, beside=(FLOOR, PEERS))
        for sizes in (
            {"B": 32, "L": 256, "d": 768, "n": 1, "H": 12, "c": 64},
            {"B": 64, "L": 196, "d": 1152, "n": 1, "H": 16, "c": 72},
        )
    ),
    _case("additive_attention_pooling", {"B": 1, "L": 20000, "d": 512, "h": 128}, GATED, "a gated bag"),
    _case(
        "segment_attention_pooling",
        {"N": 65536, "d": 384, "num_segments": 1024},
        ("query",),
        "sorted",
        beside=(FLOOR, PLAIN),
    ),
    _case("cross_attention_pooling", {"B": 16, "L": 512, "T": 512, "d": 768}, MASKS),
    _case("cross_attention_pooling", LONG, MASKS, "reduction=max", extra={"reduction": "max"}, beside=(FLOOR, PLAIN)),
    _case(
        "cross_attention_pooling_all_pairs",
        {"B": 32, "C": 2000, "L": 24, "T": 16, "d": 384},
        MASKS,
        beside=(FLOOR,),
    ),
    _case(
        "maxsim_score_all_pairs", {"B": 32, "C": 2000, "L": 32, "T": 180, "d": 128}, MASKS, beside=(PEERS,), steps=False
    ),
    _case("mask_attention", {"B": 1, "n": 4096, "k": 4096, "d": 128}, ("query_mask", "context_mask")),
    _case("additive_attention", {"B": 4, "n": 64, "m": 1024, "d": 128, "h": 256}, MASK),
)
"""Cases, in the order of the page."""

"""Cases of the page, lengths of its pictures, and their reduction for quick runs."""

from dataclasses import dataclass, replace

from bench.cases import Case
from bench.programs import FLOOR, PLAIN

ALL = (FLOOR, PLAIN, "peers")
FLOOR_ONLY = (FLOOR,)
SHORT, TOKENS = (16 / 512, 128 / 512), {"B": 512, "L": 512, "d": 768}

_SENTENCES, _MASKED = {"B": 64, "L": 128, "d": 768}, {"x": "BLd", "mask": "BL"}
_ADDITIVE = _MASKED | {"kernel": "dh", "out_kernel": "h"}
_HEADS = (
    _MASKED | {"query": "nd", "out_kernel": "Hcd"} | {f"{part}_kernel": "dHc" for part in ("query", "key", "value")}
)

PACKED = {"num_segments": 1024, "indices_are_sorted": True}

CASES = (
    Case("attention_pooling", TOKENS, FLOOR_ONLY),
    Case("attention_pooling", TOKENS, (PLAIN,), "a key for each token", steps=False),
    Case("attention_pooling", TOKENS, FLOOR_ONLY, "bfloat16", dtype="bfloat16"),
    Case("attention_pooling", {"B": 4, "L": 16384, "d": 768}, FLOOR_ONLY, "few long documents"),
    Case("attention_pooling", {"B": 256, "L": 512, "d": 768}, FLOOR_ONLY, "16 to 128 of 512 tokens real", real=SHORT),
    Case("attention_pooling", {"B": 32, "L": 256, "d": 768}, ALL, "beside peers"),
    Case("multi_head_attention_pooling", {"B": 32, "L": 256, "d": 768, "n": 1, "H": 12, "c": 64}, ALL),
    Case("multi_head_attention_pooling", {"B": 64, "L": 196, "d": 1152, "n": 1, "H": 16, "c": 72}, ALL, quick=False),
    Case(
        "multi_head_attention_pooling",
        {"B": 32, "L": 256, "d": 768, "n": 1, "H": 12, "c": 64},
        FLOOR_ONLY,
        "bfloat16",
        dtype="bfloat16",
    ),
    Case("additive_attention_pooling", {"B": 1, "L": 20000, "d": 512, "h": 128}, ALL, "a gated bag"),
    Case("segment_attention_pooling", {"N": 65536, "d": 384}, (FLOOR, PLAIN), "sorted", PACKED),
    Case("cross_attention_pooling", {"B": 16, "L": 512, "T": 512, "d": 768}, ALL),
    Case("cross_attention_pooling", {"B": 2, "L": 4096, "T": 4096, "d": 256}, ALL),
    Case(
        "cross_attention_pooling",
        {"B": 2, "L": 4096, "T": 4096, "d": 256},
        (FLOOR, PLAIN),
        "reduction=max",
        {"reduction": "max"},
        per=("[B, L, T]", "BLT"),
    ),
    Case("cross_attention_pooling_all_pairs", {"B": 32, "C": 2000, "L": 24, "T": 16, "d": 384}, FLOOR_ONLY),
    Case("maxsim_score_all_pairs", {"B": 32, "C": 2000, "L": 32, "T": 180, "d": 128}, (PLAIN, "peers"), steps=False),
    Case("code_wise_attention", {"B": 1, "n": 4096, "k": 4096, "d": 128}, ALL),
    Case("mask_attention", {"B": 1, "n": 4096, "k": 4096, "d": 128}, ALL),
    Case("bidaf_attention", {"B": 1, "n": 4096, "k": 4096, "d": 128}, ALL),
    Case("additive_attention", {"B": 4, "n": 64, "m": 1024, "d": 128, "h": 256}, ALL),
    *(
        Case(name, {"B": batch, "L": 128, "d": 768}, ("oracle",), note, steps=False, arguments=_MASKED | arguments)
        for batch in (64, 512)
        for name, note, arguments in (
            ("mean_pooling", "", {}),
            ("max_pooling", "", {}),
            ("attention_pooling", "the mean as query", {}),
            ("attention_pooling", "with a query", {"query": "d"}),
        )
    ),
    Case(
        "additive_attention_pooling",
        _SENTENCES | {"h": 64},
        ("oracle",),
        "with a mask",
        steps=False,
        arguments=_ADDITIVE,
    ),
    Case("cross_attention_pooling", _SENTENCES | {"T": 128}, ("oracle",), steps=False),
    Case("dot_product_attention", _SENTENCES | {"n": 128, "m": 128}, ("oracle",), steps=False),
    Case(
        "multi_head_attention_pooling",
        _SENTENCES | {"n": 1, "H": 12, "c": 64},
        ("oracle",),
        "without biases",
        steps=False,
        arguments=_HEADS,
    ),
)
"""Cases, in the order of the page."""

SMALL = {"B": 4, "L": 16, "T": 12, "d": 32, "n": 1, "H": 4, "c": 8}
EAGER = tuple(
    Case(name, {letter: SMALL[letter] for letter in letters}, (), options={"return_weights": True})
    for name, letters in (
        ("attention_pooling", "BLd"),
        ("multi_head_attention_pooling", "BLdnHc"),
        ("cross_attention_pooling", "BLTd"),
    )
)
"""Small arrays for eager calls, which are compared with calls under the caller's own jit."""


@dataclass(frozen=True)
class Sweep:
    """One picture of time against length."""

    name: str
    sizes: dict
    letters: str
    lengths: tuple

    def case(self, length):
        """Returns the case of one length."""
        sizes = self.sizes | dict.fromkeys(self.letters, length)
        return Case(self.name, sizes, (FLOOR, PLAIN, "peers"), steps=False)


LINEAR, SQUARE = (64, 256, 1024, 4096, 16384), (64, 256, 1024, 4096)
SWEEPS = (
    Sweep("attention_pooling", {"B": 8, "L": 0, "d": 256}, "L", LINEAR),
    Sweep("multi_head_attention_pooling", {"B": 8, "L": 0, "d": 256, "n": 1, "H": 8, "c": 32}, "L", LINEAR),
    Sweep("cross_attention_pooling", {"B": 2, "L": 0, "T": 0, "d": 256}, "LT", SQUARE),
    Sweep("mask_attention", {"B": 1, "n": 0, "k": 0, "d": 128}, "nk", SQUARE),
    Sweep("additive_attention", {"B": 4, "n": 16, "m": 0, "d": 128, "h": 128}, "m", SQUARE),
)


@dataclass(frozen=True)
class Scale:
    """Size of a run.

    Attributes:
      name: "full", "quick" or "tiny".
      budget: seconds for the rounds of a case's race; a line or a point of a curve gets a quarter of them.
      rounds: the fewest and the most rounds.
      lengths: the number of a picture's lengths.
    """

    name: str
    budget: float
    rounds: tuple[int, int]
    lengths: int

    def sizes(self, sizes):
        """Returns sizes by letter for a run of this scale."""
        if self.name == "full":
            return sizes
        if self.name == "tiny":
            return {letter: min(size, TINY.get(letter, size)) for letter, size in sizes.items()}
        return {letter: max(1, size // QUICK.get(letter, 1)) for letter, size in sizes.items()}

    def case(self, case):
        """Returns a case of the table for a run of this scale."""
        return replace(case, sizes=self.sizes(case.sizes))


QUICK = {"B": 8, "N": 8, "C": 20, "L": 4, "T": 4, "n": 4, "k": 4, "m": 4, "h": 4}
TINY = {"B": 3, "N": 40, "C": 2, "L": 12, "T": 10, "n": 6, "k": 7, "m": 9, "d": 8, "h": 5, "H": 2, "c": 4}

SCALES = {
    scale.name: scale
    for scale in (Scale("full", 12, (5, 15), 5), Scale("quick", 0.3, (2, 3), 2), Scale("tiny", 0, (1, 1), 2))
}

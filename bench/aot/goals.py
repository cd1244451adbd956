"""Goals of compiled programs as data, and the results that miss them.

A goal is the most bytes that a program may move, as a multiple of bytes(x), of its floor, or of the bytes of plain JAX
compiled in the same way. The first two kinds also limit the cycles of the compiler's estimate. The goal of a program is
the first that fits it. Besides, every dense and packed program is compared with its formula (:data:`RULE`).
"""

from dataclasses import dataclass, replace

from bench.aot import calls, devices, plain
from bench.aot.programs import Program

ONE_QUERY = ("attention_pooling",)
HEADS = ("multi_head_attention_pooling",)
PACKED = ("segment_attention_pooling", "segment_multi_head_attention_pooling")
HIDDEN_UNITS = ("additive_attention", "tanh_sum_attention")
UNITS_OF_SCORES = ("additive_score", "concat_score", "tanh_sum_score")
SCORES = (
    "attention_penalty",
    "bilinear_score",
    "cosine_score",
    "gaussian_score",
    "location_score",
    "trilinear_score",
)
STATISTICS_OF_SEGMENTS = (
    "segment_logsumexp_pooling",
    "segment_power_mean_pooling",
    "segment_softmax_pooling",
    "segment_statistics_pooling",
    "segment_std_pooling",
)
SUMS_OF_SEGMENTS = (
    "segment_max_pooling",
    "segment_mean_max_pooling",
    "segment_mean_pooling",
    "segment_min_pooling",
    "segment_sum_pooling",
    "segment_weighted_pooling",
)
STEPS = ("set2set_pooling", "segment_set2set_pooling")
BY_PLAIN = (
    "attend",
    "dot_product_attention",
    "multi_head_attention",
    "mask_attention",
    "code_wise_attention",
    "bidaf_attention",
    "cross_attention_pooling, reduction=max",
    "maxsim_score",
    "maxsim_score_all_pairs",
    "kernel_regression",
    "latent_attention_pooling",
    "vlad_pooling",
)

UNITS = "a step reads float32 hidden units of the keys and their gradient six times and writes each once"
COPIES = "keys and values are copied with padding replaced: XLA fuses no selection into a product on a GPU; " + UNITS

X, FLOOR, OF_PLAIN = "bytes(x)", "floors", "times plain JAX"

MEMORY = {devices.V5E: 16e9, devices.V6E: 32e9, devices.H200: 151e9}
"""Bytes of each device's memory."""

BUDGET = 1 / 16
"""Fraction of a device's memory. If plain JAX needs more temporaries than that, it is no yardstick for computing in blocks:
the goal then limits temporaries, not bytes.
"""


RULE = {"bytes": 1.3, "elements": 1.5, "products": 1.5, "cycles": 1.3}
"""The most of each cost of a dense or packed program, as a multiple of that of its formula (:mod:`bench.aot.formulas`).

Elements and products count on a GPU, where the compiler estimates no cycles, and only if they take longer than the bytes.
A formula whose temporaries exceed BUDGET is no yardstick.
"""

PER_BYTE = {"elements": 8, "products": 100}
"""Operations for each byte, about half of what an H200 does while it reads one: fewer of them wait for memory."""


@dataclass(frozen=True)
class Exemption:
    """Costs that some programs may have, as multiples of those of their formula, in place of RULE.

    Attributes:
      names: names of calls, or of functions for all of their calls.
      most: the multiple of each cost that is exempt.
      reason: why the function needs more than the formula.
      layouts: names of layouts; empty for all.
      devices: names of devices; empty for all.
    """

    names: tuple
    most: dict
    reason: str
    layouts: tuple = ()
    devices: tuple = ()

    def fits(self, program):
        """Returns whether the exemption applies to a program."""
        pairs = ((self.layouts, program.layout), (self.devices, program.device))
        named = program.name in self.names or program.name.split(",")[0] in self.names
        return named and all(not allowed or own in allowed for allowed, own in pairs)


EXEMPTIONS = (
    Exemption(
        ("gaussian_score", "kernel_regression"),
        {"bytes": 13.3, "elements": 121.0, "cycles": 88.0},
        "differences are squared and summed; products, as in the formula, lose all digits if one key is far",
    ),
)


@dataclass(frozen=True)
class Goal:
    """The highest allowed costs of some programs, forward and in a step.

    Attributes:
      names: names of calls; empty for all.
      most: the most bytes in units: of a forward pass in float32, and of a step in bfloat16 or float16.
      unit: X, FLOOR or OF_PLAIN.
      layouts: names of layouts; empty for all.
      ways: ways of calls; empty for all.
      devices: names of devices; empty for all.
      cycles: the most cycles of the compiler's estimate in bfloat16 on a TPU v5e, forward and step.
      narrow: whether float32 copies of narrow tokens are forbidden.
      others: as ``most``, of a forward pass in bfloat16 or float16, where float32 arrays are twice as large beside the
        floor, and of a step in float32; empty if they are the same.
      reason: why fewer bytes are not possible, if the goal is higher than that of other rows.
    """

    names: tuple
    most: tuple
    unit: str = X
    layouts: tuple = ()
    ways: tuple = (calls.OURS,)
    devices: tuple = ()
    cycles: tuple = ()
    narrow: bool = False
    others: tuple = ()
    reason: str = ""

    def most_of(self, program):
        """Returns the most bytes of a program, in units."""
        step = program.direction == calls.STEP
        in_default_run = (program.dtype == "float32") != step
        return (self.most if in_default_run or not self.others else self.others)[step]

    def fits(self, program):
        """Returns whether the goal applies to a program. States of chunks have the goals of their poolings."""
        name = program.name.replace("_state", "_pooling") if program.layout == calls.STATE else program.name
        pairs = ((self.names, name), (self.layouts, program.layout), (self.devices, program.device))
        return (not self.ways or program.way in self.ways) and all(
            not allowed or own in allowed for allowed, own in pairs
        )


DENSE, SORTED, UNSORTED = (calls.DENSE,), (calls.SORTED,), (calls.UNSORTED,)
STATE, MESH = (calls.STATE,), (calls.MESH,)
KERNEL = (calls.KERNEL,)
CLEANED = "padding is replaced by 0 in copies of the tokens, and a mask of pairs is read to find it; plain JAX lets NaN through"
TIED = "a step copies tokens with padding replaced by 0, and reads them again for their norms, which say which products are tied"
HIDDEN = "the hidden layer is written in float32; plain JAX rounds it to bfloat16"
LAYER = "a step writes the hidden layer and its gradients in float32, and a copy of the tokens with padding replaced"
LOOP = "a loop over units reads and writes all scores in each step; forward, one reduction takes 1.5 to 4.4 times the cycles"
ROUNDED = "a product writes scores in float32, which later kernels round and sum"
CHANNELS = "scores as large as the tokens, in float32, are read for maximum, denominator, each moment and the gradient"
PAIRS = "pairs of tokens are combined, then pairs of the results, until one is left"
SLOTS = "tokens are gathered into slots, in float32, and pairs are combined as in dense tokens"
STEPPED = "six steps, each reads its tokens twice forward and five times in all"
MOMENTS = "each moment is a reduction of its own, after an all-reduce of the one before"
LOGARITHMS = "logarithms of the tokens are written, and read for maximum and sum"
EXPANDED = "numbers of each segment are expanded to float32 arrays as large as the tokens"
MLP = "the hidden layer and its gradients are written"
RESIDUALS = "digits cancel in sums of tokens: residuals to the nearest centers are written and read in float32"
FUSED_RESIDUALS = "digits cancel in sums of tokens: each gradient is one more sum of residuals, which reads the tokens"
SELECTED = "the sums of tokens need a copy with padding replaced: XLA fuses no selection into a product on a GPU"
REDUCED = (
    SELECTED
    + "; numerators [B, H, d], in float32 as large on each device as on one, are joined for an all-reduce and split"
)
SCATTERED = "sums [B, H, d] of the heads are filled with 0, added to by a scatter, divided and read, in float32"
SCORES_OF_LABELS = (
    "scores [M, M] are written in float32, 2 to 4 times the labels, and so are weights and their gradients"
)
LENGTHS = "each layer writes and reads lengths [k, k], 8 times as large as the labels, and parts of sums over k"
ALL_PAIRS = (
    "the cotangents [B, C, d] of all pairs are written and read twice, and tokens are copied with padding replaced"
)
MATCHED = (
    "unit vectors are written in float32 for a product; a scatter adds up the float32 gradient of the matched tokens"
)
THREE_LAYERS = "hidden layers of three pairs, their differences and their gradients are written"
EXPANDED_SUMS = (
    "unsorted tokens are copied under weights; a step expands the gradient of each segment's sum to float32 tokens"
)
GATHERED = "the SparseCores of a v6e write the gathered tokens to memory, from which they are read twice; a step gathers them twice"
UNITS_IN_MEMORY = (
    "XLA keeps the scores in memory in a loop over units, in a step on a v6e, where a v5e keeps them in VMEM"
)
PLAIN_IN_BLOCKS = (
    RESIDUALS + "; on a v6e XLA computes a forward pass of plain JAX in blocks in VMEM, and writes none of its arrays"
)
DENOMINATORS = "XLA reads the scores for the denominators and for the sums; of plain JAX it sums denominators where it writes the scores"
V6E_GOALS = (
    Goal(PACKED, (4.9, 13.7), layouts=UNSORTED, others=(4.9, 15.3), reason=GATHERED),
    Goal(("segment_cross_attention_pooling",), (5.4, 10.5), FLOOR, UNSORTED, others=(5.6, 10.5), reason=GATHERED),
    Goal(("segment_set2set_pooling",), (26.5, 37.4), FLOOR, UNSORTED, reason=STEPPED + "; " + GATHERED),
    Goal(STEPS, (13.2, 20.3), FLOOR, reason=STEPPED),
    Goal(UNITS_OF_SCORES, (4.0, 4.9), FLOOR, reason=UNITS_IN_MEMORY),
    Goal(("multi_head_attention",), (1.1, 1.1), OF_PLAIN, DENSE, others=(1.46, 1.1), reason=DENOMINATORS),
    Goal(("latent_attention_pooling",), (1.16, 1.45), OF_PLAIN, DENSE, reason=HIDDEN),
    Goal(("vlad_pooling",), (6.5, 2.2), OF_PLAIN, DENSE, reason=PLAIN_IN_BLOCKS),
    Goal(("vlad_pooling",), (10.2, 20.8), FLOOR, MESH, others=(14.4, 20.8), reason=RESIDUALS),
    Goal(("segment_vlad_pooling",), (21.5, 47.3), FLOOR, others=(35.5, 47.3), reason=RESIDUALS),
    Goal(("label_attention",), (4.0, 6.0), FLOOR, others=(4.0, 8.0), reason=SCORES_OF_LABELS),
)
"""Goals of a TPU v6e where they differ from those of a v5e."""

GOALS = (
    *(replace(goal, devices=(devices.V6E,)) for goal in V6E_GOALS),
    Goal(ONE_QUERY, (2.05, 5.1), layouts=DENSE, cycles=(4.5e6, 15e6), narrow=True),
    Goal(HEADS, (2.2, 5.9), layouts=DENSE, devices=devices.TPUS, cycles=(3.5e6, 12.5e6)),
    Goal(HEADS, (4.6, 9.0), layouts=(*DENSE, *STATE), devices=(devices.H200,), reason=SELECTED),
    Goal(HEADS, (4.5, 5.5), FLOOR, MESH, devices=(devices.H200,), others=(5.5, 5.5), reason=REDUCED),
    Goal(PACKED[1:], (2.3, 6.6), layouts=SORTED, devices=(devices.H200,), others=(2.62, 6.6), reason=SCATTERED),
    Goal(PACKED, (2.3, 6.5), layouts=SORTED),
    Goal(PACKED, (3.3, 8.0), layouts=UNSORTED),
    Goal((), (1.05, 3.1), ways=KERNEL, devices=devices.TPUS),
    Goal(("attention_pooling",), (1.05, 3.1), ways=KERNEL),
    Goal((), (1.3, 3.6), ways=KERNEL),
    Goal(("dot_product_attention",), (1.27, 1.1), OF_PLAIN, DENSE, devices=(devices.H200,), reason=CLEANED),
    Goal(("attend",), (1.15, 1.1), OF_PLAIN, DENSE, devices=(devices.H200,), others=(1.21, 1.1), reason=CLEANED),
    Goal(("kernel_regression",), (1.24, 1.1), OF_PLAIN, DENSE, devices=(devices.H200,), reason=CLEANED),
    Goal(("maxsim_score",), (1.1, 1.26), OF_PLAIN, DENSE, devices=(devices.H200,), others=(1.1, 1.48), reason=TIED),
    Goal(("maxsim_score",), (1.1, 1.1), OF_PLAIN, DENSE, others=(1.1, 1.25), reason=TIED),
    Goal(
        ("latent_attention_pooling",),
        (1.1, 1.15),
        OF_PLAIN,
        DENSE,
        devices=(devices.H200,),
        others=(1.31, 1.15),
        reason=HIDDEN,
    ),
    Goal(("vlad_pooling",), (2.3, 2.2), OF_PLAIN, DENSE, devices=devices.TPUS, cycles=(9e6, 18e6), reason=RESIDUALS),
    Goal(
        ("vlad_pooling",),
        (2.16, 2.05),
        OF_PLAIN,
        DENSE,
        devices=(devices.H200,),
        others=(2.63, 2.05),
        reason=FUSED_RESIDUALS,
    ),
    Goal(
        ("vlad_pooling",),
        (7.4, 16.4),
        FLOOR,
        devices=devices.TPUS,
        cycles=(9e6, 18e6),
        others=(10.0, 16.4),
        reason=RESIDUALS,
    ),
    Goal(("vlad_pooling",), (9.7, 25.0), FLOOR, devices=(devices.H200,), others=(18.1, 25.0), reason=FUSED_RESIDUALS),
    Goal(("segment_vlad_pooling",), (21.1, 45.9), FLOOR, others=(35.4, 45.9), reason=RESIDUALS),
    Goal(("latent_attention_pooling",), (1.1, 1.45), OF_PLAIN, DENSE, devices=devices.TPUS, reason=HIDDEN),
    Goal(
        ("code_wise_attention", "cross_attention_pooling, reduction=max"),
        (1.1, 1.1),
        OF_PLAIN,
        DENSE,
        devices=(devices.H200,),
        others=(1.1, 1.2),
        reason=TIED,
    ),
    Goal(("kernel_regression",), (1.1, 1.1), OF_PLAIN, DENSE, others=(1.14, 1.1), reason=CLEANED),
    Goal(BY_PLAIN, (1.1, 1.1), OF_PLAIN, layouts=DENSE),
    # The target is (2.2, 3.4): 1.5 times 175 and 522 MB in float32, plus 134 and 400 MB for the projection of keys at the table's
    # sizes. Compiled: float32 2.7 and 3.6, bfloat16 3.3 and 4.8.
    Goal(HIDDEN_UNITS, (3.4, 4.9), FLOOR, devices=(devices.H200,), reason=COPIES),
    Goal(UNITS_OF_SCORES, (4.0, 4.9), FLOOR, devices=(devices.H200,), reason=UNITS),
    Goal(
        ("sparsemax", "entmax15"),
        (18.0, 8.9),
        FLOOR,
        others=(10.4, 14.1),
        reason="Newton's method: a read for each step, counted as the bits of a number",
    ),
    Goal(("entmax",), (16.9, 16.6), FLOOR, reason="bisection: a read for each bit of a number"),
    Goal(("top_k_softmax",), (7.0, 8.5), FLOOR, others=(10.5, 8.5), reason="a sort of the scores"),
    Goal(
        ("token_positions",),
        (13.0, 13.0),
        FLOOR,
        devices=devices.TPUS,
        reason="a cumulative sum, computed by a TPU as many partial sums",
    ),
    Goal(("quantile_pooling",), (22.1, 8.1), FLOOR, others=(15.1, 11.6), reason="a read for each two bits of a number"),
    Goal(("top_k_pooling",), (16.3, 15.3), FLOOR, others=(26.6, 15.3), reason="a sort of the tokens of each feature"),
    Goal(("gaussian_score",), (14.7, 30.5), FLOOR, devices=devices.TPUS, others=(28.3, 30.5), reason=LOOP),
    Goal(SCORES, (4.0, 9.6), FLOOR, devices=(devices.H200,), others=(4.8, 9.6), reason=ROUNDED),
    Goal(("location_attention",), (5.4, 12.1), FLOOR, devices=(devices.H200,), others=(9.7, 12.1), reason=ROUNDED),
    Goal(("additive_attention_pooling", "gated_sum_pooling"), (5.7, 7.9), FLOOR, others=(8.4, 7.9), reason=LAYER),
    Goal(("attentive_statistics_pooling",), (15.4, 24.1), FLOOR, others=(25.1, 24.1), reason=CHANNELS),
    Goal(("noisy_or_pooling",), (4.9, 11.7), FLOOR, others=(8.8, 11.7), reason=PAIRS),
    Goal(("segment_noisy_or_pooling",), (11.9, 27.3), FLOOR, others=(22.7, 14.2), reason=SLOTS),
    Goal(STATISTICS_OF_SEGMENTS, (17.0, 22.1), FLOOR, others=(30.0, 22.1), reason=EXPANDED),
    Goal(SUMS_OF_SEGMENTS, (4.0, 10.6), FLOOR, others=(6.1, 10.6), reason=EXPANDED),
    Goal(
        ("segment_additive_attention_pooling", "segment_gated_sum_pooling"),
        (4.8, 11.0),
        FLOOR,
        others=(7.4, 11.0),
        reason=EXPANDED,
    ),
    Goal(("segment_attentive_statistics_pooling",), (39.0, 60.0), FLOOR, others=(72.6, 60.0), reason=EXPANDED),
    Goal(("residual_feed_forward",), (10.6, 44.0), FLOOR, others=(20.6, 44.0), reason=MLP),
    Goal(("segment_latent_attention_pooling",), (23.0, 48.5), FLOOR, others=(34.0, 48.5), reason=MLP),
    Goal(("latent_attention_pooling",), (22.0, 48.0), FLOOR, STATE, others=(34.1, 48.0), reason=MLP),
    Goal(("latent_attention_pooling",), (8.5, 25.0), FLOOR, MESH, others=(12.4, 25.0), reason=MLP),
    Goal(
        ("label_attention",), (8.5, 23.0), FLOOR, devices=(devices.H200,), others=(12.5, 23.0), reason=SCORES_OF_LABELS
    ),
    Goal(("label_attention",), (4.0, 5.9), FLOOR, devices=devices.TPUS, others=(4.0, 7.0), reason=SCORES_OF_LABELS),
    Goal(("graph_decomposition",), (20.1, 61.5), FLOOR, devices=(devices.H200,), others=(25.8, 61.5), reason=LENGTHS),
    Goal(("cross_attention_pooling_all_pairs",), (4.0, 7.7), FLOOR, devices=(devices.H200,), reason=ALL_PAIRS),
    Goal(("cross_attention_pooling_all_pairs",), (4.0, 4.0), FLOOR, others=(4.0, 4.6), reason=ALL_PAIRS),
    Goal(("semantic_match",), (4.9, 9.5), FLOOR, devices=(devices.H200,), others=(7.1, 9.5), reason=MATCHED),
    Goal(("relation_triplet_loss",), (4.0, 6.0), FLOOR, reason=THREE_LAYERS),
    Goal(
        ("segment_cross_attention_pooling",),
        (4.1, 8.4),
        FLOOR,
        devices=devices.TPUS,
        others=(6.2, 8.4),
        reason=EXPANDED_SUMS,
    ),
    Goal(("power_mean_pooling",), (5.2, 6.0), FLOOR, devices=(devices.H200,), others=(7.4, 6.0), reason=LOGARITHMS),
    Goal(
        ("statistics_pooling", "std_pooling"),
        (5.3, 4.0),
        FLOOR,
        devices=(devices.H200,),
        others=(5.6, 4.0),
        reason=MOMENTS,
    ),
    Goal(STEPS, (13.2, 20.2), FLOOR, others=(14.3, 23.7), reason=STEPPED),
    Goal((), (4.0, 4.0), FLOOR, ways=()),
)
"""Goals, in the order in which they are tried; the last one fits every program of ours."""


def missed(judged, found):
    """Returns a line for each of these results that misses its goal; ``found`` has all results by key."""
    lines = []
    for key, result in judged.items():
        program = Program.of(key)
        reasons = shortfalls(program, result, found)
        lines += [f"{key}: {reason}" for reason in reasons]
    return lines


def shortfalls(program, result, found):
    """Returns the goals that a result misses."""
    if program.way in plain.WAYS or "no" in result:
        return []
    if "error" in result:
        return [f"does not compile: {result['error']}"]
    lines = [] if result["gathered"] < result["x"] else ["gathers its tokens over the mesh"]
    if result["memory"] > MEMORY[program.device]:
        lines.append(f"needs {result['memory'] / 1e9:.0f} GB")
    return lines + _missed(goal_of(program), program, result, found) + beyond_formula(program, result, found)


def yardstick(program, found):
    """Returns the result of the program's formula; None if it was not compiled, or needs too much memory."""
    formula = found.get(Program(**vars(program) | {"way": plain.PLAIN}).key, {})
    return formula if "bytes" in formula and formula["temporaries"] <= MEMORY[program.device] * BUDGET else None


def ratios(program, result, found):
    """Returns {cost: the multiple of the formula's cost}, for costs that are compared; empty without a yardstick."""
    formula = yardstick(program, found)
    if program.way != calls.OURS or "bytes" not in result or formula is None:
        return {}
    own = {"bytes": result["bytes"] / formula["bytes"]}
    if program.device == devices.V5E and formula["cycles"]:
        own["cycles"] = result["cycles"] / formula["cycles"]
    if program.device not in devices.TPUS and "elements" in result and "elements" in formula:
        beside = {"elements": formula["elements"], "products": formula["products"] + formula["elements"]}
        busy = [key for key, most in PER_BYTE.items() if result[key] > most * result["bytes"]]
        own |= {key: result[key] / max(beside[key], 1) for key in busy}
    return own


def exemption_of(program):
    """Returns the exemption of a program of ours, or None."""
    return next((one for one in EXEMPTIONS if one.fits(program)), None)


def beyond_formula(program, result, found):
    """Returns a line for each cost that exceeds that of the formula by more than RULE, or the exemption, allows."""
    if program.way != calls.OURS:
        return []
    exempt = exemption_of(program)
    most = RULE | (exempt.most if exempt else {})
    own = goal_of(program).unit == OF_PLAIN  # such a goal is the rule for its bytes
    return [
        f"{cost}: {ratio:.2f} times plain JAX, rule {most[cost]:g}"
        for cost, ratio in ratios(program, result, found).items()
        if ratio > most[cost] and not (own and cost == "bytes")
    ]


def goal_of(program):
    """Returns the goal of a program of ours."""
    return next(goal for goal in GOALS if goal.fits(program))


def _missed(goal, program, result, found):
    step = program.direction == calls.STEP
    lines = _too_many_bytes(goal.unit, goal.most_of(program), program, result, found)
    on_v5e = program.device == devices.V5E and program.dtype == "bfloat16"
    if goal.cycles and on_v5e and result["cycles"] > goal.cycles[step]:
        lines.append(f"{result['cycles'] / 1e6:.1f} million cycles, goal {goal.cycles[step] / 1e6:g}")
    if goal.narrow and result["wide"]:
        lines.append("writes a float32 copy of narrow tokens")
    return lines


def _too_many_bytes(unit, most, program, result, found):
    if unit == OF_PLAIN:
        other = yardstick(program, found)
        if other is None:
            too_many = result["temporaries"] > 2 * MEMORY[program.device] * BUDGET
            return [f"temporaries of {result['temporaries'] / 1e9:.1f} GB"] if too_many else []
        one = other["bytes"]
    else:
        one = result["x"] if unit == X else result["floor"]
    moved = result["bytes"] / one
    return [f"moves {moved:.2f} {unit}, goal {most:g}"] if moved > most else []

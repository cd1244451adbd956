"""Goals of compiled programs as data, and the results that miss them.

Every dense and packed program is compared with its formula, which is compiled in the same way (:data:`RULE`). Chunks and
meshes have no formula: their goal is the most bytes that they may move, as a multiple of their floor. The functions that
the first page shows also have goals, as multiples of bytes(x). The goal of a program is the first that fits it.
"""

from dataclasses import dataclass

from bench.aot import calls, devices, plain
from bench.aot.programs import Program

ONE_QUERY = ("attention_pooling",)
HEADS = ("multi_head_attention_pooling",)
PACKED = ("segment_attention_pooling", "segment_multi_head_attention_pooling")

X, FLOOR = "bytes(x)", "floors"

MEMORY = {devices.V5E: 16e9, devices.V6E: 32e9, devices.H200: 151e9}
"""Bytes of each device's memory."""

BUDGET = 1 / 16
"""Fraction of a device's memory. A formula with more temporaries than that is no yardstick for a program that has fewer."""


RULE = {"bytes": 1.3, "elements": 1.5, "products": 1.5, "cycles": 1.3}
"""The most of each cost of a dense or packed program, as a multiple of that of its formula (:mod:`bench.aot.formulas`).

Elements and products count on a GPU, where the compiler estimates no cycles, and only if they take longer than the bytes.
A program that takes no more time than its formula (:func:`no_slower`) may have more of single costs.
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
      directions: forward, step, or empty for both.
    """

    names: tuple
    most: dict
    reason: str
    layouts: tuple = ()
    devices: tuple = ()
    directions: tuple = ()

    def fits(self, program):
        """Returns whether the exemption applies to a program."""
        pairs = (
            (self.layouts, program.layout),
            (self.devices, program.device),
            (self.directions, program.direction),
        )
        named = program.name in self.names or program.name.split(",")[0] in self.names
        return named and all(not allowed or own in allowed for allowed, own in pairs)


ONE_V6E, ONE_H200 = (devices.V6E,), (devices.H200,)
VLAD = ("vlad_pooling",)
SORT = "the formula's sort, which takes many passes, is counted as one"
NEWTON = (
    "the loop is counted with 32 steps, and takes at most 11 (4,096 rows of 1,024 normal scores, at scales of 0.01 to 100); "
    + SORT
)
LENGTH = "squares of large numbers overflow, and those of small ones vanish: the largest number is found first"
COSINES = (
    "cosines stay in float32, because rounded ones choose another token, and equal ones are found in a second reduction"
)
TIES = "tied tokens share the gradient: x is summed, not the sorted tokens, and NaN is searched for"
SAFE = (
    "the largest token of each feature is found first, and differences from it are summed: powers, exponentials and squares "
    "of tokens overflow, or lose digits"
)
EXPANDED = SAFE + "; of packed tokens it is gathered for each token, and written"
ONE = "the formula loses small probabilities, or by logarithms has no gradient at a probability of 1"
KERNEL_OF_XLA = "XLA computes the formula's softmax and second product in a kernel, whose cycles it does not estimate"
FUSED_SUMS = (
    "a v6e's compiler sums the formula's exponentials in the kernel of the second product; a v5e's compiler does not, and "
    "estimates 1.25 times our cycles for the formula"
)
FEW = "the arrays have 1 % of the bytes of x: the ids, and one token of each segment"
FIRST = "two reductions find the first of the largest scores: XLA's CPU compiler vectorizes no argmax"
UNSEEN = "tokens that nobody sees are replaced, because 0 times NaN is NaN"
IN_FLOAT32 = "arrays between the products stay in float32, which the formula rounds"
DENSE, SORTED, UNSORTED = (calls.DENSE,), (calls.SORTED,), (calls.UNSORTED,)
RESIDUALS = "digits cancel in sums of tokens, so residuals to the nearest centers are summed; "
OF_TOKENS = "the formula sums the tokens, and subtracts the sums of their centers"
IN_VMEM = "XLA computes the formula in blocks in VMEM, and writes none of its arrays"

EXEMPTIONS = (
    Exemption(
        ("gaussian_score", "kernel_regression"),
        {"bytes": 13.3, "elements": 121.0, "cycles": 88.0},
        "differences are squared and summed; products, as in the formula, lose all digits if one key is far",
    ),
    Exemption(("sparsemax", "entmax15"), {"bytes": 4.0}, NEWTON, directions=(calls.FORWARD,)),
    Exemption(
        ("l2_normalize", "cosine_score", "linear_decomposition"),
        {"bytes": 1.34, "cycles": 1.5},
        LENGTH,
        directions=(calls.FORWARD,),
    ),
    Exemption(("graph_decomposition",), {"cycles": 1.49}, UNSEEN + "; " + LENGTH),
    Exemption(("semantic_match",), {"bytes": 2.32, "cycles": 1.91}, LENGTH + "; " + COSINES),
    Exemption(("hardmax",), {"bytes": 1.51, "cycles": 1.62}, FIRST),
    Exemption(
        ("additive_attention", "tanh_sum_attention"),
        {"bytes": 1.71},
        UNSEEN,
        devices=ONE_H200,
        directions=(calls.FORWARD,),
    ),
    Exemption(
        ("latent_attention_pooling", "segment_latent_attention_pooling"),
        {"bytes": 1.75, "cycles": 1.33},
        IN_FLOAT32,
        devices=devices.TPUS,
        directions=(calls.STEP,),
    ),
    Exemption(
        ("cross_attention_pooling_all_pairs",),
        {"bytes": 2.19, "cycles": 2.6},
        IN_FLOAT32,
        devices=devices.TPUS,
        directions=(calls.STEP,),
    ),
    Exemption(
        ("cross_attention_pooling_all_pairs",), {"bytes": 1.32}, UNSEEN, devices=ONE_H200, directions=(calls.FORWARD,)
    ),
    Exemption(
        ("mask_attention", "bidaf_attention", "label_attention"),
        {"cycles": 3.0},
        KERNEL_OF_XLA,
        directions=(calls.FORWARD,),
    ),
    Exemption(("multi_head_attention",), {"bytes": 1.46}, FUSED_SUMS, devices=ONE_V6E, directions=(calls.FORWARD,)),
    Exemption(
        ("maxsim_score",), {"bytes": 1.36, "cycles": 2.9}, UNSEEN, devices=devices.TPUS, directions=(calls.STEP,)
    ),
    Exemption(("location_attention",), {"bytes": 1.73}, IN_FLOAT32, devices=ONE_H200, directions=(calls.STEP,)),
    Exemption(("quantile_pooling",), {"bytes": 4.22}, SORT, devices=ONE_H200, directions=(calls.FORWARD,)),
    Exemption(("top_k_pooling",), {"bytes": 1.4}, TIES, devices=ONE_H200),
    Exemption(("noisy_or_pooling",), {"bytes": 4.81, "cycles": 2.51}, ONE),
    Exemption(("segment_noisy_or_pooling",), {"bytes": 12.1}, ONE),
    Exemption(("power_mean_pooling",), {"bytes": 4.01, "cycles": 2.06}, SAFE),
    Exemption(("segment_power_mean_pooling",), {"bytes": 8.1}, EXPANDED),
    Exemption(("segment_std_pooling", "segment_statistics_pooling"), {"bytes": 6.0}, EXPANDED),
    Exemption(("segment_logsumexp_pooling", "segment_softmax_pooling"), {"bytes": 3.4}, EXPANDED),
    Exemption(("segment_attentive_statistics_pooling",), {"bytes": 2.1}, EXPANDED),
    Exemption(("std_pooling", "statistics_pooling"), {"bytes": 3.04, "cycles": 1.85}, SAFE),
    Exemption(("softmax_pooling",), {"bytes": 2.01}, SAFE, devices=devices.TPUS, directions=(calls.FORWARD,)),
    Exemption(("attentive_statistics_pooling",), {"bytes": 1.56}, SAFE, devices=ONE_H200, directions=(calls.FORWARD,)),
    Exemption(("segment_first_pooling", "segment_last_pooling"), {"bytes": 1.78}, FEW, devices=ONE_H200),
    Exemption(
        ("gated_sum_pooling", "segment_gated_sum_pooling"),
        {"bytes": 1.43},
        UNSEEN,
        devices=ONE_H200,
        directions=(calls.FORWARD,),
    ),
    Exemption(VLAD, {"bytes": 6.5}, RESIDUALS + IN_VMEM, DENSE, ONE_V6E, (calls.FORWARD,)),
    Exemption(VLAD, {"bytes": 2.3, "cycles": 2.3}, RESIDUALS + OF_TOKENS, DENSE, devices.TPUS, (calls.FORWARD,)),
    Exemption(VLAD, {"bytes": 2.2, "cycles": 2.3}, RESIDUALS + OF_TOKENS, DENSE, devices.TPUS, (calls.STEP,)),
    Exemption(VLAD, {"bytes": 2.63}, RESIDUALS + OF_TOKENS, DENSE, ONE_H200, (calls.FORWARD,)),
    Exemption(VLAD, {"bytes": 2.05, "elements": 36.0}, RESIDUALS + OF_TOKENS, DENSE, ONE_H200, (calls.STEP,)),
)


@dataclass(frozen=True)
class Goal:
    """The highest allowed costs of some programs, forward and in a step.

    Attributes:
      names: names of calls; empty for all.
      most: the most bytes in units: of a forward pass in float32, and of a step in bfloat16 or float16.
      unit: X or FLOOR.
      layouts: names of layouts; empty for all.
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
        """Returns whether the goal applies to a program of ours. States of chunks have the goals of their poolings."""
        name = program.name.replace("_state", "_pooling") if program.layout == calls.STATE else program.name
        pairs = ((self.names, name), (self.layouts, program.layout), (self.devices, program.device))
        return program.way == calls.OURS and all(not allowed or own in allowed for allowed, own in pairs)


STATE, MESH = (calls.STATE,), (calls.MESH,)
CHUNKS_AND_MESHES = (*STATE, *MESH)
LAYER = "a step writes the hidden layer and its gradients in float32, and a copy of the tokens with padding replaced"
CHANNELS = "scores as large as the tokens, in float32, are read for maximum, denominator, each moment and the gradient"
PAIRS = "pairs of tokens are combined, then pairs of the results, until one is left"
STEPPED = "six steps, each reads its tokens twice forward and five times in all"
MOMENTS = "each moment is a reduction of its own, after an all-reduce of the one before"
LOGARITHMS = "logarithms of the tokens are written, and read for maximum and sum"
MLP = "the hidden layer and its gradients are written"
RESIDUALS_IN_FLOAT32 = RESIDUALS + "they are written and read in float32"
FUSED_RESIDUALS = RESIDUALS + "each gradient is one more sum of them, which reads the tokens"
SELECTED = "the sums of tokens need a copy with padding replaced: XLA fuses no selection into a product on a GPU"
REDUCED = (
    SELECTED
    + "; numerators [B, H, d], in float32 as large on each device as on one, are joined for an all-reduce and split"
)
SCATTERED = "sums [B, H, d] of the heads are filled with 0, added to by a scatter, divided and read, in float32"
GATHERED = "the SparseCores of a v6e write the gathered tokens to memory, from which they are read twice; a step gathers them twice"
GOALS = (
    Goal(ONE_QUERY, (2.05, 5.1), X, DENSE, cycles=(4.5e6, 15e6), narrow=True),
    Goal(HEADS, (2.2, 5.9), X, DENSE, devices=devices.TPUS, cycles=(3.5e6, 12.5e6)),
    Goal(HEADS, (4.6, 9.0), X, (*DENSE, *STATE), devices=ONE_H200, reason=SELECTED),
    Goal(PACKED[1:], (2.3, 6.6), X, SORTED, devices=ONE_H200, others=(2.62, 6.6), reason=SCATTERED),
    Goal(PACKED, (2.3, 6.5), X, SORTED),
    Goal(PACKED, (4.9, 13.7), X, UNSORTED, devices=ONE_V6E, others=(4.9, 15.3), reason=GATHERED),
    Goal(PACKED, (3.3, 8.0), X, UNSORTED),
    Goal(HEADS, (4.5, 5.5), FLOOR, MESH, devices=ONE_H200, others=(5.5, 5.5), reason=REDUCED),
    Goal(
        VLAD,
        (10.2, 20.8),
        FLOOR,
        MESH,
        devices=ONE_V6E,
        others=(14.4, 20.8),
        reason=RESIDUALS_IN_FLOAT32,
    ),
    Goal(
        VLAD,
        (7.5, 16.4),
        FLOOR,
        CHUNKS_AND_MESHES,
        devices=devices.TPUS,
        cycles=(9e6, 18e6),
        others=(10.0, 16.4),
        reason=RESIDUALS_IN_FLOAT32,
    ),
    Goal(
        VLAD,
        (9.7, 25.0),
        FLOOR,
        CHUNKS_AND_MESHES,
        devices=ONE_H200,
        others=(18.1, 25.0),
        reason=FUSED_RESIDUALS,
    ),
    Goal(
        ("additive_attention_pooling", "gated_sum_pooling"),
        (5.7, 7.9),
        FLOOR,
        CHUNKS_AND_MESHES,
        others=(8.4, 7.9),
        reason=LAYER,
    ),
    Goal(
        ("attentive_statistics_pooling",),
        (15.4, 24.1),
        FLOOR,
        CHUNKS_AND_MESHES,
        others=(25.1, 24.1),
        reason=CHANNELS,
    ),
    Goal(("noisy_or_pooling",), (4.9, 11.7), FLOOR, CHUNKS_AND_MESHES, others=(8.8, 11.7), reason=PAIRS),
    Goal(("latent_attention_pooling",), (22.0, 48.0), FLOOR, STATE, others=(34.1, 48.0), reason=MLP),
    Goal(("latent_attention_pooling",), (8.5, 25.0), FLOOR, MESH, others=(12.4, 25.0), reason=MLP),
    Goal(
        ("power_mean_pooling",),
        (5.2, 6.0),
        FLOOR,
        CHUNKS_AND_MESHES,
        devices=ONE_H200,
        others=(7.4, 6.0),
        reason=LOGARITHMS,
    ),
    Goal(
        ("statistics_pooling", "std_pooling"),
        (5.3, 4.0),
        FLOOR,
        CHUNKS_AND_MESHES,
        devices=ONE_H200,
        others=(5.6, 4.0),
        reason=MOMENTS,
    ),
    Goal(("set2set_pooling",), (13.2, 20.3), FLOOR, MESH, others=(14.3, 23.7), reason=STEPPED),
    Goal((), (4.0, 4.0), FLOOR, CHUNKS_AND_MESHES),
)
"""Goals, in the order in which they are tried. Dense and packed programs have one only if the first page shows them."""


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
    return lines + _missed(goal_of(program), program, result) + beyond_formula(program, result, found)


def formula_of(program, found):
    """Returns the result of the program's formula; empty if it has none, or if it was not compiled."""
    return found.get(Program(**vars(program) | {"way": plain.PLAIN}).key, {})


def yardstick(program, result, found):
    """Returns the result of the formula; None if there is none, or if it needs too much memory, which the program spares."""
    formula = formula_of(program, found)
    if program.way != calls.OURS or "bytes" not in result or "bytes" not in formula:
        return None
    too_much = formula["temporaries"] > MEMORY[program.device] * BUDGET
    return None if too_much and result["temporaries"] <= formula["temporaries"] else formula


def ratios(program, result, found):
    """Returns {cost: the multiple of the formula's cost}, for costs that are compared; empty without a yardstick."""
    formula = yardstick(program, result, found)
    if formula is None:
        return {}
    own = {"bytes": result["bytes"] / formula["bytes"]}
    if _all_estimated(program, result, formula):
        own["cycles"] = result["cycles"] / formula["cycles"]
    if program.device not in devices.TPUS and "elements" in result and "elements" in formula:
        beside = {"elements": formula["elements"], "products": formula["products"] + formula["elements"]}
        busy = [key for key, most in PER_BYTE.items() if result[key] > most * result["bytes"]]
        own |= {key: result[key] / max(beside[key], 1) for key in busy}
    return own


def no_slower(program, result, formula):
    """Returns whether a program takes no more time than its formula, as far as its device tells.

    On a TPU v5e it is the compiler's estimate, on a GPU the larger of the times for bytes and for operations.
    """
    if program.device == devices.H200:
        return _time_on_gpu(result) <= _time_on_gpu(formula)
    return _all_estimated(program, result, formula) and result["cycles"] <= formula["cycles"]


def _all_estimated(program, *results):
    """Returns whether the compiler estimates the cycles of all instructions: it does not for scatters and sorts."""
    unknown = any(one["counts"].get(key) for one in results for key in ("scatters", "sorts"))
    return program.device == devices.V5E and not unknown and all(one["cycles"] for one in results)


def _time_on_gpu(result):
    """Returns the time of a program in bytes that are moved meanwhile."""
    return max(result["bytes"], *(result.get(key, 0) / rate for key, rate in PER_BYTE.items()))


def exemption_of(program):
    """Returns the exemption of a program of ours, or None."""
    return next((one for one in EXEMPTIONS if one.fits(program)), None)


def beyond_formula(program, result, found):
    """Returns a line for each cost that exceeds that of the formula by more than RULE, or the exemption, allows."""
    formula = yardstick(program, result, found)
    if formula is None or no_slower(program, result, formula):
        return []
    exempt = exemption_of(program)
    most = RULE | (exempt.most if exempt else {})
    return [
        f"{cost}: {ratio:.2f} times plain JAX, rule {most[cost]:g}"
        for cost, ratio in ratios(program, result, found).items()
        if ratio > most[cost]
    ]


def goal_of(program):
    """Returns the goal of a program of ours; None if only its formula judges it."""
    return next((goal for goal in GOALS if goal.fits(program)), None)


def _missed(goal, program, result):
    if goal is None:
        return []
    moved, most = result["bytes"] / (result["x"] if goal.unit == X else result["floor"]), goal.most_of(program)
    lines = [f"moves {moved:.2f} {goal.unit}, goal {most:g}"] if moved > most else []
    step = program.direction == calls.STEP
    on_v5e = program.device == devices.V5E and program.dtype == "bfloat16"
    if goal.cycles and on_v5e and result["cycles"] > goal.cycles[step]:
        lines.append(f"{result['cycles'] / 1e6:.1f} million cycles, goal {goal.cycles[step] / 1e6:g}")
    if goal.narrow and result["wide"]:
        lines.append("writes a float32 copy of narrow tokens")
    return lines

"""Rule for the costs of compiled programs: none has more than FACTOR times that of the program's plain formula.

The formula is compiled in the same way; that of a state of chunks is the formula of the whole sequence.

* The costs are the bytes moved, on a TPU the compiler's estimate of the cycles, if it estimates all of them, and on a GPU
  the operations, if they take longer than the bytes.
* A program that takes no more time than its formula may have more of single costs. The time is the estimate of the
  cycles on a TPU, and the larger of the times for bytes and for operations on a GPU.
* A formula with temporaries above a sixteenth of the device's memory is no yardstick for a program that has fewer.
"""

from dataclasses import replace

from bench.aot import FACTOR, devices
from bench.aot.compiling import by_label, formula_of
from bench.programs import OURS, PLAIN

BUDGET = 1 / 16
"""Part of a device's memory for the temporaries of a formula that is a yardstick."""

PER_BYTE = {"elements": 8, "products": 100}
"""Operations for each byte, about half of what an H200 does while it reads one: fewer of them wait for memory."""

WORST = 20
"""Programs that a run prints."""

REASONS = {
    "gaussian_score kernel_regression": "differences are squared and summed; products, as in the formula, lose all digits if "
    "one key is far",
    "sparsemax entmax15 quantile_pooling": "the formula's sort, which takes many passes, is counted as one",
    "semantic_match": "cosines stay in float32, because rounded ones choose another token; equal ones are found in a second "
    "reduction",
    "hardmax": "two reductions find the first of the largest scores: XLA's CPU compiler vectorizes no argmax",
    "additive_attention tanh_sum_attention maxsim_score": "tokens that nobody sees are replaced, because 0 times NaN is NaN",
    "latent_attention_pooling location_attention cross_attention_pooling_all_pairs": "arrays between the products stay in "
    "float32, which the formula rounds",
    "mask_attention bidaf_attention label_attention": "XLA computes the formula's softmax and second product in a kernel, "
    "whose cycles it does not estimate",
    "noisy_or_pooling": "the formula loses small probabilities, or by logarithms has no gradient at a probability of 1",
    "power_mean_pooling std_pooling statistics_pooling attentive_statistics_pooling logsumexp_pooling softmax_pooling": "the "
    "largest token of each feature is found first, and differences from it are summed: powers, exponentials and squares of "
    "tokens overflow, or lose digits",
    "first_pooling last_pooling": "the arrays have 1 % of the bytes of x: the ids, and one token of each segment",
    "vlad_pooling": "digits cancel in sums of tokens, so residuals to the nearest centers are summed",
    "weighted_state": "the largest weight of a chunk is found first, so that states with weights of any size can be merged",
}
EXEMPT = {name: reason for names, reason in REASONS.items() for name in names.split()}
"""Functions that may cost more, each with the reason; that of a dense function is also that of its other layouts."""


def report(found, known):
    """Returns the text about the programs of a run, and whether one of them breaks the rule; ``known`` has all results."""
    compared, broken, needed = [], [], set()
    for program in found:
        if program.way != OURS:
            continue
        call, result = by_label()[program.label], known[program.key]
        name = call.row.name if call.row.name in EXEMPT else call.dense
        formula = known.get(formula_program(program).key, {})
        lines, over = faults(program, result), exceeding(program, result, formula)
        if over and name in EXEMPT:
            needed.add(name)
        elif over:
            lines.append(f"more than {FACTOR:g} times its formula: {', '.join(over)}")
        broken += [f"{program.key}: {line}" for line in lines]
        if costs := ratios(program, result, formula):
            allowed = "takes no more time" if not over else EXEMPT.get(name, "breaks the rule")
            said = f": {allowed}" if max(costs.values()) > FACTOR else ""
            text = ", ".join(f"{cost} {ratio:.2f}" for cost, ratio in costs.items())
            compared.append((max(costs.values()), f"{program.key.replace(f' | {OURS}', '')}: {text}{said}"))
    worst = [line for _, line in sorted(compared, reverse=True)[:WORST]]
    parts = [f"{len(compared)} programs beside their formulas; costs as multiples, the largest first:", *worst]
    if len(compared) > len(by_label()) and (unneeded := sorted(EXEMPT.keys() - needed)):  # not of a single function
        parts.append(f"Exempt, but within the rule in this run: {', '.join(unneeded)}")
    parts += ["Breaks the rule:", *broken] if broken else ["No program breaks the rule."]
    return "\n".join(parts), bool(broken)


def formula_program(program):
    """Returns the program of the formula with which a program is compared."""
    return replace(program, label=formula_of(program.label), way=PLAIN)


def faults(program, result):
    """Returns what is wrong with a program without regard to its formula."""
    if "error" in result:
        return [f"does not compile: {result['error']}"]
    if result.get("memory", 0) > devices.MEMORY[program.device]:
        return [f"needs {result['memory'] / 1e9:.0f} GB"]
    return []


def ratios(program, result, formula):
    """Returns {cost: the multiple of the formula's cost}, for costs that are compared; empty without a yardstick."""
    if "bytes" not in result or "bytes" not in formula:
        return {}
    too_much = formula["temporaries"] > devices.MEMORY[program.device] * BUDGET
    if too_much and result["temporaries"] <= formula["temporaries"]:
        return {}
    found = {"bytes": result["bytes"] / formula["bytes"]}
    if _all_estimated(program, result, formula):
        found["cycles"] = result["cycles"] / formula["cycles"]
    if program.device == devices.H200:
        beside = {"elements": formula["elements"], "products": formula["products"] + formula["elements"]}
        busy = [key for key, most in PER_BYTE.items() if result[key] > most * result["bytes"]]
        found |= {key: result[key] / max(beside[key], 1) for key in busy}
    return found


def exceeding(program, result, formula):
    """Returns the costs above FACTOR, as text; none if the program takes no more time than its formula."""
    if "bytes" not in result or "bytes" not in formula or _no_slower(program, result, formula):
        return []
    found = ratios(program, result, formula)
    return [f"{cost} {ratio:.2f}" for cost, ratio in found.items() if ratio > FACTOR]


def _no_slower(program, result, formula):
    if program.device == devices.H200:
        return _time_on_gpu(result) <= _time_on_gpu(formula)
    return _all_estimated(program, result, formula) and result["cycles"] <= formula["cycles"]


def _all_estimated(program, *results):
    """Returns whether the compiler estimates the cycles of all instructions: it does not for scatters and sorts."""
    unknown = any(one["counts"].get(key) for one in results for key in ("scatters", "sorts"))
    return program.device == devices.V5E and not unknown and all(one["cycles"] for one in results)


def _time_on_gpu(result):
    """Returns the time of a program in bytes that are moved meanwhile."""
    return max(result["bytes"], *(result[key] / rate for key, rate in PER_BYTE.items()))

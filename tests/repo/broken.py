"""Bugs in attnpool_flax, of one changed line each, and the command that runs the tests of ``make test`` on each of them.

Usage: ``python tests/repo/broken.py [--only WORD...] [--jobs N] [--list]``. Each bug is written into a copy of the checkout,
where pytest runs the tests whose ids name a function that runs the line, until one fails. That test must pass without the bug.
Copies share the compiled programs in the checkout's ``.pytest_cache``. The status is 1 unless tests fail on every bug.
"""

import argparse
import ast
import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".pytest_cache"
GUARANTEES = "tests/test_guarantees.py"
DEVICES = "8"
"""The number of CPU devices of tests with the mark ``mesh``."""

MOST_SECONDS = 600
"""Seconds after which a run of pytest is an error."""


class Bug(NamedTuple):
    """A bug of one changed line.

    Attributes:
      title: a short description.
      file: the path below ``attnpool_flax``.
      old: a text that occurs once in the file.
      new: the text in its place.
      functions: functions and modules that run the line; if empty, all public ones that the file defines, in each layout.
      mesh: whether only calls with ``axis_name`` show the bug, so that the tests with the mark ``mesh`` run as well.
    """

    title: str
    file: str
    old: str
    new: str
    functions: str = ""
    mesh: bool = False

    @property
    def path(self):
        """The path below the checkout."""
        return Path("attnpool_flax", self.file)


# fmt: off
BUGS = (
    # families, states and modules
    Bug("a key counts as seen only if all queries see it", "masks.py",
        "else jnp.any(mask, -2)", "else jnp.all(mask, -2)", "attend dot_product_attention multi_head_attention"),
    Bug("1.5-entmax without the square root", "normalizers.py",
        "jnp.sqrt(jnp.where(square <= 0, 1, square))", "square", "entmax15"),
    Bug("normalized sigmoid ignores `axis`", "normalizers.py",
        "return normalized_sigmoid(scores, mask, axis)", "return normalized_sigmoid(scores, mask)", "masked_sigmoid"),
    Bug("additive score without its bias", "scores.py",
        "_units(key, key_kernel, bias, precision)", "_units(key, key_kernel, None, precision)",
        "additive_score concat_score tanh_sum_score"),
    Bug("kernel regression counts padding", "attention.py",
        "heights = jnp.where(mask, heights, 0)", "del mask", "kernel_regression"),
    Bug("weighted mean divides by the weights of padding too", "pooling/plain.py",
        "own = channels.fill_padding(channels.expand_to_features(weights))", "own = channels.expand_to_features(weights)",
        "weighted_pooling"),
    Bug("attention pooling of packed tokens ignores `normalizer`", "pooling/attention.py",
        'isinstance(normalizer, str) or normalizer != "softmax":',
        'isinstance(normalizer, str) or (normalizer != "softmax" and hasattr(tokens, "mask")):'),
    Bug("key bias left out under the sigmoid", "pooling/multi_head.py",
        '"entmax15", "hardmax")', '"entmax15", "hardmax", "sigmoid")'),
    Bug("value bias not multiplied by the sum of the weights", "pooling/multi_head.py",
        "found + weight_sums * jnp.broadcast_to", "found + jnp.broadcast_to"),
    Bug("top-k mean divides by k if fewer tokens are real", "means.py",
        "jnp.where(above, x / taken, 0)", "jnp.where(above, x / k, 0)", "top_k_pooling"),
    Bug("log-sum-exp and softmax means have no gradient of the scale", "means.py",
        "return 2 * times_sign(scale, scale)", "return 2 * lax.stop_gradient(times_sign(scale, scale))",
        "logsumexp_pooling softmax_pooling logsumexp_state softmax_state"),
    Bug("attentive statistics ignore `context_ddof`", "statistics.py",
        "context = (context_ddof, epsilon)", "context = (0, epsilon)", "attentive_statistics_pooling"),
    Bug("gate takes the bias of the hidden layer", "additive.py",
        "layer(piece, gate_kernel, gate_bias)", "layer(piece, gate_kernel, bias)"),
    Bug("Set2Set shows the cell without tanh", "readouts.py",
        "jax.nn.sigmoid(show) * jnp.tanh(cell)", "jax.nn.sigmoid(show) * cell", "set2set_pooling"),
    Bug("layer normalization adds epsilon in the wrong unit", "layers.py",
        "variance + epsilon / unit / unit", "variance + epsilon / unit"),
    Bug("BiDAF without the context's part of its largest score", "pairs.py",
        'best = best[..., 0] + einsum("...td,d->...t", context, of_context, precision)', "best = best[..., 0]",
        "bidaf_attention"),
    Bug("window of semantic matching counts padding", "decomposition.py",
        "rank = jnp.cumsum(real, -1, dtype=jnp.int32)",
        "rank = jnp.broadcast_to(jnp.arange(real.shape[-1]), real.shape)", "semantic_match"),
    Bug("graph decomposition with the transposed adjacency", "decomposition.py",
        "jnp.where(adjacency, lengths, 0)", "jnp.where(adjacency.T, lengths, 0)", "graph_decomposition"),
    Bug("margin of triplet losses with the wrong sign", "relations.py",
        "near + margin - far", "near - margin - far", "attention_triplet_loss relation_triplet_loss"),
    Bug("states of means merge without rescaling", "streaming/states.py",
        "(divisor_of(_as_float(state.count, self)) / divisor)[..., None]", "jnp.ones_like(divisor)[..., None]",
        "mean_state mean_max_state latent_attention_state"),
    Bug("merged deviations with a wrong sign", "tokens/moments.py",
        "shift * (2 * own_first + shift * state.total)", "shift * (2 * own_first - shift * state.total)", "std_state"),
    Bug("last token of a chunk is the first", "streaming/pooling.py",
        "end_position(mask, last=True)", "end_position(mask, last=False)", "last_state"),
    Bug("AttentionPool2d appends the mean's place to the mask", "modules/heads.py",
        "jnp.concatenate([jnp.any(mask, -1, keepdims=True), mask], -1)",
        "jnp.concatenate([mask, jnp.any(mask, -1, keepdims=True)], -1)", "AttentionPool2d"),
    Bug("LocationAttention drops the mask", "modules/attention.py",
        "mask=mask, return_weights=return_weights, **self._arguments(query=query, state",
        "return_weights=return_weights, **self._arguments(query=query, state", "LocationAttention"),
    Bug("Linen: dropout rate taken for the rate that is kept", "linen/deriving.py",
        "nn.Dropout(self.dropout_rate, deterministic=False)", "nn.Dropout(1 - self.dropout_rate, deterministic=False)",
        "AttentionPool AdditiveAttention MultiHeadAttentionPool"),
    # engine
    Bug("pieces keep padding", "tokens/pieces.py",
        "self.x, self.real, self.precision = keep_real(x.astype(dtype), real)",
        "self.x, self.real, self.precision = x.astype(dtype)", "sum_pooling mean_pooling attention_pooling"),
    Bug("bias of padding is added to its scores", "tokens/pieces.py",
        "return piece.blank(saveable(scores) if bias is None else saveable(scores) + bias, -jnp.inf)",
        "return piece.blank(saveable(scores), -jnp.inf) + (0 if bias is None else bias)",
        "attention_pooling multi_head_attention_pooling"),
    Bug("softmax without the gradient of the dropout multiplier", "tokens/pieces.py",
        "weights * piece.blank(multiplier, 0)", "weights * lax.stop_gradient(piece.blank(multiplier, 0))",
        "attention_pooling multi_head_attention_pooling"),
    Bug("packed bfloat16 tokens are not widened", "tokens/pieces.py",
        "self.x = keep_real(x.astype(dtype), real)\n        self.ids", "self.x = keep_real(x, real)\n        self.ids",
        "segment_cross_attention_pooling"),
    Bug("overlap of the last piece counts twice", "tokens/tiles.py",
        "lax.iota(jnp.int32, count) >= first)", "lax.iota(jnp.int32, count) >= 0)",
        "sum_pooling mean_pooling attention_pooling"),
    Bug("the last run of packed tokens is skipped", "tokens/tiles.py",
        "steps, exact = -(-length // run), length", "steps, exact = length // run, length",
        "segment_sum_pooling segment_attention_pooling"),
    Bug("a piece with one real token behind its first quarter is not read", "tokens/tiles.py",
        "jnp.any(mask[:, quarter:])", "jnp.sum(mask[:, quarter:]) > 1", "attention_pooling"),
    Bug("padding takes part in ties of maxima", "tokens/dense.py",
        "jnp.where(tied if mask is None else tied & mask[..., None], x, 0)", "jnp.where(tied, x, 0)",
        "max_pooling min_pooling mean_max_pooling"),
    Bug("the gradient of a mean is that of a sum", "tokens/dense.py",
        "keep_real(x.astype(divisor.dtype), mask) / divisor, -2)", "keep_real(x.astype(divisor.dtype), mask), -2)",
        "mean_pooling mean_max_pooling"),
    Bug("packed padding takes part in ties of maxima", "tokens/packed.py",
        "piece.blank(signed(piece.x) == piece.each(extreme), False)", "signed(piece.x) == piece.each(extreme)",
        "segment_max_pooling segment_min_pooling segment_mean_max_pooling"),
    Bug("pieces of the softmax add up without rescaling", "tokens/states.py",
        "scale = exponential(self.common(), top)", "scale = jnp.ones_like(self.common() - top)",
        "attention_pooling multi_head_attention_pooling"),
    Bug("last slots of packed tokens are dropped", "tokens/segments.py",
        "number = count + length", "number = 1 + length",
        "segment_sum_pooling segment_mean_pooling segment_std_pooling"),
    Bug("long sums lose what does not fill a part", "numerics/sums.py",
        "return summed(sums, 0, levels - 1) + jnp.sum(x[whole:], 0)", "return summed(sums, 0, levels - 1)",
        "sum_pooling mean_pooling std_pooling"),
    Bug("weighted sums over a mesh are those of one device", "tokens/mesh.py",
        "joint = operation(cast_varying(joint,", "joint = (operation if operation is lax.pmax else lax.pmean)(cast_varying(joint,",
        "sum_pooling cross_attention_pooling", mesh=True),
    Bug("calls that differ in an option share a program", "call/compiled.py",
        "_DEFAULT if value is default else static_key(value)", "_DEFAULT",
        "logsumexp_pooling cross_attention_pooling"),
)
# fmt: on


@functools.cache
def table():
    """Returns the checkout's table of functions."""
    sys.path.insert(0, str(ROOT))
    return importlib.import_module("attnpool_ref.table")


@functools.cache
def public():
    """Returns the names of all public functions and modules."""
    rows = (*table().VARIANTS, *table().HEADS)
    return [*table().BY_NAME, *(row.module for row in rows if row.module)]


def functions_of(bug):
    """Returns the functions and modules whose tests run on a bug."""
    if bug.functions:
        return bug.functions.split()
    defined = [getattr(node, "name", "") for node in ast.parse((ROOT / bug.path).read_text(encoding="utf-8")).body]
    return table().in_all_layouts(*(name for name in defined if name in public()))


def selection(names):
    """Returns pytest's expression for tests whose ids have one of the names, not as a part of another public name."""
    longer = {name: [own for own in public() if name.lower() in own.lower() and own not in names] for name in names}
    return " or ".join(f"({name} and not ({' or '.join(own)}))" if own else name for name, own in longer.items())


def copy_checkout(folder):
    """Copies the files that git tracks or would add."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in listed.split("\0"):
        if (ROOT / name).is_file():  # git also lists deleted files
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, Path(folder, name))


def run_tests(folder, mesh, *arguments):
    """Runs pytest in a copy until a test fails; returns (its status, the id of that test, or "")."""
    marks = "mesh and not thorough" if mesh else "not thorough"  # with one device, tests of a mesh skip themselves
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", marks, "-o", f"cache_dir={CACHE}", *arguments]
    given = {key: value for key, value in os.environ.items() if key != "JAX_NUM_CPU_DEVICES"} | {"PYTHONPATH": folder}
    given |= {"JAX_NUM_CPU_DEVICES": DEVICES} if mesh else {}
    run = subprocess.run(command, cwd=folder, env=given, capture_output=True, text=True, timeout=MOST_SECONDS)
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", run.stdout, re.MULTILINE)
    return run.returncode, failed[1] if failed else ""


def outcome(bug):
    """Returns ("caught", the test that fails), ("PASSED", "") if none does, or ("error", the reason)."""
    chosen, runs = ["-k", selection(functions_of(bug))], [(False, ["tests", "attnpool_flax", f"--ignore={GUARANTEES}"])]
    if (ROOT / GUARANTEES).exists():  # first, without collecting the other tests
        runs.insert(0, (False, [GUARANTEES]))
    if bug.mesh:
        runs.insert(0, (True, ["tests"]))
    with tempfile.TemporaryDirectory() as folder:
        copy_checkout(folder)
        changed, text, found = Path(folder, bug.path), (ROOT / bug.path).read_text(encoding="utf-8"), set()
        changed.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        for mesh, paths in runs:
            status, failed = run_tests(folder, mesh, *chosen, *paths)
            if status in (1, 2):  # a test fails, or a file cannot be imported
                changed.write_text(text, encoding="utf-8")
                fails = run_tests(folder, mesh, *chosen, failed)[0]
                return ("error", f"fails without the bug, too: {failed}") if fails else ("caught", failed)
            found.add(status)
    if found <= {0, 5} and 0 in found:
        return "PASSED", ""
    return "error", "no test is selected" if found == {5} else f"pytest returned {sorted(found)}"


def timed_outcome(bug):
    """Returns the :func:`outcome` of a bug and its seconds."""
    start = time.monotonic()
    try:
        verdict, detail = outcome(bug)
    except subprocess.TimeoutExpired:
        verdict, detail = "error", f"pytest takes more than {MOST_SECONDS} seconds"
    return verdict, detail, time.monotonic() - start


def main():
    """Runs the tests on each bug; returns the exit status."""
    parser = argparse.ArgumentParser(description="Runs the tests of `make test` on each bug, which they must catch.")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="only bugs whose title has one of these texts")
    parser.add_argument("--jobs", type=int, default=2, help="the number of bugs that are tested at a time")
    parser.add_argument("--list", action="store_true", help="print the bugs and the functions whose tests would run")
    given = parser.parse_args()
    for bug in BUGS:
        if (count := (ROOT / bug.path).read_text(encoding="utf-8").count(bug.old)) != 1:
            parser.error(f"{bug.title}: `{bug.old}` occurs {count} times in {bug.path}, needs once")
    bugs = [bug for bug in BUGS if given.only is None or any(word in bug.title for word in given.only)]
    if given.list:
        print(*(f"{bug.title} ({bug.path}): {' '.join(functions_of(bug))}" for bug in bugs), sep="\n")
        return 0
    start, caught = time.monotonic(), 0
    with ThreadPoolExecutor(given.jobs) as pool:
        runs = {pool.submit(timed_outcome, bug): bug for bug in bugs}
        for run in as_completed(runs):
            verdict, detail, seconds = run.result()
            caught += verdict == "caught"
            print(f"{verdict:<6} {seconds:4.0f} s  {runs[run].title}  {detail}".rstrip(), flush=True)
    print(f"caught {caught} of {len(bugs)} in {(time.monotonic() - start) / 60:.0f} minutes")
    return int(caught < len(bugs))


if __name__ == "__main__":
    sys.exit(main())

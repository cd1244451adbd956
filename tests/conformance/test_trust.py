"""What a candidate does beside answering is reported, not suffered."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import ml_dtypes
import numpy as np
import pytest
from marks import thorough

import attnpool_ref as ref
from attnpool_ref import conformance
from attnpool_ref.conformance.checks import agreement
from attnpool_ref.conformance.running import rows

NARROW = ("bfloat16", "float16")
FEW = {"only": ("mean_pooling",), "dtypes": ("float32",), "shapes": ("no batch",), "long": False}


def row_of(function, **options):
    return conformance.judge(function, **(FEW | options)).rows[0]


def raising(error):
    def pool(x, mask=None):
        raise error

    return pool


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (RuntimeError("no"), "raises RuntimeError: no"),
        (NotImplementedError("later"), "raises NotImplementedError: later"),
        (SystemExit(0), "raises SystemExit: 0"),
        (GeneratorExit(), "raises GeneratorExit"),
    ],
)
def test_whatever_is_raised_is_the_finding(error, text):
    row = row_of(raising(error))
    (kept,) = [kept for kept in row.broken if not kept.follows_from]
    assert kept.guarantee == "an answer" and kept.failures[0].message == text


@pytest.mark.parametrize("answer", [None, "text", {}, [], object(), [None, 3], np.nan, np.array(["a"]), lambda: 0])
def test_garbage_is_a_failure_and_nothing_breaks_down(answer):
    assert row_of(lambda x, mask=None: answer).status == "fail"


def test_nan_is_a_failure():
    row = row_of(lambda x, mask=None: np.nan * ref.mean_pooling(x, mask))
    assert row.guarantees["values"].status == "broken" and "nan" in row.guarantees["values"].failures[0].message


def test_changed_inputs_are_told():
    def pool(x, mask=None):
        result = ref.mean_pooling(x, mask)
        x += 1
        return result

    assert next(k.guarantee for k in row_of(pool).broken if not k.follows_from) == "inputs unchanged"


def test_another_answer_at_the_second_call_is_told():
    calls = []

    def pool(x, mask=None):
        calls.append(1)
        result = ref.mean_pooling(x, mask)
        return np.nextafter(result, np.float32(np.inf)) if len(calls) % 2 else result

    kept = row_of(pool).guarantees["the same answer twice"]
    assert kept.status == "broken" and kept.failures[0].message.startswith("the result changes from")


def test_results_that_differ_between_equal_calls_are_the_only_cause():
    rng = np.random.default_rng(0)

    def dropped(x, mask=None):
        return ref.mean_pooling((x * (rng.random(x.shape) < 0.9)).astype(x.dtype), mask)

    (cause,) = conformance.judge(dropped, **FEW).rows[0].sentences
    assert cause.startswith("random: equal calls have different results; call .eval()")


@pytest.mark.parametrize(("other", "guarantee"), [(None, "an answer"), (np.float32(1), "shape")])
def test_more_than_one_result_is_told_with_what_to_write(other, guarantee):
    def several(x, mask=None):
        return ref.mean_pooling(x, mask), other

    (row,) = conformance.judge(several, **FEW).rows
    (kept,) = row.accused
    words = "2 results, needs 1; judge one of them (--result 0), or give the name of the option"
    assert kept.guarantee == guarantee and words in kept.smallest.message
    assert not any("zip()" in note for note in row.notes)


def test_numbers_drawn_from_the_global_state_are_told():
    def pool(x, mask=None):
        np.random.rand()
        return ref.mean_pooling(x, mask)

    row = row_of(pool)
    assert [k.guarantee for k in row.broken] == ["random state untouched"]
    assert row_of(ref.mean_pooling).guarantees["random state untouched"].status == "held"


def test_what_is_printed_and_warned_of_is_noted_and_not_shown(capsys):
    def pool(x, mask=None):
        print("inside", file=sys.stderr if x.ndim == 2 else sys.stdout)
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.warn("careful", UserWarning, stacklevel=1)
        return ref.mean_pooling(x, mask)

    row = row_of(pool)
    assert row.status == "pass"
    assert row.notes == ["prints: inside", "warns: UserWarning: careful"]
    assert capsys.readouterr() == ("", "")
    print("shown")
    assert capsys.readouterr().out == "shown\n"


def test_the_arithmetic_of_the_judge_warns_of_nothing():
    def pool(x, mask=None):
        return ref.mean_pooling(x, mask) * x.dtype.type(1e300)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        row = row_of(pool, dtypes=("float64",))
    assert row.status == "fail" and [str(warning.message) for warning in warned] == []


def test_ctrl_c_in_a_call_ends_the_judging_with_what_was_judged():
    def pool(x, mask=None):
        if x.ndim == 2:
            raise KeyboardInterrupt
        return ref.mean_pooling(x, mask)

    both = {"mean_pooling": pool, "max_pooling": ref.max_pooling}
    report = conformance.judge(both, **FEW | {"only": tuple(both)})
    assert report.interrupted and report.verdict == "partial"
    assert [row.partial for row in report.rows] == [["stopped by Ctrl-C"]] * 2
    assert report.rows[0].guarantees["values under masks"].status == "held" and not report.rows[1].cases
    with pytest.raises(KeyboardInterrupt):
        conformance.check(pool, "mean_pooling")


def test_the_same_seed_draws_the_same_and_another_one_other_cases():
    def seen(**options):
        arrays = []

        def pool(x, mask=None):
            arrays.append(x.tobytes())
            return ref.mean_pooling(x, mask)

        row_of(pool, laws=False, **options)
        return set(arrays)

    assert seen() == seen() and seen(seed=1) == seen(seed="1")
    assert not (seen() & seen(seed=1)) - {b""}


@pytest.mark.parametrize("error", [RuntimeError, TypeError, KeyError])
def test_a_dtype_that_is_refused_in_any_words_is_not_asked(error):
    def pool(x, mask=None):
        if x.dtype.name in NARROW:
            raise error(f"not implemented for {x.dtype.name}")
        return ref.mean_pooling(x, mask)

    row = row_of(pool, dtypes=conformance.DTYPES)
    assert row.status == "pass" and all(row.cells[name].forward is None for name in NARROW)
    why = {name: f"it refuses {name} ({error.__name__}: {error(f'not implemented for {name}')})" for name in NARROW}
    assert {u.what: u.why for u in row.unasked} == why | {"`lengths`": "it has no such argument"}


def test_integers_may_be_refused():
    def pool(x, mask=None):
        if x.dtype.kind == "i":
            raise TypeError("needs floats")
        return ref.mean_pooling(x, mask)

    assert not row_of(pool, dtypes=("float64",)).broken


def test_what_a_narrow_dtype_breaks_is_a_failure():
    def pool(x, mask=None):
        if x.dtype.name == "bfloat16":
            raise IndexError("out of range")
        return ref.mean_pooling(x, mask)

    assert row_of(pool, dtypes=("float32", "bfloat16")).status == "fail"


def test_a_wrong_dtype_does_not_hide_right_values():
    row = row_of(lambda x, mask=None: ref.mean_pooling(x, mask).astype(np.float64))
    assert [k.guarantee for k in row.broken if not k.follows_from] == ["dtype"]
    assert row.guarantees["values"].status == row.guarantees["values under masks"].status == "held"


SLEEPER = """
import os, time
import attnpool_ref
def mean_pooling(x, mask=None):
    return attnpool_ref.mean_pooling(x, mask)
def max_pooling(x, mask=None):
    if x.dtype == "float32":
        return attnpool_ref.max_pooling(x, mask)
    os.write(2, b"asleep %d \\n" % os.getpid())
    time.sleep(120)
"""


HEARING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # what a shell starts in the background ignores it
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


@contextlib.contextmanager
def asleep(folder, jobs):
    """Runs the command until it has judged one of two functions and the other one sleeps; yields it and the sleeper."""
    (folder / "sleeper_of_a_test.py").write_text(SLEEPER)
    words = ["check", "sleeper_of_a_test", "--quick", "--only", "mean_pooling", "--only", "max_pooling"]
    words += ["--jobs", str(jobs)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", HEARING, "-m", "attnpool_ref", *words]
    with subprocess.Popen(command, cwd=folder, env=environment, start_new_session=True, **pipes) as process:
        said = ""  # two processes write: a line of one may be inside a line of the other
        while not ("asleep" in said and "mean_pooling bfloat16" in said):
            line = process.stderr.readline()
            assert line, said
            said += line
        time.sleep(1)  # the verdict of a function comes shortly after its last step
        yield process, int(re.search(r"asleep (\d+) ", said)[1])


@pytest.mark.parametrize("jobs", [*thorough([1]), 2])
def test_ctrl_c_gives_what_was_judged(tmp_path, jobs):
    with asleep(tmp_path, jobs) as (process, sleeper):
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        shown, errors = process.communicate(timeout=60)  # the sleeper would sleep on
    with pytest.raises(ProcessLookupError):
        os.kill(sleeper, 0)
    assert sleeper != process.pid
    assert "Traceback" not in errors
    assert process.returncode == 130
    assert "Stopped by Ctrl-C" in shown
    assert "2 functions: 1 passed, 1 partial" in shown


def test_a_killed_command_leaves_no_process_behind(tmp_path):
    with asleep(tmp_path, 1) as (process, _):
        process.kill()
        process.communicate(timeout=60)  # until the sleeper, which has the same standard error, has ended


def test_an_adapter_forgets_after_some_rows(monkeypatch):
    """A full check of JAX functions compiles more programs than a process can hold."""
    monkeypatch.setattr(rows, "BATCH", 2)
    forgotten = []

    class Arrays(conformance.NumpyArrays):
        def forget(self):
            forgotten.append(1)

    few = {"dtypes": ("float32",), "shapes": (), "laws": False, "partial": False, "long": False}
    report = conformance.judge(ref, only=("mean_pooling", "max_pooling", "sum_pooling"), arrays=Arrays(), **few)
    assert report.passed and forgotten == [1]


def test_one_nan_is_as_good_as_another_and_a_zero_is_not():
    nan, other = np.array([0x7FC00000, 0xFFC00001], np.uint32).view(np.float32)[:, None]
    zero = np.zeros(1, ml_dtypes.bfloat16)
    assert nan.tobytes() != other.tobytes() and agreement.same_bits(nan, other)
    assert not agreement.same_bits(nan, np.zeros(1, np.float32)) and not agreement.same_bits(zero, -zero)

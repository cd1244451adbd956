"""Programs that the judge calls in lines of JSON: what passes, and what it says of programs that break the protocol."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command import python, run

from attnpool_ref.conformance import Candidate, judge
from attnpool_ref.conformance.candidates.adapters.program_arrays import ProgramArrays, ProtocolError, decoded, encoded
from attnpool_ref.conformance.candidates.program import Program, ProgramError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "support" / "program_of_a_test.py"
QUICK = {"dtypes": ("float32",), "shapes": (), "long": False, "partial": False, "laws": False, "options": False}
X = {"x": np.array([[[1.5, -2], [3, 0.25]]], np.float32), "mask": np.array([[True, False]])}


def command_of(way=""):
    return shlex.join([sys.executable, str(PROGRAM), *([way] if way else [])])


def judged(way="", **options):
    program = Program(command_of(way))
    form = options.pop("mask_form", program.mask_form)
    candidate = Candidate(program.callables(form), arrays=ProgramArrays(program), mask_form=form, **options)
    (row,) = judge(candidate, only=("mean_pooling",), **QUICK).rows
    return row


@pytest.mark.parametrize("way", ["", "lengths", "base64", "several dtypes"])
def test_a_right_program_passes(way):
    row = judged(way)
    assert row.status == "pass", (row.partial, row.failures)
    assert row.guarantees["values under masks"].status == "held"


def test_a_program_may_have_names_of_its_own():
    row = judged("own names", arguments={"tokens": "x", "is_real": "mask"})
    assert row.status == "pass", (row.partial, row.failures)
    assert judged("own names").causes == [] and "it takes no `x`" in judged("own names").unasked[0].why


def test_what_only_a_call_in_this_process_can_break_is_not_judged():
    row = judged()
    for name in ("inputs unchanged", "random state untouched", "no warnings"):
        assert (row.guarantees[name].status, "another process" in row.guarantees[name].why) == ("n/a", True)
    assert row.guarantees["the same answer twice"].status == "held"


ANSWERS = {
    "answers no JSON": 'answers "the mean is 3", which is no JSON',
    "answers another id": 'answers {"id": 2, ',
    "leaves a number out": "`data` has 1 numbers, and shape [1, 2] needs 2 in one flat list",
    "answers an unknown dtype": 'a result has the dtype "f32", needs one of bool, int32',
    "answers null": "`data` has null, needs numbers, 'NaN', 'Infinity', '-Infinity' (JSON.stringify writes NaN as null)",
    "answers a nested list": "`data` has 1 numbers, and shape [1, 2] needs 2 in one flat list",
    "answers no base64": '`base64` is "?", which cannot be decoded',
    "answers few bytes": "`base64` has 3 bytes, and shape [1, 2] of float32 needs 8",
    "answers a negative size": "a result has the shape [-1], needs a list of integers from 0 on",
    "answers an array": "needs `results`, a list of arrays, or `error`",
    "answers numbers alone": "a result is [1.5, -2.0], needs an object with `shape`, `dtype`, and `data` or `base64`",
    "floods lines": "writes lines that answer no call: ",
    "floods a line": 'writes a line of more than 67108864 bytes: "xxxx',
}


@pytest.mark.parametrize("way", ANSWERS)
def test_an_answer_that_breaks_the_protocol_gets_a_sentence(way):
    function = Program(command_of(way)).callables("boolean")["mean_pooling"]
    with pytest.raises(ProtocolError, match=re.escape(ANSWERS[way])):
        function(**X)
        time.sleep(0.5)  # for a flood to arrive
        function(**X)


ENDS = {
    "dies": "the program ended with status 3; its standard error: a line of standard error",
    "aborts": "the program was killed by signal 6 (Aborted)",
    "answers an error": "no mask today",
}


@pytest.mark.parametrize("way", ENDS)
def test_a_program_that_dies_is_started_again(way):
    function = Program(command_of(way)).callables("boolean")["mean_pooling"]
    for _ in range(2):
        with pytest.raises(ProgramError, match=re.escape(ENDS[way])):
            function(**X)


def test_a_crash_is_the_finding_and_its_case_is_small():
    row = judged("dies")
    (failure,) = row.guarantees["an answer"].failures
    assert failure.message.startswith(
        "raises ProgramError: the program ended with status 3; its standard error: a line"
    )
    assert row.status == "fail" and failure.size <= 2 and failure.prompt == "shell"


def test_a_result_of_another_shape_breaks_the_guarantee_of_shapes():
    row = judged("adds an axis")
    assert "has shape (1, 1), needs (1,)" in row.guarantees["shape"].smallest.message


GREETINGS = {
    "a list": 'its first answer is [], needs `functions` and `dtypes`, as in {"functions": ["mean_pooling"]',
    "no dtypes": "needs `functions` and `dtypes`",
    "no functions": "`functions` is [], needs a list of names",
    "an unknown function": '`functions` has "mean_poling", which cannot be judged; did you mean mean_pooling',
    "a function of states": '`functions` has "mean_state"',
    "parameters that are no list": '`functions` has "x" for mean_pooling, needs a list of its arguments\' names',
    "an unknown dtype": '`dtypes` is ["f32"], needs one or more of float16, bfloat16, float32, float64',
    "an unknown encoding": '`encodings` is ["hex"], needs one or more of base64, data',
    "an unknown form of masks": '`mask` is ["prefix"], needs one or more of boolean, integer, additive, lengths, segments',
    "dies at the start": "the program ended with status 1; its standard error: no such model",
}


@pytest.mark.parametrize("way", GREETINGS)
def test_a_first_answer_that_is_not_valid_gets_a_sentence(way):
    with pytest.raises((ProtocolError, ProgramError), match=re.escape(GREETINGS[way])):
        Program(command_of(way))


def test_a_program_that_does_not_start_or_answer_gets_a_sentence():
    with pytest.raises(ProgramError, match=r"'./no-such-port' cannot be started: .*No such file"):
        Program("./no-such-port")
    with pytest.raises(ProgramError, match=r"has not answered \{\"attnpool\": 1\} within 0.2 s; does it end its line"):
        Program(command_of("hangs at the start"), limit=0.2)


def test_arrays_survive_both_encodings():
    for dtype in ("float32", "float64", "float16", "int32", "bool"):
        array = np.array([[0, 1, 2.0**-20], [3, -1.5, 7]]).astype(dtype)
        for encoding in ("data", "base64"):
            again = decoded(json.loads(json.dumps(encoded(array, encoding))))
            assert again.dtype == array.dtype and np.array_equal(again, array)
    odd = np.array([np.nan, np.inf, -np.inf])
    assert np.array_equal(decoded(json.loads(json.dumps(encoded(odd)))), odd, equal_nan=True)
    assert "NaN" not in json.dumps(encoded(odd, "base64"))


# The command


def checked(*words):
    return python("-m", "attnpool_ref", "check", *words)


def test_the_command_starts_a_program_and_prints_the_line_to_paste(tmp_path):
    words = ("--as", "mean_pooling", "--quick", "--dtype", "float32", "--json", str(tmp_path / "report.json"))
    result = checked("--command", command_of("adds an axis"), *words)
    assert result.returncode == 1, result.stderr
    pasted = result.stdout.partition("At a shell prompt:\n\n")[2].partition("\n# needed: ")
    lines = subprocess.run(pasted[0], shell=True, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [json.loads(line).get("id") for line in lines] == [None, 1]
    needed = json.loads(pasted[2].partition("\n")[0])["results"][0]
    assert json.loads(lines[1])["results"][0]["data"] == pytest.approx(needed["data"])
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["candidate"] == command_of("adds an axis") and report["rows"][0]["adapter"] == "program"


def test_a_program_that_hangs_ends_the_judging_of_its_function():
    result = checked("--command", command_of("hangs"), "--time-limit", "1", "--quick", "--dtype", "float32")
    assert result.returncode == 1
    assert "no answer within 1 s" in result.stdout


REFUSED = {
    "does not start": (["--command", "./no-such-port"], "./no-such-port: './no-such-port' cannot be started"),
    "lacks the function": (
        ["--command", command_of(), "--as", "max_pooling"],
        "has no function max_pooling, only `mean_pooling`",
    ),
    "beside another candidate": (["some.module", "--command", "./port"], "is judged in place of CANDIDATE"),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_cannot_be_judged_is_wrong_use(way):
    words, said = REFUSED[way]
    result = checked(*words)
    assert (result.returncode, said in result.stderr) == (2, True), result.stderr


# The ports of examples/ports

MISTAKES = {
    "c": ("mean_pooling", "takes the mean over the padded length"),
    "js": ("last_pooling", "takes the token at index (number of real tokens - 1)"),
    "rs": ("mean_pooling", "multiplies padding by 0, but 0 times NaN is NaN"),
}
COMPILERS = {"c": ["cc", "-O2"], "rs": ["rustc", "--edition", "2021", "-O"], "js": ["node"]}


@pytest.fixture(params=COMPILERS)
def port(request, tmp_path):
    """(the suffix of a port's file, its command); skipped where its compiler is not installed."""
    tool, *options = COMPILERS[request.param]
    source = ROOT / "examples" / "ports" / f"port.{request.param}"
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed, so examples/ports/{source.name} was not run")
    if tool == "node":
        return request.param, shlex.join(["node", str(source)])
    subprocess.run([tool, *options, "-o", tmp_path / "port", source], check=True)
    return request.param, shlex.quote(str(tmp_path / "port"))


def test_a_port_passes_and_its_mistake_is_named(port):
    suffix, command = port
    right = run("check", "--command", command, "--jobs", "0")
    assert right.exit_code == 0, right.output
    assert "2 functions: 2 passed" in right.output
    wrong = run("check", "--command", f"{command} --mistake", "--quick", "--jobs", "0")
    name, mistake = MISTAKES[suffix]
    assert wrong.exit_code == 1
    assert f"{name}: {mistake}" in wrong.output
    assert "1 passed, 1 failed" in wrong.output

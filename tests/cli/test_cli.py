"""The command line: what it shows, judges, refuses and writes, and what it leaves unimported."""

import json
import re
import sys

import pytest
from command import FAILED, MISSING, PARTIAL, PASSED, SNIPPET, python, report_of, run

import attnpool_ref
from attnpool_ref import __main__, conformance, table
from attnpool_ref.cli import show
from attnpool_ref.conformance import Cell, RowReport

TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": ""}
COLOUR = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|9[0-7]|38;[\d;]+)m")


@pytest.fixture
def here(current_folder):
    """A current directory with a few modules in it."""
    (current_folder / "candidate_of_a_test.py").write_text(
        "import numpy as np\n"
        "class Inside:\n"
        "    mean_pooling = None\n"
        "def pool(x, mask=None):\n"
        "    return np.mean(x, -2)\n"
        "mean_pooling = pool\n"
    )
    (current_folder / "broken_of_a_test.py").write_text("raise RuntimeError('first line\\nsecond line')\n")
    for name in ("my-pool.py", "json.py"):
        (current_folder / name).write_text("")
    (current_folder / "needy_of_a_test.py").write_text("import a_package_that_is_not_there\n")
    yield current_folder
    sys.modules.pop("candidate_of_a_test", None)


@pytest.mark.parametrize("arguments", ["list", "show masked_softmax", "check --help"])
def test_text_is_shown_without_importing_jax(arguments):
    code = (
        "import sys; from attnpool_ref.__main__ import main; sys.argv[1:] = sys.argv[1].split()\n"
        "try: main()\n"
        "finally: print('jax' in sys.modules, 'attnpool_flax' in sys.modules, 'rich' in sys.modules)"
    )
    result = python("-c", code, arguments)
    assert result.returncode == 0
    assert result.stdout.splitlines()[-1].startswith("False False")


def test_the_module_is_the_command():
    result = python("-m", "attnpool_ref", "--version")
    assert result.stdout == f"attnpool, version {attnpool_ref.__version__}\n"


def test_without_its_extra_the_command_says_in_one_line_what_to_install(without, capsys):
    for name, said in (("rich", "rich is"), ("click", "click and rich are")):
        without(name)
        with pytest.raises(SystemExit) as end:
            __main__.main()
        assert end.value.code == 2
        assert capsys.readouterr().err == f"attnpool: {said} not installed; in a clone: pip install -e '.[cli]'\n"


@pytest.mark.parametrize("words", ["gem", "last token", "MaxSim", "Set Transformer"])
def test_find_needs_no_extra_and_prints_the_same_text(words, capsys, monkeypatch):
    for columns in (60, 160):
        with_rich = run("find", words, columns=columns)
        with monkeypatch.context() as context:
            context.setitem(sys.modules, "rich", None)
            context.setitem(sys.modules, "click", None)
            context.setenv("COLUMNS", str(columns))
            context.setattr(sys, "argv", ["attnpool", "find", *words.split()])
            with pytest.raises(SystemExit) as end:
                __main__.main()
        plain = capsys.readouterr().out
        assert (end.value.code, plain.split()) == (0, with_rich.output.split())
        assert all(len(line) <= columns for line in plain.splitlines())
    assert plain.splitlines() == [line.rstrip() for line in with_rich.output.splitlines()]


def test_find_without_extras_imports_neither():
    code = (
        "import sys; sys.modules |= dict.fromkeys(('click', 'rich', 'ml_dtypes')); sys.argv[1:] = ['find', 'no-such']\n"
        "from attnpool_ref.__main__ import main; main()"
    )
    result = python("-c", code)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Nothing is called 'no-such' here.")


def test_the_list_has_every_row_with_its_source():
    for columns in (60, 200):
        words = set(re.findall(r"\w+", run("list", columns=columns).output))
        for row in table.BY_NAME.values():
            assert {row.name, row.source, row.module} - {""} <= words


def test_the_list_can_be_narrowed_to_families_and_words():
    def names(*arguments):
        return [name for name in re.findall(r"\w+", run("list", *arguments).output) if name in table.BY_NAME]

    of_two = [row.name for row in table.BY_NAME.values() if row.family in ("masks", "scores")]
    assert names("--family", "masks", "--family", "scores") == of_two
    tanh = ["additive_score", "tanh_sum_score", "additive_attention", "tanh_sum_attention"]
    assert names("--search", "BAHDANAU") == tanh
    assert names("--search", "multihead attention-pool", "--family", "pooling") == ["multi_head_attention_pooling"]
    assert names("--search", "luong", "--search", "dot_score") == ["dot_score"]
    nothing = run("list", "--search", "maen-poling")
    assert (nothing.exit_code, nothing.stdout) == (1, "")
    assert "Near it: mean_pooling, " in nothing.stderr


def test_every_function_is_shown_with_both_texts():
    for row in table.BY_NAME.values():
        for package in ("attnpool_ref", "attnpool_flax"):
            source = show.read_source(package, row)
            derived = bool(row.packed or row.state) and f"def {row.name}(" not in source.text
            shown = table.get(row.state or row.name.removeprefix("segment_")) if derived else row
            assert source.place.startswith(f"{package}/{shown.family}")
            text = source.text.removeprefix(f"# {row.name} is derived from {shown.name}:\n\n")
            assert (text != source.text) == derived
            assert re.match(rf"@\w+(\(.*\))?\ndef {shown.name}\(", text)
            assert source.signature.startswith(f"{row.name}(")
    for name in ("cross_attention_pooling", *sorted(set(attnpool_ref.__all__) - table.BY_NAME.keys() - {"formats"})):
        output = run("show", name, columns=1000).output
        assert output.index("definition, NumPy: attnpool_ref/") < output.index("implementation, JAX: attnpool_flax/")
        assert f"signature  {name}(" in output


def test_a_module_shows_its_function_and_a_name_of_another_library_what_is_found():
    output = run("show", "AttentionPool").output
    assert output.startswith("AttentionPool is a module of attnpool_flax. Its function:\n\nattention_pooling  ")
    for name in ("GeM", "MAPHead", "map_head"):
        assert run("show", name).output == run("find", name).output != ""


def test_no_color_is_respected():
    assert COLOUR.search(run("show", "mean_pooling", env=TERMINAL).output)
    assert not COLOUR.search(run("show", "mean_pooling", env=TERMINAL | {"NO_COLOR": "1"}).output)
    assert "\x1b" not in run("show", "mean_pooling").output


def test_all_layouts_of_a_row_stand_in_one_table():
    words = ("--only", "max_pooling", "--layouts", "--dtype", "float32", "--quick", "--jobs", "0")
    shown = run("check", "attnpool_ref", *words).output
    for name in ("max_pooling", "segment_max_pooling", "max_state"):
        assert re.search(rf"^{name} .* pass", shown, re.MULTILINE), name
    refused = run("check", "attnpool_ref", "--layouts")
    assert refused.exit_code == 2
    assert "--layouts needs --only" in refused.output


@pytest.mark.parametrize("arguments", [["show", "mean_poling"], ["check", "--only", "mean_poling"]])
def test_an_unknown_name_is_refused_in_one_line_with_the_nearest(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert re.fullmatch(r"Error: no function is called 'mean_poling'; did you mean mean_pooling.*\n", result.output)


def cells(output, name):
    (line,) = (line for line in output.splitlines() if line.startswith(f"{name} "))
    return [cell.strip() for cell in line.split("│")]


def test_the_report_shows_errors_beside_what_is_allowed(judged):
    judged(report_of(PASSED))
    output = run("check").output
    assert cells(output, "mean_pooling") == ["mean_pooling", "0.4/18  3.2/61", "n/a", "2/2", "pass"]
    assert "cpu (test); numpy 9.8.7" in output
    assert "0.4/18  3.2/61" in run("check", columns=80).output


def test_what_a_candidate_cannot_supply_is_never_a_pass(judged):
    judged(report_of(RowReport("mean_pooling", "n/a", cells={"float32": Cell()})))
    result = run("check", "attnpool_ref")
    assert cells(result.stdout, "mean_pooling") == ["mean_pooling", "n/a", "n/a", "n/a"]
    assert "Nothing passed" in result.stdout
    assert result.exit_code == 1


def test_broken_guarantees_are_named_and_missing_rows_reported(judged):
    judged(report_of(PASSED, FAILED, MISSING))
    output = run("check").output
    assert cells(output, "max_pooling") == ["max_pooling", "wrong  n/a", "n/a", "1/3", "fail"]
    assert (
        "\nmax_pooling\n  broken: NaN in padding\n      float16: got [..., 1]\n      what follows from it: inf in padding\n\n"
    ) in output
    assert cells(output, "dot_score")[-1].endswith("missing")
    assert "3 functions: 1 passed, 1 failed, 1 missing." in output
    report = report_of(PASSED)
    report.waivers = report.idle_waivers = {"values": "it holds"}
    judged(report)
    assert "1 function: 1 passed, but 1 idle waiver, so failed." in run("check", "attnpool_ref").stdout


@pytest.mark.parametrize(
    ("rows", "status"), [([PASSED], 0), ([PASSED, MISSING], 0), ([PASSED, FAILED], 1), ([PARTIAL], 3)]
)
def test_the_exit_status_says_the_verdict(judged, rows, status):
    judged(report_of(*rows))
    assert run("check").exit_code == status


@pytest.mark.parametrize("options", [{"columns": 40}, {"columns": 200}, {"env": TERMINAL}], ids=str)
def test_the_smallest_failing_case_can_be_pasted(judged, options):
    judged(report_of(PASSED, FAILED))
    output = run("check", **options).output
    assert f"\n\n{SNIPPET}\n" in output
    assert bool(COLOUR.search(output)) == ("env" in options)


def test_progress_without_a_terminal_is_plain_lines_beside_the_report(judged):
    judged(report_of(PASSED))
    result = run("check")
    first, second = result.stderr.splitlines()
    assert first == "[0/2] mean_pooling float32"
    assert second == "[1/2] max_pooling float32"
    assert "[0/2]" not in result.stdout


def test_json_has_the_schema_version_and_no_number_that_json_lacks(judged, tmp_path):
    judged(report_of(PASSED, FAILED))
    file = tmp_path / "report.json"
    run("check", "--json", str(file))

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    written = json.loads(file.read_text(), parse_constant=refuse)
    assert written["schema_version"] == 1
    assert written["passed"] is False
    assert [row["status"] for row in written["rows"]] == ["pass", "fail"]
    assert written["rows"][1]["cells"]["float32"]["forward"]["error"] == "inf"


def test_the_judge_is_asked_what_the_options_say(judged, here):
    asked = judged(report_of(PASSED))
    run("check")
    assert (asked["name"], asked["only"], asked["strict"]) == ("attnpool_flax", (), True)
    assert asked["candidate"].target.__name__ == "attnpool_flax"
    assert asked["dtypes"] == conformance.DTYPES
    run("check", "attnpool_ref", "--only", "dot_score", "--only", "attend", "--dtype", "float16")
    assert (asked["only"], asked["strict"], asked["dtypes"]) == (("dot_score", "attend"), False, ("float16",))
    run("check", "candidate_of_a_test:pool", "--as", "max_pooling")
    assert asked["only"] == ("max_pooling",)
    assert asked["candidate"].target.__name__ == "pool"
    run("check", "candidate_of_a_test:mean_pooling")
    assert asked["only"] == ("mean_pooling",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_module_at_all"], "there is no module 'no_module_at_all', here or among what is installed"),
        (["no_module.at_all"], "there is no module 'no_module.at_all', here or among what is installed"),
        (["needy_of_a_test"], "needy_of_a_test needs 'a_package_that_is_not_there', which is not installed"),
        (["broken_of_a_test"], "broken_of_a_test cannot be imported (RuntimeError: first line)"),
        (["candidate_of_a_test:nothing"], "candidate_of_a_test has no function 'nothing'"),
        (["candidate_of_a_test:Inside.mean_pooling"], "candidate_of_a_test has no function 'Inside.mean_pooling'"),
        (
            ["candidate_of_a_test:pool"],
            "'pool' is no function of attnpool; say which one it is: --as NAME (see attnpool list)",
        ),
        (["candidate_of_a_test", "--as", "attend"], "--as attend needs one function: candidate_of_a_test:function"),
        (["--json", "nowhere/report.json"], "there is no folder for nowhere/report.json"),
        (["--json", "-", "--junit", "-"], "standard output holds one report, not those of --json and --junit"),
        (["./nothing.py:pool"], "there is no file ./nothing.py"),
        (["./my-pool.py:pool"], "./my-pool.py has no name that Python can import; call it my_pool.py"),
        (["./json.py:pool"], "./json.py has the name of a module that is imported already; call it otherwise"),
    ],
)
def test_a_candidate_that_cannot_be_judged_is_refused_in_one_line(here, arguments, message):
    result = run("check", *arguments, "--jobs", "0")
    assert (result.exit_code, result.output) == (2, f"Error: {message}\n")


def test_a_candidate_that_lacks_jax_says_which_extra():
    code = "import sys; sys.modules['jax'] = None; from attnpool_ref.__main__ import main; sys.argv[1:] = ['check', '--jobs', '0']; main()"
    result = python("-c", code)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: jax is not installed; in a clone: pip install -e '.[flax]'\n"


def test_a_wrong_function_of_ones_own_is_judged_for_real(here):
    result = run("check", "candidate_of_a_test:pool", "--as", "mean_pooling", "--dtype", "float64", "--jobs", "0")
    assert result.exit_code == 1
    assert "\nmean_pooling\n  broken: " in result.stdout
    code = result.stdout.partition("At a Python prompt:\n\n")[2].partition("\n\n")[0]
    pasted = python("-c", code)
    assert pasted.returncode == 0, pasted.stderr
    candidate, oracle = re.findall(r"(?:candidate|oracle): (.*)", pasted.stdout)
    assert candidate != oracle


def test_the_oracle_passes_its_own_judge():
    result = run("check", "attnpool_ref", "--only", "mean_pooling", "--dtype", "float64", "--jobs", "0")
    assert result.exit_code == 0, result.output
    assert "1 function: 1 passed. On cpu (NumPy)" in result.stdout

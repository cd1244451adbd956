"""The command line: what it shows, what it refuses, and what it leaves unimported."""

import json
import re
import sys

import pytest
from command import FAILED, MISSING, PARTIAL, PASSED, SNIPPET, python, report_of, run

import attnpool_ref
from attnpool_ref import __main__, cli, conformance, table
from attnpool_ref.cli import check, finding, show, verdicts
from attnpool_ref.conformance import Cell, Measure, RowReport
from attnpool_ref.conformance.report import Failure, Kept

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


# What is imported, and what is not


def test_importing_the_oracle_imports_no_extra():
    code = "import attnpool_ref, attnpool_ref.plot, attnpool_ref.__main__, sys; print(*sys.modules)"
    imported = {name.partition(".")[0] for name in python("-c", code).stdout.split()}
    assert "attnpool_ref" in imported
    assert not imported & {name for names in cli.EXTRAS.values() for name in names}


@pytest.mark.parametrize("arguments", ["list", "find CLS", "show masked_softmax", "--help", "check --help"])
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


def test_a_command_that_left_names_what_to_do_instead():
    result = run("demo", "--out", "x.png")
    assert result.exit_code == 2
    assert result.output == "Error: the demonstration is examples/demo.py of the repository: run `make demo` there\n"


# list and show


def test_the_list_has_every_row_with_its_source():
    output = run("list").output
    for row in table.BY_NAME.values():
        (line,) = (line for line in output.splitlines() if row.name in line.split()[:2])
        assert row.source in line
        assert row.equation[:20] in line
        assert row.weights in output
        assert row.module in output
        assert table.SOURCES[row.source] in output
    assert [
        line.split()[0] for line in output.splitlines() if line.split()[:1] and line.split()[0] in FAMILIES
    ] == FAMILIES


FAMILIES = list(dict.fromkeys(row.family for row in table.BY_NAME.values()))


def test_a_table_that_is_no_terminals_keeps_its_lines(tmp_path, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    with open(tmp_path / "out", "w") as file:
        assert finding.console(file).width == finding.UNBOUNDED


@pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)
def test_every_variant_is_shown_with_both_texts(row):
    for package in ("attnpool_ref", "attnpool_flax"):
        source = show.read_source(package, row)
        derived = bool(row.packed or row.state) and f"def {row.name}(" not in source.text
        shown = table.get(row.state or row.name.removeprefix("segment_")) if derived else row
        assert source.place.startswith(f"{package}/{shown.family}")
        text = source.text.removeprefix(f"# {row.name} is derived from {shown.name}:\n\n")
        assert (text != source.text) == derived
        assert re.match(rf"@\w+(\(.*\))?\ndef {shown.name}\(", text)
        assert source.signature.startswith(f"{row.name}(")
        assert source.summary


def test_one_variant_shows_its_whole_row():
    row = table.get("cross_attention_pooling")
    output = run("show", row.name, columns=1000).output
    for text in (row.equation, row.shapes, row.weights, row.module, table.SOURCES[row.source], "x_mask=None"):
        assert text in output


@pytest.mark.parametrize("name", sorted(set(attnpool_ref.__all__) - table.BY_NAME.keys() - {"formats"}))
def test_a_function_without_a_row_is_shown_with_both_texts(name):
    output = run("show", name, columns=1000).output
    assert "definition, NumPy: attnpool_ref/" in output and "implementation, JAX: attnpool_flax/" in output
    assert f"signature  {name}(" in output


def test_a_module_shows_its_function_and_a_name_of_another_library_what_is_found():
    output = run("show", "AttentionPool").output
    assert output.startswith("AttentionPool is a module of attnpool_flax. Its function:\n\nattention_pooling  ")
    for name in ("GeM", "MAPHead", "map_head"):
        assert run("show", name).output == run("find", name).output != ""


def test_the_definition_stands_above_the_implementation_and_no_line_is_wider_than_the_terminal():
    lines = run("show", "mean_pooling", columns=70).output.splitlines()
    assert max(map(len, lines)) <= 70
    oracle, twin = (
        next(i for i, line in enumerate(lines) if kind in line) for kind in ("definition,", "implementation,")
    )
    assert oracle < twin


def test_what_a_function_calls_in_its_file_stands_below_it_and_other_rows_do_not():
    text = show.read_source("attnpool_ref", table.get("attention_pooling")).text
    assert "layer_norm.body(query, " in text, "it calls another row"
    assert re.findall(r"^def (\w+)", text, re.MULTILINE) == ["attention_pooling", "attention_scores"]


def test_long_docstrings_are_cut_and_the_code_is_whole():
    text = show.read_source("attnpool_ref", table.get("l2_normalize")).text
    assert text.splitlines()[2:] == [
        '    r"""Divides vectors by their Euclidean norm; the zero vector stays 0."""',
        "    scaled = x / power_of_two(np.max(np.abs(x), axis, keepdims=True, initial=0))  # squares of 1e-300 would underflow",
        "    norm = np.sqrt(np.sum(scaled**2, axis, keepdims=True))",
        "    return scaled / np.where(norm == 0, 1, norm)",
    ]


def test_code_is_coloured_and_no_color_is_respected():
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": ""}
    assert COLOUR.search(run("show", "mean_pooling", env=terminal).output)
    assert not COLOUR.search(run("show", "mean_pooling", env=terminal | {"NO_COLOR": "1"}).output)
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


# check


def test_the_report_shows_errors_beside_what_is_allowed(judged):
    judged(report_of(PASSED))
    output = run("check").output
    (line,) = (line for line in output.splitlines() if line.startswith("mean_pooling"))
    assert [cell.strip() for cell in line.split("│")] == ["mean_pooling", "0.4/18  3.2/61", "n/a", "2/2", "pass"]
    assert "cpu (test); numpy 9.8.7" in output


def test_a_narrow_terminal_gets_a_line_for_each_dtype(judged):
    judged(report_of(PASSED))
    lines = run("check", columns=80).output.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("mean_pooling"))
    first, second = ([cell.strip() for cell in line.split("│")] for line in lines[place : place + 2])
    assert first == ["mean_pooling", "float32", "0.4/18  3.2/61", "2/2", "pass"]
    assert second[:3] == ["", "bfloat16", "n/a"]


def test_what_to_do_next_is_printed(judged):
    judged(report_of(RowReport("mean_pooling", "missing"), RowReport("max_pooling", "missing")))
    (line,) = run("check", "attnpool_ref").stdout.splitlines()
    assert line.startswith("No function of ") and ":FUNCTION --as NAME (see attnpool find)." in line
    report = report_of(PASSED)
    report.waivers = report.idle_waivers = {"values": "it holds"}
    judged(report)
    assert "1 row: 1 passed, but 1 idle waiver, so failed." in run("check", "attnpool_ref").stdout
    kept = Kept("empty rows", "broken", failures=[Failure("mean_pooling", "empty rows", "float32", "is 1", "", 1)])
    failed = RowReport("mean_pooling", "fail", promises={"empty rows": kept})
    judged(report_of(failed))
    assert "differ only in fully masked rows" in run("check", "attnpool_ref").stdout
    assert str(report_of(failed)).endswith(": fail\nmean_pooling: empty rows (float32): is 1")
    assert "no function is called 'abmil'; see `attnpool find abmil`" in run("check", "x:y", "--as", "abmil").output


def test_what_a_candidate_cannot_supply_is_never_a_pass(judged):
    judged(report_of(RowReport("mean_pooling", "n/a", cells={"float32": Cell()})))
    result = run("check", "attnpool_ref")
    (line,) = (line for line in result.stdout.splitlines() if line.startswith("mean_pooling "))
    assert [cell.strip() for cell in line.split("│")] == ["mean_pooling", "n/a", "n/a", "n/a"]
    assert "Nothing passed" in result.stdout
    assert result.exit_code == 1


def test_broken_promises_are_named_and_missing_rows_reported(judged):
    judged(report_of(PASSED, FAILED, MISSING))
    output = run("check").output
    lines = output.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("max_pooling "))
    assert [cell.strip() for cell in lines[place].split("│")] == ["max_pooling", "wrong  n/a", "n/a", "1/3", "fail"]
    assert "NaN in padding" in lines[place + 1]
    assert (
        "\nmax_pooling\n  broken: NaN in padding\n      float16: got [..., 1]\n      what follows from it: inf in padding\n\n"
    ) in output
    assert any(line.startswith("dot_score ") and line.rstrip().endswith("missing") for line in lines)
    assert "3 rows: 1 passed, 1 failed, 1 missing." in output


@pytest.mark.parametrize(
    ("rows", "status"), [([PASSED], 0), ([PASSED, MISSING], 0), ([PASSED, FAILED], 1), ([PARTIAL], 3)]
)
def test_the_exit_status_says_the_verdict(judged, rows, status):
    judged(report_of(*rows))
    assert run("check").exit_code == status


@pytest.mark.parametrize("columns", [40, 200])
def test_the_smallest_failing_case_can_be_pasted(judged, columns):
    judged(report_of(PASSED, FAILED))
    output = run("check", columns=columns).output
    assert f"\n\n{SNIPPET}\n" in output
    said = "The smallest failing case is max_pooling in float16, padding amount. At a Python prompt:"
    assert said in " ".join(output.split())


def test_what_is_beyond_its_limit_is_red():
    assert verdicts._measure(Measure(2.0, 1.0, "")).style == "bold red"
    assert verdicts._measure(Measure(float("nan"), 1.0, "")).style == "bold red"
    assert verdicts._measure(Measure(1.0, 2.0, "")).style == "green"


def test_an_error_that_is_no_number_and_integers_without_one_are_shown_in_words():
    assert [verdicts._measure(Measure(error, 0.0, "")).plain for error in (0.0, float("inf"))] == ["exact", "wrong"]


def test_colour_never_enters_the_pasted_code(judged):
    judged(report_of(FAILED))
    output = run("check", env={"FORCE_COLOR": "1", "TERM": "xterm-256color", "NO_COLOR": ""}).output
    assert COLOUR.search(output)
    assert f"\n\n{SNIPPET}\n" in output


def test_progress_without_a_terminal_is_plain_lines_beside_the_report(judged):
    judged(report_of(PASSED))
    result = run("check")
    first, second = result.stderr.splitlines()
    assert first == "[0/2] mean_pooling float32"
    assert second == "[1/2] max_pooling float32"
    assert "[0/2]" not in result.stdout


def test_progress_on_a_terminal_is_a_bar_that_goes_away(monkeypatch, capfd):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with check.shown_progress() as bar:
        bar(1, 4, "mean_pooling [...]")
    shown = capfd.readouterr().err
    assert "left: " in shown
    assert "mean_pooling [...]" in shown
    assert "1/4" in shown
    assert shown.rstrip().endswith("\x1b[2K"), "the last thing written erases the bar"


def test_json_has_the_schema_version_and_no_number_that_json_lacks(judged, tmp_path):
    judged(report_of(PASSED, FAILED))
    file = tmp_path / "report.json"
    run("check", "--json", str(file))

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    written = json.loads(file.read_text(), parse_constant=refuse)
    assert written["schema_version"] == 3
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
    assert asked["jobs"] == 0
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
            "'pool' is no row of the table; say which one it is: --as NAME (see attnpool list)",
        ),
        (["candidate_of_a_test", "--as", "attend"], "--as attend needs one function: candidate_of_a_test:function"),
        (
            ["candidate_of_a_test:mean_pooling", "--implementation", "einsum"],
            "the function does not take `implementation`",
        ),
        (
            ["candidate_of_a_test", "--implementation", "einsum"],
            "no function of the candidate takes `implementation`",
        ),
        (["--json", "nowhere/report.json"], "there is no folder for nowhere/report.json"),
        (["--json", "-", "--html", "-"], "standard output holds one report, not those of --json and --html"),
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


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.42, "0.4"),
        (9.96, "10"),
        (18.4, "18"),
        (9999.4, "9999"),
        (123456.0, "1e5"),
        (0.012, "1e-2"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_numbers_take_few_characters(value, text):
    assert verdicts._number(value) == text


def test_a_wrong_function_of_ones_own_is_judged_for_real(here):
    result = run("check", "candidate_of_a_test:pool", "--as", "mean_pooling", "--dtype", "float64", "--jobs", "0")
    assert result.exit_code == 1
    assert "\nmean_pooling\n  broken: " in result.stdout
    code = result.stdout.partition("At a Python prompt:\n\n")[2].partition("\n\n")[0]
    pasted = python("-c", code)
    assert pasted.returncode == 0, pasted.stderr
    candidate, oracle = re.findall(r"(?:candidate|oracle): (.*)", pasted.stdout)
    assert candidate != oracle


LEAVES_MOST = """
import numpy as np
def pool(tokens, query, mask):
    print("a long line of " + "words " * 30)
    scores = np.where(mask, (tokens * query[..., None, :]).sum(-1), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights[..., None] * tokens).sum(-2) / weights.sum(-1, keepdims=True)
"""


def test_a_report_has_the_causes_then_what_is_broken_and_counts_the_rest_in_one_line(here):
    (here / "leaves_of_a_test.py").write_text(LEAVES_MOST)
    words = ("check", "leaves_of_a_test:pool", "--as", "attention_pooling", "--mask-required")
    output = run(*words, "--dtype", "float32", columns=80).stdout
    parts = ["attention_pooling: no 1/sqrt(d)", "\n  broken: values under masks\n", "\nThe smallest failing case is "]
    parts += [
        "\nprint('oracle:'",
        "\nVariant ",
        "\n1 row: 1 failed.",
        "\nattention_pooling: took `tokens` as `x`",
        "\nNotes (they do not change the verdict):\n  attention_pooling: prints: a long line of ",
        "\nHeld: ",
    ]
    places = [output.index(part) for part in parts]
    assert places == sorted(places)
    code = output[places[2] : places[4]].splitlines()
    assert max(len(line) for line in output.splitlines() if line not in code) <= 80
    assert "no such argument" not in output and "\n    words " in output
    assert re.fullmatch(
        r"Held: \d+; not judged: \d+; skipped: \d+(; more notes: \d+)?. --all lists them.", output.splitlines()[-1]
    )
    assert not re.search(r"\[[^\[\]]{90,}\]", output.replace(output[places[2] : places[4]], "")), "a long array"
    listed = run(*words, "--dtype", "float32", "--all", columns=80).stdout
    assert listed.count("no such argument") == 1 and "\nHeld: " not in listed
    assert (
        "attention_pooling: held: an answer, " in listed and "n/a, numpy arrays have no gradients: gradient" in listed
    )


@pytest.fixture
def choosy(here):
    """A module whose functions are right only with ``implementation="einsum"``, in the current directory."""
    (here / "choosy_of_a_test.py").write_text(
        "import attnpool_ref\n"
        "def pool(x, mask=None, *, implementation=None):\n"
        "    return attnpool_ref.mean_pooling(x, mask) if implementation == 'einsum' else x\n"
        "mean_pooling = pool\n"
    )
    yield "choosy_of_a_test"
    sys.modules.pop("choosy_of_a_test", None)


@pytest.mark.parametrize("words", [(), (":mean_pooling",), (":pool", "--as", "mean_pooling")], ids=" ".join)
def test_the_implementation_that_is_asked_for_is_judged_in_a_module_and_in_a_function(choosy, words):
    name, *others = words or ("",)
    arguments = ("check", choosy + name, *others, "--dtype", "float64", "--quick", "--jobs", "0")
    assert run(*arguments).exit_code == 1
    result = run(*arguments, "--implementation", "einsum")
    assert result.exit_code == 0, result.output
    assert "1 row: 1 passed." in result.stdout


def test_the_oracle_passes_its_own_judge():
    result = run("check", "attnpool_ref", "--only", "mean_pooling", "--dtype", "float64", "--jobs", "0")
    assert result.exit_code == 0, result.output
    assert "1 row: 1 passed. On cpu (NumPy)" in result.stdout

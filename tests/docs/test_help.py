"""``help(attnpool_flax.NAME)`` holds all that the definition's docstring says, what JAX does differently, and an example."""

import inspect
import pydoc
import re

import pytest

import attnpool_flax
import attnpool_ref
from attnpool_flax.call.compiled import FUNCTIONS
from attnpool_flax.call.documentation import NOTES, OF_PACKED
from attnpool_flax.modules.specs import SPECS
from attnpool_ref import table
from attnpool_ref.cli.application import application
from attnpool_ref.contract import docstrings

ORDER = ("Args", "Returns", "Raises", "Source", "In JAX")
FOR_NUMPY_ALONE = r"NumPy|asarray|\bnp\.|(?<!\.)\barray\(\["  # "array([" without a module before it is how NumPy prints

every_row = pytest.mark.parametrize("row", table.BY_NAME.values(), ids=lambda row: row.name)


def help_of(row):
    return inspect.getdoc(getattr(attnpool_flax, row.name))


def sections_of(text):
    """The text of each section by its title, in the order in which they stand; the example has no title."""
    pieces = re.split(r"\n\n(\w[\w ]*):\n(?=  )", text.partition("\n\n>>> ")[0])[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def difference_of(row):
    """What the docstring of the body says beyond whose twin it is, before its example; of a packed row in its section."""
    body = FUNCTIONS[row.name].body
    if row.packed:
        return f"{docstrings.of(body).sections['Packed']} {OF_PACKED}".strip()
    text = inspect.getdoc(body).partition(">>>")[0].strip()
    return text.removeprefix(f"Twin of :func:`attnpool_ref.{row.name}`")[1:].strip()


@pytest.mark.parametrize("package", [attnpool_ref, attnpool_flax], ids=lambda package: package.__name__)
def test_help_of_a_package_names_a_search_that_finds(package, capsys):
    (words,) = re.findall("``attnpool find (.*?)``", inspect.getdoc(package))
    assert application.main(["find", words], standalone_mode=False) == 0
    assert words in capsys.readouterr().out


@every_row
def test_the_sections_stand_in_one_order(row):
    expected = ORDER if difference_of(row) else ORDER[:-1]
    assert tuple(sections_of(help_of(row))) == expected


@every_row
def test_args_names_every_argument_of_the_signature(row):
    named = re.findall(r"^  (\w+): ", sections_of(help_of(row))["Args"], re.MULTILINE)
    assert named == list(inspect.signature(getattr(attnpool_flax, row.name)).parameters)


@every_row
def test_help_holds_the_definition_up_to_its_example(row):
    before, _, after = inspect.getdoc(getattr(attnpool_ref, row.name)).partition(">>>")[0].partition("\n\nReturns:\n")
    assert help_of(row).startswith(before)
    assert f"\n\nReturns:\n{after.rstrip()}\n" in help_of(row)


@every_row
def test_help_says_all_that_the_body_does_differently(row):
    said = sections_of(help_of(row)).get("In JAX", "").split()
    expected = difference_of(row).split()
    assert [word.lower() for word in said[:1]] + said[1:] == [word.lower() for word in expected[:1]] + expected[1:]


@every_row
def test_the_example_calls_the_function_on_jax_arrays(row):
    text = help_of(row)
    example = text[text.index("\n\n>>> ") :]
    assert f"{row.name}(" in example
    assert "jnp." in example
    assert "\n\n" not in example.strip()
    assert example.strip() in inspect.getdoc(FUNCTIONS[row.name].body)


@every_row
def test_help_speaks_of_jax_arrays_alone(row):
    assert re.findall(FOR_NUMPY_ALONE, help_of(row)) == []


@every_row
def test_help_is_indented_as_google_does_and_fits_the_screen(row):
    for line in help_of(row).splitlines():
        assert line == line.rstrip()
        assert len(line) <= 120, line
    assert "\n\n\n" not in help_of(row)
    for title, text in sections_of(help_of(row)).items():
        assert all(not line or line.startswith("  ") for line in text.splitlines()), title


@pytest.mark.parametrize("name", NOTES)
def test_a_note_stands_where_the_argument_does_and_nowhere_else(name):
    for row in table.BY_NAME.values():
        described = re.search(rf"^  {name}: (.*(?:\n    .*)*)", sections_of(help_of(row))["Args"], re.MULTILINE)
        assert bool(described) == (name in inspect.signature(getattr(attnpool_flax, row.name)).parameters), row.name
        assert not described or " ".join(described[1].split()) == NOTES[name], row.name


@pytest.mark.parametrize("package", [attnpool_ref, attnpool_flax], ids=lambda package: package.__name__)
def test_help_of_a_package_opens_with_its_names_by_family(package):
    """One sentence, in NumPy its speed, then each public name once, on the line of its family's file."""
    summary, *speed, title, tree = inspect.getdoc(package).split("\n\n")
    assert summary.endswith(".") and "\n" not in summary
    assert title.endswith(":") and len(speed) == (package is attnpool_ref)
    assert max(map(len, tree.splitlines())) <= 100
    families = re.findall(r"^(\w+) +(\w+(?:,\s+\w+)*)$", tree, re.MULTILINE)
    named = {name: family for family, names in families for name in names.split()}
    named = {name.rstrip(","): family for name, family in named.items()}
    assert len(re.findall(r"\w+", tree)) == len(named) + len(families)
    assert set(named) == {name for name in package.__all__ if name not in ("__version__", "formats", "linen")}
    for row in table.BY_NAME.values():
        assert named[row.name] == row.family


@pytest.mark.parametrize("name", sorted(SPECS))
@pytest.mark.parametrize("package", [attnpool_flax, attnpool_flax.linen], ids=["NNX", "Linen"])
def test_help_of_a_module_begins_with_the_signature_of_its_constructor(package, name):
    kind = getattr(package, name)
    shown = inspect.signature(kind)
    lines = pydoc.render_doc(kind, renderer=pydoc.plaintext).splitlines()[3:]  # Python 3.13 wraps them
    assert re.sub(r"[\s|]", "", "".join(lines)).startswith(re.sub(r"\s", "", f"{name}{shown}"))
    assert " at 0x" not in str(shown)
    documented = re.findall(r"^  (\w+): ", inspect.getdoc(kind), re.MULTILINE)
    assert [each for each in shown.parameters if each not in (*documented, "name")] == []


@every_row
def test_a_docstring_that_is_read_and_written_is_the_same(row):
    for package in (attnpool_ref, attnpool_flax):
        text = inspect.getdoc(getattr(package, row.name))
        assert str(docstrings.parse(text)) == text


PACKED = [row for row in table.VARIANTS if row.packed]


@pytest.mark.parametrize("row", PACKED, ids=lambda row: row.name)
def test_the_docstring_of_a_packed_function_has_the_shapes_of_packed_tokens(row):
    """Each shape that stands in its text is one of its row, and none is that of dense tokens."""
    for package in (attnpool_ref, attnpool_flax):
        text = inspect.getdoc(getattr(package, row.name)).partition("\n\n>>> ")[0]
        assert "[..." not in text
        assert "Packed:" not in text
        assert "[num_segments" in sections_of(text + "\n")["Returns"]
        described = docstrings.parse(text).entries("Args")
        assert "[N, d]" in described["x"]
        assert "[L" not in "".join(described.values())

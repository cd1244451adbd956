"""The pictures of ``docs/pictures/``: their numbers are attnpool's, pages show them, and who sees no colour can read them."""

import re
from xml.etree import ElementTree

import make_pictures
import numpy as np
import pytest
from documents import ROOT, python_blocks
from pictures import batch, families, heat, layouts, proof, speed, svg, terminal

from attnpool_ref.table import BY_NAME
from bench import plots

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]*pictures/(\w+)\.svg)\)")
REPAIR = "run `make docs` and commit what it writes"


def path_of(name):
    return make_pictures.FOLDER / f"{name}.svg"


def of_any_machine(picture):
    """A picture of the terminal without measured errors, which differ between processors, and NumPy's version."""
    return re.sub(r"numpy [\d.]+", "numpy", re.sub(r"[\d.]+/\d+", "error/allowed", picture))


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_picture_is_what_attnpool_computes(name):
    drawn, there = make_pictures.PICTURES[name](), path_of(name).read_text(encoding="utf-8")
    if name == "terminal":
        drawn, there = of_any_machine(drawn), of_any_machine(there)
    assert drawn == there, REPAIR


def test_the_folder_has_the_pictures_and_nothing_else():
    assert {path.name for path in make_pictures.FOLDER.iterdir()} == {f"{name}.svg" for name in make_pictures.PICTURES}


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_picture_is_small_asks_no_host_and_says_what_it_shows(name):
    text = path_of(name).read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    title, description, *_ = root
    assert title.tag.endswith("}title") and len(title.text) > 20
    assert description.tag.endswith("}desc") and len(description.text) > 40
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 20_000
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    classes = {kind for element in root.iter() for kind in element.get("class", "").split()}
    assert [kind for kind in classes if f".{kind}" not in text] == []


@pytest.mark.parametrize("name", make_pictures.PICTURES)
def test_a_page_shows_the_picture_and_says_it_in_words(name):
    shown = [(page, *match) for page in PAGES for match in SHOWN.findall(page.read_text(encoding="utf-8"))]
    here = [(page, alt, target) for page, alt, target, stem in shown if stem == name]
    assert here
    for page, alt, target in here:
        assert (page.parent / target).exists()
        assert len(alt) > 40
        drawn = re.sub(r"<[^>]*>", " ", path_of(name).read_text(encoding="utf-8").split("</style>")[-1])
        assert [number for number in re.findall(r"\d+", alt) if number not in drawn] == []


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(*colours):
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [svg.LIGHT, svg.DARK], ids=["light", "dark"])
def test_letters_stand_out_from_the_paper_and_from_cells(palette):
    assert {
        name for name in ("ink", "muted", "real", "leak") if contrast(palette[name], palette["paper"]) < 4.5
    } == set()
    assert {name for name in ("ink", "muted") if contrast(palette[name], palette["cell"]) < 4.5} == set()


def test_red_is_for_padding_and_blue_for_attnpool_in_every_picture():
    assert plots.COLOURS["attnpool"] == svg.LIGHT["real"]
    for name, colour in plots.COLOURS.items():
        red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
        assert not red > 1.8 * max(green, blue), name
    assert len(set(plots.COLOURS.values())) == len(set(plots.MARKERS.values())) == len(plots.COLOURS)


def test_common_code_and_attnpool_differ_as_in_the_first_block_of_the_readme():
    (block, *_) = python_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    printed = re.findall(r"# \[\[(\w+)\.?\]\] \[\[(\w+)\.?\]\]$", block, re.MULTILINE)
    assert [(float(wrong), float(right)) for wrong, right in printed] == [
        pytest.approx(row, nan_ok=True) for row in proof.results()
    ]


def test_weights_of_the_batch_leak_only_without_the_mask():
    x, mask = batch.batch()
    leaks = np.where(mask, 0, batch.pooled(None)[1]).sum(-1)
    assert (leaks > 0.3).all()
    vectors, weights = batch.pooled(mask)
    assert not weights[~mask].any()
    np.testing.assert_allclose(vectors[0], weights[0, :4] @ x[0, :4])
    assert f"{svg.percent(leaks[0])} on padding" in path_of("batch").read_text(encoding="utf-8")


def test_every_layout_has_the_same_means():
    means = layouts.results()
    assert len(means) == 4
    for found in means.values():
        np.testing.assert_array_equal(found, [2.5, 7, 0])


@pytest.mark.parametrize("pooling", families.POOLINGS, ids=lambda pooling: pooling.name)
def test_a_pooling_is_its_score_its_normalizer_and_its_reduction(pooling):
    assert pooling.name in BY_NAME
    np.testing.assert_allclose(pooling.call(), pooling.composed(), rtol=1e-12, atol=1e-14)


def test_most_of_the_weight_is_on_the_lesion_only_with_the_mask():
    _, without, weights, mask, lesion = heat.maps()
    assert not weights[~mask].any() and mask[lesion].all()
    assert weights[lesion].sum() > 0.5 > without[lesion].sum()
    assert without[~mask].sum() > 0.3


def test_the_ratios_are_those_of_the_pages():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    case = page.split(f"### {speed.FUNCTION}: {speed.TITLE}\n")[1].split("###")[0]
    for name, (median, low, high) in speed.ratios().items():
        faster = f"{median:.0f}× faster" if median >= 10 else f"{median:.2f}× faster"
        assert re.search(rf"^\| {name} \| [^|]+ \| {faster} ", case, re.MULTILINE)
        assert low <= median <= high
    machine = speed.race()[0]
    for name in ("README.md", "docs/questions.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert f"{machine['cores']} cores of an {machine['cpu']}" in text
        assert f"is {speed.span()} faster" in text.replace("\n", " ")
    assert speed.span() in path_of("speed").read_text(encoding="utf-8")


def test_the_terminal_shows_the_command_of_the_readme_and_what_it_prints():
    lines = [line.plain for line in terminal.shown()]
    assert lines[0] == "$ attnpool check my_pooling:mean_pool --as mean_pooling --mask-required"
    assert lines[1].startswith("mean_pooling: multiplies padding by 0")
    assert "# empty rows: the result is [nan], needs [0.]" in lines
    assert lines[-1].startswith("Held: ") and lines[-1].endswith("--all lists them.")
    assert any("fail" in line for line in lines)

"""The contract has an anchor for each rule; each guarantee of the judge has a demonstration of two lines, which runs."""

import builtins
import re

import jax
import pytest
from documents import ROOT, anchors, heading_anchor, python_blocks

from attnpool_ref.conformance.report.promises import PROMISES

CONTRACT = (ROOT / "docs" / "contract.md").read_text(encoding="utf-8")
GUARANTEES = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
INTRODUCTION, *SECTIONS = re.split(r"^## ", GUARANTEES, flags=re.MULTILINE)
(SETUP,) = python_blocks(INTRODUCTION)
DEMONSTRATIONS = {section.partition("\n")[0]: python_blocks(section)[0] for section in SECTIONS}
NUMBERED = {int(title.partition(".")[0]): title for title in re.findall(r"^## (\d+\. .*)$", CONTRACT, re.MULTILINE)}
every_guarantee = pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.name)


def test_every_rule_of_the_contract_has_an_anchor_of_its_own():
    bullets = re.findall(r"^\* .*$", CONTRACT, re.MULTILINE)
    names = [re.match(r'\* <a id="([a-z0-9]+(?:-[a-z0-9]+)*)"></a>[A-Z0-9`]', bullet) for bullet in bullets]
    assert [bullet for bullet, name in zip(bullets, names, strict=True) if not name] == []
    assert len({name[1] for name in names}) == len(bullets) > 100
    assert not {name[1] for name in names} & {heading_anchor(title) for title in NUMBERED.values()}
    assert {name[1] for name in names} <= anchors(CONTRACT)


def test_the_sections_of_the_contract_are_numbered_and_each_guarantee_names_one():
    assert list(NUMBERED) == list(range(1, len(NUMBERED) + 1))
    assert {promise.line for promise in PROMISES} <= {0, *NUMBERED}


def test_every_guarantee_has_its_section_in_the_order_of_the_report():
    assert list(DEMONSTRATIONS) == [promise.name for promise in PROMISES]


@every_guarantee
def test_the_section_of_a_guarantee_has_its_sentence_and_its_rules(promise):
    section = SECTIONS[PROMISES.index(promise)]
    assert section.startswith(f"{promise.name}\n\n{promise.says}\n\n* Checked ")
    title = NUMBERED.get(promise.line)
    links = [f"* Contract: [{title}](contract.md#{heading_anchor(title)})"] if title else []
    assert re.findall(r"^\* Contract: .*$", section, re.MULTILINE) == links


@pytest.mark.parametrize("package", ["attnpool_ref", "attnpool_flax"])
@every_guarantee
def test_a_demonstration_of_two_lines_shows_what_it_says(promise, package, capsys):
    text = DEMONSTRATIONS[promise.name]
    assert text.count("\n") <= 2
    if package == "attnpool_flax" and "attnpool_flax" in text:
        pytest.skip("is about JAX only")
    names = {}
    exec(SETUP.replace("from attnpool_ref import", f"from {package} import"), names)
    refused = re.search(r"^\w+\(.*\)  # (\w+Error): (.*)$", text, re.MULTILINE)
    if refused:
        with pytest.raises(getattr(builtins, refused[1]), match=re.escape(refused[2])):
            exec(text, names)
        return
    with jax.numpy_rank_promotion("allow"):
        exec(text, names)
    (expected,) = re.findall(r"^ *print\(.*\)  # (.*)$", text, re.MULTILINE)
    assert capsys.readouterr().out.rstrip("\n") == expected

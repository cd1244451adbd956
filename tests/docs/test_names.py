"""What people look for: each call is one of this version, whatever is left out is known, and words find it."""

import inspect
import re

import pytest
from command import run
from packages import every_package

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.cli import finding
from attnpool_ref.table import names
from attnpool_ref.table.names.entry import FOREIGN, Entry

SHOWN = [entry for group in names.GROUPS for entry in group.shown]


def test_nothing_is_left_out():
    assert {why for entry in names.ENTRIES for why in entry.missing} == set()
    assert len(SHOWN) == len(names.ENTRIES)


def test_a_call_that_is_none_of_this_version_is_left_out():
    def missing(call, *takes):
        return Entry(("name",), call, "source", "differs", takes=takes).missing

    assert missing("mean_pooling(x, mask)") == missing("tanh(mean_pooling(x)) + f(y.g())") == missing("") == ()
    assert missing("mean_poling(x)\nmean_pooling(y)") == ("mean_poling",)
    assert missing("first_pooling(x, masks=mask)") == ("first_pooling: got an unexpected keyword argument 'masks'",)
    assert missing("first_pooling(x, mask, y)") == ("first_pooling: too many positional arguments",)
    assert missing("bidaf_attention(x, y)") == ("bidaf_attention: missing a required argument: 'kernel'",)
    assert missing("bidaf_attention(x, y, **maps)") == ()
    assert missing('attend(s, v, normalizer="tanh")') == ("attend: normalizer='tanh'",)
    assert missing('attend(s, v, normalizer="sparsemax")') == ()
    assert missing("mean_pooling(x)", "mean_pooling x[..., L, d]", "attend normalizer=softmax") == ()
    assert missing("mean_pooling(x)", "mean_pooling x[L]", "attend normalizer=x") == (
        "mean_pooling x[L]",
        "attend normalizer=x",
    )


@every_package
def test_what_is_shown_is_in_both_packages(package):
    for entry in SHOWN:
        assert set(entry.functions) <= set(package.__all__), entry.names
    classes = {name for name in dir(attnpool_flax) if inspect.isclass(getattr(attnpool_flax, name))}
    assert {entry.module for entry in SHOWN} - {""} <= classes


def test_every_dense_row_is_named_by_an_entry():
    named = {name for entry in SHOWN for name in entry.functions}
    missing = [row.name for row in table.VARIANTS if row.family != "segments" and row.name not in named]
    assert missing == [], "add an Entry that calls it to a file of attnpool_ref/table/names/"


def test_an_entry_says_short_sentences_about_what_there_is():
    assert not FOREIGN & set(attnpool_ref.__all__)
    calls = " ".join(entry.call for entry in names.ENTRIES)
    assert [name for name in sorted(FOREIGN) if not re.search(rf"\b{name}\(", calls)] == []
    first = [entry.names[0] for entry in names.ENTRIES]
    assert sorted(set(first)) == sorted(first)
    for entry in names.ENTRIES:
        assert entry.source and entry.differs.endswith(".") and len(entry.differs) <= 125, entry.names
        assert set(re.findall(r"\((\w+\d{4}|notebook\d+|d2l)\)", entry.source)) <= set(table.SOURCES), entry.names
    for entry in SHOWN:
        said = re.findall(r"`(\w+_(?:pooling|attention|score|state|decomposition|vector)|l?\w*softmax)`", entry.differs)
        assert set(said) <= set(attnpool_ref.__all__), entry.names


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: entry.names[0])
def test_an_entry_is_found_by_each_of_its_names(entry):
    for name in entry.names:
        for written in (name, name.upper(), name.lower().replace("-", ""), name.replace("-", " ")):
            found = finding.search(written.split(), SHOWN)
            assert entry in found, written
            assert written == name or found == finding.search(name.split(), SHOWN) or " " in written


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["cls"], "CLS"),
        (["last", "token"], "last token"),
        (["bert-pooler"], "BERT pooler"),
        (["Berts", "pooling"], None),
        (["SCALED dot product"], "scaled dot-product attention"),
        (["global", "attention"], "global attention"),
        (["kernel_regression"], "Nadaraya-Watson"),
        (["bahdanau2015"], "Bahdanau attention"),
        (["peters"], "ScalarMix"),
        (["log", "softmax"], "log softmax"),
        (["masked_softmax"], "masked softmax"),  # which stands below calls of it
        (["attention_pooling"], "attention pooling"),
        (["additive_attention_pooling"], "Lin's self-attentive embedding"),  # no name of an entry
        (["heatmap"], "attention weights"),
        (["Attn"], "attention pooling"),
        (["权重"], "attention weights"),
        (["注意力池化"], "attention pooling"),
        (["whole", "slide"], "ABMIL"),
        (["speaker", "embedding"], "x-vector"),
        (["left", "padding"], "last token"),
        (["weighted", "average"], "IDF-weighted mean"),
        (["cls", "pooler"], "BERT pooler"),
        (["subword"], "word vectors"),
        (["word_ids"], "word vectors"),
        (["vmap"], "word vectors"),
        (["registers"], None),
        (["register", "tokens"], "special tokens"),
        (["SortPool"], "LSTMAggregation"),
        (["offsets"], "EmbeddingBag"),
        (["bge-m3"], "BGE-M3"),
        (["attn_mask"], "attn_mask"),
        (["multiple", "queries"], "multiple queries"),
        (["per-feature", "mask"], "missing values"),
        (["speaker", "masks"], "speaker masks"),
        (["onnx"], "ONNX"),
        (["masked", "mean"], "mean pooling"),
        (["masked", "max"], "max pooling"),
        (["tfidf"], "IDF-weighted mean"),
        (["tf-idf"], "IDF-weighted mean"),
        (["tf", "idf"], "IDF-weighted mean"),
        (["inverse", "document", "frequency"], "IDF-weighted mean"),
        (["generalized", "mean"], "GeM"),
        (["generalised", "mean"], "GeM"),
        (["k", "largest"], "top-k MIL"),
        (["logmeanexp"], "LSE pooling"),
        (["dropout"], "attention dropout"),
        (["...", "-"], None),
    ],
)
def test_words_find_what_they_name_first(words, first):
    result = run("find", *words)
    if first is None:
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("Nothing is called ")
    else:
        assert result.exit_code == 0
        assert result.stdout.startswith(first)


def test_nothing_found_says_the_nearest_names():
    result = run("find", "bahdanov", "attention")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Near it: Bahdanau attention" in result.stderr
    assert "Near it" not in run("find", "qqqqqqqq").stderr


@pytest.mark.parametrize("columns", [60, 80])
def test_what_is_found_fits_the_screen_with_its_code_whole(columns):
    output = run("find", "a", columns=columns).output
    lines = output.splitlines()
    assert max(map(len, lines)) <= columns
    entry = next(entry for entry in SHOWN if entry.names[0] == "causal attention")
    place = next(i for i, line in enumerate(lines) if line.startswith("causal attention"))
    shown = " ".join(" ".join(lines[place + 1 : place + 9]).split())
    assert " ".join(entry.call.split()) in shown
    assert f"module attnpool_flax.{entry.module} source {entry.source} note " in shown


def test_what_attnpool_does_not_have_is_said_too():
    for name, what in (("TransMIL", "these models"), ("ISAB", "these layers")):
        output = run("find", name).output
        assert re.search(rf"^    instead  attnpool does not have {what}\.", output, re.MULTILINE)

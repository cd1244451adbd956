"""The index of names: each call is one of this version, what is left out is known, and words find it."""

import inspect

import pytest
from command import run
from packages import PACKAGES

import attnpool_flax
from attnpool_ref import table
from attnpool_ref.cli import search
from attnpool_ref.table import names
from attnpool_ref.table.names.entry import Entry

SHOWN = [entry for group in names.GROUPS for entry in group.shown]


def test_nothing_is_left_out_and_what_is_shown_is_in_both_packages():
    assert {why for entry in names.ENTRIES for why in entry.missing} == set()
    assert len(SHOWN) == len(names.ENTRIES)
    classes = {name for name in dir(attnpool_flax) if inspect.isclass(getattr(attnpool_flax, name))}
    for entry in SHOWN:
        assert all(set(entry.functions) <= set(package.__all__) for package in PACKAGES), entry.names
        assert entry.module in classes | {""}, entry.names


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
        *("mean_pooling x[L]", "attend normalizer=x"),
    )


def test_every_dense_row_is_named_by_an_entry():
    named = {name for entry in SHOWN for name in entry.functions}
    missing = [row.name for row in table.VARIANTS if row.family != "segments" and row.name not in named]
    assert missing == [], "add an Entry that calls it to a file of attnpool_ref/table/names/"


def test_an_entry_is_found_by_each_of_its_names():
    first = [entry.names[0] for entry in names.ENTRIES]
    assert len(set(first)) == len(first)
    for entry in SHOWN:
        for name in entry.names:
            for written in (name, name.upper(), name.lower().replace("-", ""), name.replace("-", " ")):
                assert entry in search.search(written.split(), SHOWN), written


FIRST = {
    **{"cls": "CLS", "last token": "last token", "left padding": "last token", "bert-pooler": "BERT pooler"},
    **{"cls pooler": "BERT pooler", "SCALED dot product": "scaled dot-product attention", "peters": "ScalarMix"},
    **{"global attention": "global attention", "kernel_regression": "Nadaraya-Watson"},
    **{"bahdanau2015": "Bahdanau attention", "log softmax": "log softmax"},
    "masked_softmax": "masked softmax",  # which stands below calls of it
    "attention_pooling": "attention pooling",
    "additive_attention_pooling": "Lin's self-attentive embedding",  # no name of an entry
    **{"heatmap": "attention weights", "Attn": "attention pooling", "权重": "attention weights"},
    **{"注意力池化": "attention pooling", "whole slide": "ABMIL", "speaker embedding": "x-vector"},
    **{"weighted average": "IDF-weighted mean", "subword": "word vectors", "word_ids": "word vectors"},
    **{"vmap": "word vectors", "register tokens": "special tokens", "SortPool": "LSTMAggregation"},
    **{"offsets": "EmbeddingBag", "bge-m3": "BGE-M3", "attn_mask": "attn_mask", "onnx": "ONNX"},
    **{"multiple queries": "multiple queries", "per-feature mask": "missing values", "dropout": "attention dropout"},
    **{"speaker masks": "speaker masks", "masked mean": "mean pooling", "masked max": "max pooling"},
    **dict.fromkeys(["tfidf", "tf-idf", "tf idf", "inverse document frequency"], "IDF-weighted mean"),
    **{"generalized mean": "GeM", "generalised mean": "GeM", "k largest": "top-k MIL", "logmeanexp": "LSE pooling"},
}
"""Words, and the name that they find first."""


def test_words_find_what_they_name_first():
    found = {words: run("find", *words.split()) for words in FIRST}
    assert {words: result.exit_code for words, result in found.items()} == dict.fromkeys(FIRST, 0)
    assert {words: found[words].stdout[: len(first)] for words, first in FIRST.items()} == FIRST


@pytest.mark.parametrize("words", ["Berts pooling", "registers", "... -", "bahdanov attention", "qqqqqqqq"])
def test_nothing_found_says_the_nearest_names(words):
    result = run("find", *words.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Nothing is called ")
    assert ("Near it: Bahdanau attention" in result.stderr) == (words == "bahdanov attention")

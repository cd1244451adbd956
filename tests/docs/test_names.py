"""The names that ``attnpool find`` knows: each call is one of this version, the page has no other lines, words find it."""

import ast
import inspect
import re

import pytest
from command import run
from documents import ROOT
from packages import PACKAGES

import attnpool_flax
import attnpool_ref
from attnpool_ref import table
from attnpool_ref.cli import finding
from attnpool_ref.table import names

PAGE = ROOT / "attnpool_ref" / "table" / "names.md"
ENTRIES = names.entries()
NUMPY = {
    "abs",
    "arange",
    "broadcast_to",
    "concatenate",
    "einsum",
    "log1p",
    "relu",
    "round",
    "sqrt",
    "stack",
    "swapaxes",
}
NUMPY |= {"tanh", "where", "zeros"}
FOREIGN = {*NUMPY, "f", "g"}
"""Functions that a call may use besides those of attnpool: NumPy's and JAX's, and f and g of the reader."""


def wrong(call):
    """Returns the reasons why a call does not work in this version."""
    found = [
        node for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return [why for node in found if node.func.id not in FOREIGN for why in wrong_arguments(node)]


def wrong_arguments(node):
    name = node.func.id
    if name not in attnpool_ref.__all__:
        return [name]
    given = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
    signature = inspect.signature(getattr(attnpool_ref, name))
    spread = any(keyword.arg is None for keyword in node.keywords)  # **maps stands for all other required arguments
    try:
        (signature.bind_partial if spread else signature.bind)(*node.args, **given)
    except TypeError as error:
        return [f"{name}: {error}"]
    options = table.BY_NAME[name].options if name in table.BY_NAME else {}
    return [
        f"{name}: {key}={value.value!r}"
        for key, value in given.items()
        if isinstance(value, ast.Constant) and isinstance(options.get(key), tuple) and value.value not in options[key]
    ]


def test_each_call_is_one_of_both_packages():
    assert {entry.names[0]: wrong(entry.call) for entry in ENTRIES if wrong(entry.call)} == {}
    for entry in ENTRIES:
        assert all(set(entry.functions) <= set(package.__all__) for package in PACKAGES), entry.names
        assert not entry.module or inspect.isclass(getattr(attnpool_flax, entry.module)), entry.names
        assert entry.note and entry.source, entry.names


def test_the_page_has_only_headings_entries_and_their_items():
    _, *subjects = PAGE.read_text(encoding="utf-8").split("\n## ")
    lines = [line for subject in subjects for line in subject.splitlines()[1:] if line]
    entry, item, continued = r"\* \*\*[^*]+\*\*(;|$)", r"  \* \S", r" {2}( {2})?(?![-+*>#]|\d+[.)] )\S"
    assert [line for line in lines if not re.match(f"{entry}|{item}|{continued}", line)] == []
    assert sum(line.startswith("* ") for line in lines) == len(ENTRIES) > 150


def test_a_function_that_no_entry_names_is_found_by_its_name_and_its_first_line(monkeypatch):
    monkeypatch.setattr(names, "entries", list)
    for words in (["semantic_match"], ["code-wise", "attention"], ["SimKGC"]):
        result = run("find", *words)
        assert result.exit_code == 0, words
    expected = "power_mean_pooling; GeM pooling\n    power_mean_pooling(x, mask, p)"
    assert run("find", "GeM").stdout.startswith(expected)


def test_an_entry_is_found_by_each_of_its_names():
    first = [entry.names[0] for entry in ENTRIES]
    assert len(set(first)) == len(first)
    for entry in ENTRIES:
        for name in entry.names:
            for written in (name, name.upper(), name.lower().replace("-", ""), name.replace("-", " ")):
                assert entry in finding.search(written.split(), ENTRIES), written


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
    **{"GlobalAveragePooling1D": "mean pooling", "GlobalMaxPooling1D": "max pooling"},
    **dict.fromkeys(["DINOv3", "registers", "patch tokens"], "special tokens"),
    **{"ModernBERT": "ModernBERT", "EmbeddingGemma": "EmbeddingGemma", "Matryoshka": "Matryoshka", "ESM": "ESM"},
    **dict.fromkeys(["GritLM", "LLM2Vec", "skip instruction"], "include_prompt=False"),
    **dict.fromkeys(["wav2vec2", "WavLM", "weighted layer sum"], "wav2vec2"),
    **dict.fromkeys(["DIN", "Deep Interest Network"], "DIN; "),
    **{"gate_nn": "GlobalAttention of a packed batch", "segment_csr": "segment_csr"},
    **{"VariancePreservingAggregation": "mean_sqrt_len_tokens", "TFLite": "TFLite", "LiteRT": "TFLite"},
    **dict.fromkeys(["relative lengths", "wav_lens"], "relative lengths"),
    **{"masked loss": "masked loss", "late chunking": "late chunking", "token pooling": "token pooling"},
    **{"LEMUR": "LEMUR", "efficient probing": "efficient probing", "MHFA": "MHFA", "xi-vector": "xi-vector"},
    **{"MILLET": "MILLET", "additive MIL": "additive MIL", "DTFD": "DTFD", "ACMIL": "DTFD", "GMT": "TransMIL"},
    **{"CaiT": "CaiT", "Q-Former": "Perceiver resampler", "Honeybee": "Perceiver resampler"},
    **{"TokenLearner": "TokenLearner", "slot attention": "slot attention", "keepdim": "axis", "axis": "axis"},
    **{"LastNTokenPooling": "LastNTokenPooling", "polars": "columns of vectors", "Arrow": "columns of vectors"},
    **{"pandas": "groupby", "freezing": "freezing", "weight decay": "freezing", "InternVL": "InternVL"},
    **{"Perception Encoder": "MAP head", "FEATHER": "gated attention MIL"},
    **{"generalized mean": "GeM", "generalised mean": "GeM", "k largest": "top-k MIL", "logmeanexp": "LSE pooling"},
}
"""Words, and the name that they find first."""


def test_words_find_what_they_name_first():
    found = {words: run("find", *words.split()) for words in FIRST}
    assert {words: result.exit_code for words, result in found.items()} == dict.fromkeys(FIRST, 0)
    assert {words: found[words].stdout[: len(first)] for words, first in FIRST.items()} == FIRST


@pytest.mark.parametrize("words", ["Berts pooling", "ncept", "... -", "bahdanov attention", "qqqqqqqq"])
def test_nothing_found_says_the_nearest_names(words):
    result = run("find", *words.split())
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Nothing is called ")
    assert ("Near it: Bahdanau attention" in result.stderr) == (words == "bahdanov attention")


def test_a_part_of_a_word_is_no_answer():
    assert [entry.names[0] for entry in finding.search(["DIN"], ENTRIES)] == ["DIN"]
    assert [entry.names[0] for entry in finding.search(["keepdim"], ENTRIES)] == ["axis"]
    assert "HopfieldPooling" in finding.search(["hopfield", "pool"], ENTRIES)[0].names


def test_find_shows_the_best_five_and_the_command_for_all():
    words = ["attention", "pooling"]
    found = finding.search(words, ENTRIES)
    names_of = [entry.names[0] for entry in found]
    best, everything = run("find", *words).stdout, run("find", "--all", *words).stdout
    assert len(found) > finding.BEST + 1
    for printed, expected in ((best, names_of[:5]), (everything, names_of)):
        first = [line.split("; ")[0] for line in printed.splitlines() if line and not line.startswith(" ")]
        assert [name for name in first if name in names_of] == expected
    assert f"{len(found) - 5} more: attnpool find --all attention pooling" in best
    assert "--all" not in everything

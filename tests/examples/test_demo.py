"""The demonstration, run once as a user runs it; its figures are those that the data's authors measured."""

import contextlib
import io
import re

import demo
import minilm_pairs
import numpy as np
import pytest

import attnpool_ref

EPS = np.finfo(np.float32).eps


@pytest.fixture(scope="module")
def pairs():
    return minilm_pairs.minilm_pairs()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    picture = tmp_path_factory.mktemp("demo") / "weights.png"
    with contextlib.redirect_stdout(io.StringIO()) as output:
        demo.main(["--out", str(picture)])
    return output.getvalue(), picture


def row_of(output, start):
    """The cells of the table's row that starts so."""
    (line,) = (line for line in output.splitlines() if line.startswith(start))
    return [cell.strip() for cell in re.split("[│|]", line)]


FIRST = {
    **{"the encoder's own sentence embeddings": "51.6%", "mean_pooling, raw tokens": "51.6%", "mean_pooling ": "53.1%"},
    'cross_attention_pooling, reduction="sum"': "54.7%",
    'cross_attention_pooling, reduction="mean", scale=10': "57.8%",
}
"""How often each pooling ranks the right tail first, measured outside of this project's code, as are the drifts."""


def test_the_notebook_drifts_with_padding_and_poolings_rank_as_measured(shown):
    drifts = shown[0].partition("Cross pooling of the same pairs")[2]
    for length, drift in (("32", "24%"), ("64", "46%"), ("512", "89%")):
        _, error, lost, _ = row_of(drifts, f"{length} ")
        assert (error, lost) == (drift, drift)
    ranked = shown[0].partition("right answer")[2]
    assert {pooling: row_of(ranked, pooling)[1] for pooling in FIRST} == FIRST


def test_raw_tokens_saturate_the_weights_and_hide_the_notebooks_mistake(shown):
    words = " ".join(shown[0].split())
    assert "L2-normalised here: the largest weight is 0.19, and 8.5 tokens count." in words
    assert "the largest weight is 1.00, 1.0 tokens count, and the bug hides" in words
    assert "padded to 512, the notebook is off by 0%." in words


def test_ours_does_not_move_when_padding_is_added(pairs):
    (row,) = demo.measure_drift(pairs, lengths=(32,))
    terms = pairs["hr"].shape[1] + pairs["hr"].shape[2]
    numpy_moved, jax_moved = row.moved
    assert numpy_moved <= EPS  # float64 inside: at most the last rounding differs, values are below 1
    assert jax_moved <= terms * EPS


def test_both_packages_agree_and_the_table_sees_a_wrong_one(pairs, set_mean):
    terms = pairs["hr"].shape[1] + pairs["hr"].shape[2]
    rows = demo.measure_agreement(pairs)
    assert [row.pooling for row in rows] == ["mean_pooling", "attention_pooling", "cross_attention_pooling"]
    assert all(0 < row.in_eps <= terms for row in rows)
    set_mean(lambda x, mask: np.mean(x, -2))
    wrong, *_ = demo.measure_agreement(pairs)
    assert wrong.in_eps > terms


def test_mean_pooling_is_the_encoders_own_sentence_embedding(pairs):
    difference, allowed = demo.measure_sentence_embeddings(pairs)
    assert difference <= allowed
    unmasked = pairs | {f"{side}_mask": np.ones_like(pairs[f"{side}_mask"]) for side in ("hr", "tail")}
    difference, allowed = demo.measure_sentence_embeddings(unmasked)
    assert difference > allowed


def test_the_notebooks_weights_count_padding_and_ours_do_not(pairs):
    arrays = [demo.pad_to(32, array) for array in demo._arrays(demo.normalized(pairs))]
    _, (wrong, _) = demo.notebook_cross_pooling(*arrays)
    _, (right, _) = attnpool_ref.cross_attention_pooling(*arrays, return_weights=True)
    assert (np.sum(wrong * ~arrays[2], -1) > 0).all()
    assert not np.any(right * ~arrays[2])


def test_the_picture_is_written_where_asked(shown):
    output, picture = shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in output


@pytest.mark.parametrize("name", ["nowhere/picture.png", "picture.txt"])
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_computed(current_folder, capsys, name):
    with pytest.raises(SystemExit) as end:
        demo.main(["--out", name])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert name in printed.err
    assert printed.out == "", "it has begun"

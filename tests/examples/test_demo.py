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


def test_the_data_are_float32_with_boolean_masks(pairs):
    assert pairs["hr"].dtype == pairs["tail"].dtype == np.float32
    for side in ("hr", "tail"):
        assert pairs[f"{side}_mask"].dtype == bool
        assert pairs[f"{side}_mask"].shape == pairs[side].shape[:2] == pairs[f"{side}_tokens"].shape


@pytest.mark.parametrize(
    ("length", "drift"), [("32", "24%"), ("64", "46%"), ("512", "89%")]
)  # measured outside this project's code, as are the rankings below
def test_the_notebook_drifts_with_padding(shown, length, drift):
    table = shown[0].partition("Cross pooling of the same pairs")[2]
    _, error, lost, _ = row_of(table, f"{length} ")
    assert (error, lost) == (drift, drift)


@pytest.mark.parametrize(
    ("pooling", "first"),
    [
        ("the encoder's own sentence embeddings", "51.6%"),
        ("mean_pooling, raw tokens", "51.6%"),
        ("mean_pooling ", "53.1%"),
        ('cross_attention_pooling, reduction="sum"', "54.7%"),
        ('cross_attention_pooling, reduction="mean", scale=10', "57.8%"),
    ],
)
def test_the_right_tail_is_ranked_first_as_often_as_measured(shown, pooling, first):
    table = shown[0].partition("right answer")[2]
    assert row_of(table, pooling)[1] == first


def test_raw_tokens_saturate_the_weights_and_hide_the_notebooks_mistake(shown):
    words = " ".join(shown[0].split())
    assert "L2-normalised here: the largest weight is 0.19, and 8.5 tokens count." in words
    assert (
        "the largest weight is 1.00, 1.0 tokens count, and the bug hides: padded to 512, the notebook is off by 0%."
        in words
    )


def test_ours_does_not_move_when_padding_is_added(pairs):
    (row,) = demo.measure_drift(pairs, lengths=(32,))
    terms = pairs["hr"].shape[1] + pairs["hr"].shape[2]
    numpy_moved, jax_moved = row.moved
    assert numpy_moved <= EPS  # float64 inside: at most the last rounding differs, values are below 1
    assert jax_moved <= terms * EPS


def test_both_packages_agree(pairs):
    terms = pairs["hr"].shape[1] + pairs["hr"].shape[2]
    rows = demo.measure_agreement(pairs)
    assert [row.pooling for row in rows] == ["mean_pooling", "attention_pooling", "cross_attention_pooling"]
    assert all(0 < row.in_eps <= terms for row in rows)


def test_the_agreement_table_sees_a_wrong_candidate(pairs, set_mean):
    set_mean(lambda x, mask: np.mean(x, -2))
    wrong, *_ = demo.measure_agreement(pairs)
    assert wrong.in_eps > pairs["hr"].shape[1] + pairs["hr"].shape[2]


def test_mean_pooling_is_the_encoders_own_sentence_embedding(pairs, shown):
    difference, allowed = demo.measure_sentence_embeddings(pairs)
    assert difference <= allowed
    assert "(mean_pooling(hr, hr_mask)) is the encoder's own" in shown[0]
    unmasked = pairs | {f"{side}_mask": np.ones_like(pairs[f"{side}_mask"]) for side in ("hr", "tail")}
    difference, allowed = demo.measure_sentence_embeddings(unmasked)
    assert difference > allowed


def test_the_notebooks_weights_count_padding_and_ours_do_not(pairs):
    arrays = [demo.pad_to(32, array) for array in demo._arrays(demo.normalized(pairs))]
    _, (wrong, _) = demo.notebook_cross_pooling(*arrays)
    _, (right, _) = attnpool_ref.cross_attention_pooling(*arrays, return_weights=True)
    assert (np.sum(wrong * ~arrays[2], -1) > 0).all()
    assert not np.any(right * ~arrays[2])


def test_the_picture_shows_every_word_piece_and_what_padding_takes(pairs):
    figure = demo.draw(pairs, pictured=(3,))
    texts = [
        text.get_text()
        for panel in figure.axes
        for text in (*panel.get_yticklabels(), *panel.texts, panel.title, *figure.texts)
    ]
    for side in ("hr", "tail"):
        assert set(pairs[f"{side}_tokens"][3][pairs[f"{side}_mask"][3]]) <= set(texts)
    assert {"49 x padding", "61 x padding", "softmax over all: 62% lost", "62%"} <= set(texts)


def test_the_picture_is_written_where_asked(shown):
    output, picture = shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/picture.png", "there is no folder for nowhere/picture.png"),
        ("picture.txt", "no picture can be written as picture.txt; the endings are "),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_computed(current_folder, capsys, name, message):
    with pytest.raises(SystemExit) as end:
        demo.main(["--out", name])
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == "", "it has begun"

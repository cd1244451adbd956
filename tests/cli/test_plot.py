"""Pictures: what stands in a figure, read back from matplotlib's own objects."""

import io

import numpy as np
import pytest
from matplotlib import pyplot

from attnpool_ref import plot

ROWS, COLS, N, M = 2, 3, 4, 5
MATRICES = np.arange(ROWS * COLS * N * M, dtype=float).reshape(ROWS, COLS, N, M)
TITLES = ["one", "two", "three"]


@pytest.fixture
def heatmaps():
    figure = plot.show_heatmaps(MATRICES, "keys", "queries", TITLES)
    return figure, np.reshape(figure.axes[: ROWS * COLS], (ROWS, COLS))


def test_each_heatmap_shows_its_own_matrix_on_the_scale_of_all(heatmaps):
    _, panels = heatmaps
    assert {panel.images[0].get_clim() for panel in panels.flat} == {(MATRICES.min(), MATRICES.max())}
    for place, panel in np.ndenumerate(panels):
        np.testing.assert_array_equal(panel.images[0].get_array(), MATRICES[place])


def test_nan_and_infinity_do_not_spoil_the_scale():
    matrices = MATRICES.copy()
    matrices[0, 0, 0, :2] = np.nan, np.inf
    figure = plot.show_heatmaps(matrices, "keys", "queries")
    assert figure.axes[0].images[0].get_clim() == (2, MATRICES.max())


def test_figures_are_saved_without_pyplot_knowing_them(heatmaps):
    buffer = io.BytesIO()
    heatmaps[0].savefig(buffer, format="png")
    assert buffer.getvalue().startswith(b"\x89PNG")
    assert pyplot.get_fignums() == []


def test_narrow_jax_arrays_are_drawn():
    jnp = pytest.importorskip("jax.numpy")
    figure = plot.show_heatmaps(jnp.asarray(MATRICES, jnp.bfloat16), "keys", "queries")
    assert figure.axes[0].images[0].get_array().dtype == np.float64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.show_heatmaps(MATRICES[0], "k", "q"), r"shape \(3, 4, 5\), needs \[rows, cols, n, m\]"),
        (lambda: plot.show_heatmaps(MATRICES[:, :0], "k", "q"), r"shape \(2, 0, 4, 5\)"),
        (lambda: plot.show_heatmaps(MATRICES, "k", "q", TITLES[:2]), "2 `titles` for 3 columns"),
        (lambda: plot.show_weights("abc", [0.5, 0.5]), r"3 `tokens`, but `weights` has shape \(1, 2\)"),
        (lambda: plot.show_weights("ab", [0.5, 0.5], [True]), r"`mask` \(1,\)"),
        (lambda: plot.show_weights("ab", [0.5, 0.5], titles=TITLES), "3 `titles` for 1 rows"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_weights_become_bars_and_padding_one_bar_with_their_sum():
    weights = np.array([[0.25, 0.125, 0.375, 0.25], [0.5, 0.5, 0.0, 0.0]])
    mask = [True, True, False, False]
    figure = plot.show_weights(["a", "b", "", ""], weights, mask, titles=["wrong", "right"])
    wrong, right = figure.axes
    assert [bar.get_width() for bar in wrong.patches] == [0.25, 0.125, 0.625]
    assert [bar.get_width() for bar in right.patches] == [0.5, 0.5, 0]
    assert [label.get_text() for label in wrong.get_yticklabels()] == ["a", "b", "2 x padding"]
    assert [text.get_text() for text in wrong.texts] == ["25%", "12%", "62%"]
    whole = plot.show_weights(["a", "b"], [0.25, 0.75])
    assert [bar.get_width() for bar in whole.axes[0].patches] == [0.25, 0.75]


def test_without_matplotlib_the_error_names_the_extra(without):
    without("matplotlib.figure")
    with pytest.raises(ModuleNotFoundError, match=r"pip install -e '.\[plot\]'"):
        plot.show_weights(["a"], [1.0])

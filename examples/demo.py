"""Real sentence embeddings, pooled in both packages and by a softmax that counts padding (``make demo``).

``pairs`` is everywhere the dict of :func:`minilm_pairs.minilm_pairs`: tokens, masks and texts of 64 questions
(keys that begin with "hr", the head and relation of a fact) and of their answers ("tail").
"""

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from minilm_pairs import minilm_pairs
from rich.console import Console
from rich.table import Table
from rich.text import Text

import attnpool_flax
import attnpool_ref
from attnpool_ref import plot

PADDED_TO = (32, 64, 512)
PICTURE_PADDED_TO = 64
PICTURED = (0, 16, 62)  # pairs whose questions have from 1/3 to 4/5 of the wrong softmax's weight on padding


@dataclass(frozen=True)
class Agreement:
    """Difference between the results of the two packages for one pooling function.

    Attributes:
      pooling: the function's name.
      difference: the largest absolute difference.
      in_eps: the difference, divided by the product of float32's epsilon and the largest absolute value of the oracle's
        result.
    """

    pooling: str
    difference: float
    in_eps: float


@dataclass(frozen=True)
class Drift:
    """Errors of the pooled vectors after all texts are padded to one length.

    Attributes:
      length: the number of positions to which every text is padded.
      notebook: the distance of the questions' vectors of :func:`notebook_cross_pooling` from those of ``attnpool_ref``,
        divided by the norm of the latter; the median over the questions.
      lost: the part of a question's weights that :func:`notebook_cross_pooling` puts on padding; the median.
      moved: the largest absolute change that the padding makes in the results, of questions and answers, of
        ``attnpool_ref`` and of ``attnpool_flax``.
    """

    length: int
    notebook: float
    lost: float
    moved: tuple[float, float]


def notebook_cross_pooling(x, y, x_mask, y_mask):
    """Computes cross pooling as notebook 000 of docs/notebooks does: its softmax runs over padding as well.

    Returns:
      ((x_pooled, y_pooled), (x_weights, y_weights)).
    """
    x = x * x_mask[..., None]
    y = y * y_mask[..., None]
    scores = x @ np.swapaxes(y, 1, 2)
    x_weights = _plain_softmax(scores.sum(2))
    y_weights = _plain_softmax(scores.sum(1))
    pooled = (x * x_weights[..., None]).sum(1), (y * y_weights[..., None]).sum(1)
    return pooled, (x_weights, y_weights)


def _plain_softmax(scores):
    unnormalized = np.exp(scores - scores.max(1, keepdims=True))
    return unnormalized / unnormalized.sum(1, keepdims=True)


def pad_to(length, array):
    """Pads axis 1 of an array with zeros (False for a mask) up to the given length."""
    missing = [(0, 0)] * array.ndim
    missing[1] = (0, length - array.shape[1])
    return np.pad(array, missing)


def normalized(pairs):
    """Returns the pairs with every token divided by its L2 norm."""
    return pairs | {key: attnpool_ref.l2_normalize(pairs[key]) for key in ("hr", "tail")}


def measure_agreement(pairs):
    """Pools in both packages: a list of :class:`Agreement`. The oracle gets the float32 numbers as float64."""
    hr, _, hr_mask, tail_mask = _arrays(pairs)
    x, y, *_ = _arrays(normalized(pairs))
    calls = {
        "mean_pooling": ([hr], [hr_mask]),
        "attention_pooling": ([hr], [hr_mask]),
        "cross_attention_pooling": ([x, y], [hr_mask, tail_mask]),
    }
    rows = []
    for name, (arrays, masks) in calls.items():
        expected = _leaves(getattr(attnpool_ref, name)(*(array.astype(np.float64) for array in arrays), *masks))
        actual = _leaves(getattr(attnpool_flax, name)(*arrays, *masks))
        difference = _largest_difference(actual, expected)
        largest = max(float(np.max(np.abs(part))) for part in expected)
        rows.append(Agreement(name, difference, difference / (float(np.finfo(np.float32).eps) * largest)))
    return rows


def measure_sentence_embeddings(pairs):
    """Measures the difference of the oracle's pooled vectors from those that the encoder's library returned.

    Returns:
      The largest difference, and the largest difference that storing the tokens in float16 can cause (to first order).
    """
    differences, allowed = [], []
    for side in ("hr", "tail"):
        tokens, mask = pairs[side], pairs[f"{side}_mask"]
        pooled = attnpool_ref.mean_pooling(tokens, mask)
        differences.append(np.abs(attnpool_ref.l2_normalize(pooled) - pairs[f"{side}_sentence_embedding"]))
        rounding = attnpool_ref.mean_pooling(np.abs(tokens), mask) * np.finfo(np.float16).eps / 2
        allowed.append(rounding / np.linalg.norm(pooled, axis=-1, keepdims=True))
    return max(float(np.max(part)) for part in differences), max(float(np.max(part)) for part in allowed)


def measure_notebook(pairs, truth, length):
    """Measures :func:`notebook_cross_pooling` on pairs padded to a length: medians over the questions (``hr``).

    Args:
      pairs: with raw tokens, or with normalized ones (:func:`normalized`).
      truth: the oracle's (questions, answers) for the same pairs without this padding.
      length: the padded number of tokens.

    Returns:
      (relative distance of its pooled vectors from the true ones, its weight on padding).
    """
    (pooled, _), (weights, _) = _pair_by_pair(notebook_cross_pooling, length, pairs)
    distance = np.linalg.norm(pooled - truth[0], axis=-1) / np.linalg.norm(truth[0], axis=-1)
    return float(np.median(distance)), float(np.median(np.sum(weights * ~pad_to(length, pairs["hr_mask"]), -1)))


def measure_drift(pairs, lengths=PADDED_TO):
    """Pads the pairs to each length, and compares results with those without this padding: a list of :class:`Drift`."""
    unit = normalized(pairs)
    oracle, jitted = attnpool_ref.cross_attention_pooling, attnpool_flax.cross_attention_pooling
    truth, ours = oracle(*_arrays(unit)), _leaves(jitted(*_arrays(unit)))
    rows = []
    for length in lengths:
        error, lost = measure_notebook(unit, truth, length)
        padded = [pad_to(length, array) for array in _arrays(unit)]
        rows.append(
            Drift(
                length=length,
                notebook=error,
                lost=lost,
                moved=(
                    _largest_difference(_pair_by_pair(oracle, length, unit), truth),
                    _largest_difference(_leaves(jitted(*padded)), ours),
                ),
            )
        )
    return rows


def _pair_by_pair(pool, length, pairs):
    """Pads and pools one pair at a time by ``pool``: 64 matrices of 512 x 512 scores would not fit a CPU's cache."""
    results = []
    for index in range(len(pairs["hr"])):
        results.append(pool(*(pad_to(length, array[index : index + 1]) for array in _arrays(pairs))))
    return _concatenated(results)


def _concatenated(results):
    """Joins results that are arrays, or tuples of such results."""
    if isinstance(results[0], tuple):
        return tuple(_concatenated(parts) for parts in zip(*results, strict=True))
    return np.concatenate(results)


def measure_sharpness(pairs):
    """Measures how sharp the weights of cross-attention pooling are on the questions: medians over the pairs.

    Returns:
      The largest weight, and the effective number of tokens: the exponential of the weights' entropy.
    """
    _, (weights, _) = attnpool_ref.cross_attention_pooling(*_arrays(pairs), return_weights=True)
    logarithms = np.log(np.where(weights > 0, weights, 1))
    return float(np.median(weights.max(-1))), float(np.median(np.exp(-np.sum(weights * logarithms, -1))))


def measure_ranking(pairs):
    """Computes, by the name of each pooling, the fraction of questions whose own answer is the nearest by cosine."""
    unit = normalized(pairs)
    hr, tail, hr_mask, tail_mask = _arrays(unit)
    mean, attention = attnpool_ref.mean_pooling, attnpool_ref.attention_pooling
    cross = attnpool_flax.cross_attention_pooling  # called on 64 x 64 pairs

    def apart(head_vectors, tail_vectors):
        """Returns the cosines [64, 64] of questions and answers that are pooled separately."""
        return _cosine(head_vectors[:, None], tail_vectors)

    def together(pool):
        """Returns the cosines [64, 64] of each question and answer, pooled together."""
        return np.stack([_cosine(*pool(hr[i], tail, hr_mask[i], tail_mask)) for i in range(len(hr))])

    def notebook(x, y, x_mask, y_mask):
        x, x_mask = np.broadcast_to(x, (len(y), *x.shape)), np.broadcast_to(x_mask, (len(y), *x_mask.shape))
        return notebook_cross_pooling(*(pad_to(PADDED_TO[0], array) for array in (x, y, x_mask, y_mask)))[0]

    similarities = {
        "the encoder's own sentence embeddings": apart(
            pairs["hr_sentence_embedding"], pairs["tail_sentence_embedding"]
        ),
        "mean_pooling, raw tokens": apart(mean(pairs["hr"], hr_mask), mean(pairs["tail"], tail_mask)),
        "mean_pooling": apart(mean(hr, hr_mask), mean(tail, tail_mask)),
        "attention_pooling": apart(attention(hr, hr_mask), attention(tail, tail_mask)),
        'cross_attention_pooling, reduction="sum"': together(cross),
        'cross_attention_pooling, reduction="mean", scale=10': together(
            lambda *arrays: cross(*arrays, reduction="mean", scale=10)
        ),
        f"the notebook's, padded to {PADDED_TO[0]}": together(notebook),
    }
    return {name: float(np.mean(np.argmax(table, -1) == np.arange(len(table)))) for name, table in similarities.items()}


def draw(pairs, pictured=PICTURED, length=PICTURE_PADDED_TO):
    """Returns a figure of the notebook's and attnpool's weights of the ``pictured`` pairs, padded to ``length``."""
    unit = normalized(pairs)
    arrays = [pad_to(length, array[list(pictured)]) for array in _arrays(unit)]
    _, wrong = notebook_cross_pooling(*arrays)
    _, right = attnpool_ref.cross_attention_pooling(*arrays, return_weights=True)
    masks = arrays[2:]
    tokens = [pairs[key][list(pictured)] for key in ("hr_tokens", "tail_tokens")]
    longest = [max(int(mask[row].sum()) for mask in masks) + 3 for row in range(len(pictured))]

    lost = [np.sum(weights * ~mask, -1).max() for weights, mask in zip(wrong, masks, strict=True)]
    largest = max(*lost, *(np.max(weights) for weights in (*wrong, *right)))  # the longest bar

    figure = plot.new_figure((12, 0.24 * sum(longest) + 1.2))
    figure.suptitle(
        f"Attention weights of cross pooling over L2-normalised tokens, every text padded to {length} positions\n"
        "A softmax that also counts the padding, whose vectors are 0, loses that weight. attnpool's does not.",
        fontsize=12,
    )
    parts = figure.subfigures(len(pictured), 2, squeeze=False, height_ratios=longest, wspace=0.04)
    for row, pair in enumerate(pictured):
        for side, part_of_side in enumerate(parts[row]):
            count, words = int(masks[side][row].sum()), tokens[side][row]
            text = pairs[("hr_text", "tail_text")[side]][pair]
            part_of_side.suptitle(f"{('Question', 'Answer')[side]}: {text}", fontsize=10, fontweight="bold")
            panels = part_of_side.subplots(1, 2, sharex=True, sharey=True)
            for panel, title, weights, colour in zip(
                panels,
                ("softmax over all: {:.0%} lost", "attnpool: all on real tokens"),
                (wrong[side][row], right[side][row]),
                (plot.PADDING, plot.REAL),
                strict=True,
            ):
                plot.draw_weights(panel, [*words[:count], *[""] * (length - count)], weights, masks[side][row])
                panel.set_ylim(longest[row] - 2.4, -0.6)  # bars of one height on both sides
                panel.set_xlim(0, 1.15 * largest)  # and of one scale in all panels, with room for the last number
                panel.set_title(title.format(weights[count:].sum()), fontsize=9, color=colour)
    return figure


def run(out):
    """Measures everything, prints it and writes the picture to the path ``out``."""
    start = time.perf_counter()
    pairs = minilm_pairs()
    screen = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    count, width = len(pairs["hr"]), pairs["hr"].shape[-1]
    screen.print(
        f"{count} pairs of texts, a question (the beginning of a fact) and its answer, as {width}-wide token embeddings "
        "of all-MiniLM-L6-v2, cast to float32. The notebook is docs/notebooks, 000.\n"
    )
    _print_agreement(screen, pairs)
    _print_drift(screen, pairs)
    _print_ranking(screen, pairs)
    draw(pairs).savefig(out, dpi=130)
    screen.print(f"{time.perf_counter() - start:.1f} s", style="dim")
    screen.print(f"Open {out}: the weights, wrong and right.", soft_wrap=True)


def _print_agreement(screen, pairs):
    table = _table("NumPy and JAX agree", "pooling", "largest difference", "in eps of the largest value")
    for row in measure_agreement(pairs):
        table.add_row(row.pooling, f"{row.difference:.1e}", f"{row.in_eps:.1f}")
    screen.print(table)
    difference, allowed = measure_sentence_embeddings(pairs)
    verdict = "is" if difference <= allowed else "is NOT"
    screen.print(
        f"l2_normalize(mean_pooling(hr, hr_mask)) {verdict} the encoder's own sentence embedding: the largest difference "
        f"is {difference:.1e},\nand storing the tokens as float16 can make {allowed:.1e}.\n"
    )


def _print_drift(screen, pairs):
    table = _table(
        "Cross pooling of the same pairs, padded further (medians, of the questions)",
        "padded to",
        "the notebook is off by",
        "its weight on padding",
        "attnpool moves by (NumPy, JAX)",
    )
    for row in measure_drift(pairs):
        moved = ", ".join(f"{value:.0e}" if value else "0" for value in row.moved)
        table.add_row(
            str(row.length), Text(f"{row.notebook:.0%}", "red"), Text(f"{row.lost:.0%}", "red"), Text(moved, "green")
        )
    screen.print(table)
    longest = PADDED_TO[-1]
    error, _ = measure_notebook(pairs, attnpool_ref.cross_attention_pooling(*_arrays(pairs)), longest)
    (largest, counting), (raw_largest, raw_counting) = measure_sharpness(normalized(pairs)), measure_sharpness(pairs)
    screen.print(
        f"Tokens are L2-normalised here: the largest weight is {largest:.2f}, and {counting:.1f} tokens count.\n"
        f"Raw tokens saturate the softmax: the largest weight is {raw_largest:.2f}, {raw_counting:.1f} tokens count, "
        f"and the bug hides:\npadded to {longest}, the notebook is off by {error:.0%}.\n"
    )


def _print_ranking(screen, pairs):
    table = _table("How often the right answer is the nearest of all", "pooling (of L2-normalised tokens)", "first")
    ranking = measure_ranking(pairs)
    for name, fraction in ranking.items():
        table.add_row(name, f"{fraction:.1%}")
    screen.print(table)
    screen.print(
        "Padding makes the notebook's vectors shorter and leaves their direction, so a cosine cannot see the bug;\n"
        "whatever follows and does look at lengths (a dot product, a layer, a loss) can.\n"
    )


def _table(title, *columns):
    table = Table(title=title, title_justify="left", title_style="bold", show_edge=False, pad_edge=False)
    table.add_column(columns[0])
    for column in columns[1:]:
        table.add_column(column, justify="right")
    return table


def _arrays(pairs):
    return [pairs[key] for key in ("hr", "tail", "hr_mask", "tail_mask")]


def _leaves(result):
    return [np.asarray(part) for part in (result if isinstance(result, tuple) else (result,))]


def _largest_difference(actual, expected):
    return max(float(np.max(np.abs(a - b))) for a, b in zip(actual, expected, strict=True))


def _cosine(x, y):
    return np.sum(attnpool_ref.l2_normalize(x) * attnpool_ref.l2_normalize(y), -1)


def main(arguments=None):
    """Reads the arguments of the command line, and refuses a picture that cannot be written before it computes."""
    parser = argparse.ArgumentParser(description="Pool 64 pairs of texts in NumPy and in JAX, and plot the weights.")
    parser.add_argument(
        "--out", default="attnpool_demo.png", help="file of the picture, which is replaced if it exists"
    )
    out = Path(parser.parse_args(arguments).out)
    known = plot.new_figure((1, 1)).canvas.get_supported_filetypes()
    if not out.absolute().parent.is_dir():
        parser.error(f"there is no folder for {out}")
    if out.suffix.lower().removeprefix(".") not in known:
        parser.error(f"no picture can be written as {out}; the endings are {', '.join(sorted(known))}")
    run(out)


if __name__ == "__main__":
    main()

"""Multiple-instance learning from bags of handwritten digits: is a 9 in the bag, and which digit is it?

A bag has 6 to 20 digits of scikit-learn's data set, and one label for all digits: does it contain a 9? This is a small
version of the experiment of Ilse, Tomczak and Welling 2018 on attention-based multiple instance learning. A perceptron
maps each digit to features, and four heads pool these: the mean, the maximum, additive attention and gated attention.
No digit of a test bag is in a bag for training. The labels do not say which digit is the 9, but the weights of
attention find it.

Run it: ``python examples/learn_bags.py`` (two minutes on two cores), or with ``--small`` for a quick run.
"""

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from rich.progress import track
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from attnpool_flax import AdditiveAttentionPool, max_pooling, mean_pooling
from attnpool_ref.plot import REAL, new_figure

TARGET, SHORTEST, LONGEST = 9, 6, 20
FEATURES, HIDDEN = 32, 32
HEADS = "mean", "max", "attention", "gated"
FOUND = "AUC of bags", "bags right", "largest weight on a 9", "AUC of digits"


class Bags(NamedTuple):
    """Bags of digits: x [B, L, 64] with padding, lengths [B], digits [B, L] (-1 for padding), label [B]."""

    x: Any
    lengths: Any
    digits: Any
    label: Any


class Classifier(nnx.Module):
    """Classifier of bags; ``head`` is one of :data:`HEADS`."""

    def __init__(self, head, rngs):
        self.head = head
        self.features = nnx.Sequential(nnx.Linear(64, 64, rngs=rngs), nnx.relu, nnx.Linear(64, FEATURES, rngs=rngs))
        self.logit = nnx.Linear(FEATURES, 1, rngs=rngs)
        self.pool = nnx.data(None)
        if head in ("attention", "gated"):
            self.pool = AdditiveAttentionPool(FEATURES, HIDDEN, gated=head == "gated", rngs=rngs)

    def __call__(self, x, lengths):
        """Returns (logit [B], weights [B, L] of attention, or None)."""
        x = self.features(x)
        if self.pool is not None:
            pooled, weights = self.pool(x, lengths=lengths, return_weights=True)
        else:
            pooled, weights = (mean_pooling if self.head == "mean" else max_pooling)(x, lengths=lengths), None
        return self.logit(pooled)[..., 0], weights


def main(arguments=None):
    """Trains every head with every seed, prints the figures, writes the picture; returns the figures by head."""
    options = parser().parse_args(arguments)
    seeds, steps = options.seeds or (1 if options.small else 5), options.steps or (60 if options.small else 600)
    rows = {head: [] for head in HEADS}
    for seed in track(range(seeds), "seeds"):
        train, test = drawn(seed, options.bags)
        for head in HEADS:
            logit, weights = learned(head, train, test, seed, steps)
            rows[head].append(figures(test, logit, weights))
            if head == "gated" and not seed:
                picture(test, weights).savefig(options.out, dpi=120)
    print(f"{options.bags} bags to learn from, as many to test; {steps} steps; {seeds} seeds, mean ± deviation")
    print("".join(f"{title:<24}" for title in ("head", *FOUND)))
    for head, found in rows.items():
        cells = [f"{np.mean(c):.3f} ± {np.std(c):.3f}" if np.isfinite(c).all() else "" for c in np.transpose(found)]
        print("".join(f"{cell:<24}" for cell in (head, *cells)).rstrip())
    print(f"picture: {options.out}")
    return {head: np.mean(found, 0) for head, found in rows.items()}


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="one seed, few steps")
    parser.add_argument("--seeds", type=int, help="how many seeds (5)")
    parser.add_argument("--steps", type=int, help="steps of training (600)")
    parser.add_argument("--bags", type=int, default=500, help="bags to learn from, and as many to test (500)")
    parser.add_argument("--out", default="bags.png", help="where the picture goes (bags.png)")
    return parser


def drawn(seed, count):
    """Returns (bags for training, bags for testing) without common digits; half of the bags have one to three 9s."""
    digits, rng = load_digits(), np.random.default_rng(seed)
    order = rng.permutation(len(digits.target))
    return [bags_of(digits.data[own] / 16, digits.target[own], rng, count) for own in np.array_split(order, 2)]


def bags_of(images, targets, rng, count):
    """Returns bags of these digits."""
    lengths = rng.integers(SHORTEST, LONGEST + 1, count)
    label = np.arange(count) % 2
    digits = np.full((count, LONGEST), -1)
    x = np.zeros((count, LONGEST, 64), np.float32)  # 0, not NaN: the perceptron also computes padding
    with_target, others = np.flatnonzero(targets == TARGET), np.flatnonzero(targets != TARGET)
    for bag, length in enumerate(lengths):
        few = rng.integers(1, 4) * label[bag]
        chosen = rng.permutation(np.concatenate([rng.choice(with_target, few), rng.choice(others, length - few)]))
        x[bag, :length], digits[bag, :length] = images[chosen], targets[chosen]
    return Bags(x, lengths, digits, label)


OPTIMIZER = optax.adam(3e-3)
"""One optimizer for all seeds, so that all of them run the program that the first one compiled."""


@nnx.jit
def step(model, optimizer, few):
    """Takes one training step on a few bags."""

    def loss_of(model):
        logit, _ = model(few.x, few.lengths)
        return optax.sigmoid_binary_cross_entropy(logit, few.label).mean()

    optimizer.update(model, nnx.grad(loss_of)(model))


@nnx.jit
def answers(model, x, lengths):
    """Returns (logit, weights or None) of bags."""
    return model(x, lengths)


def learned(head, train, test, seed, steps):
    """Returns (logit, weights or None) of the test bags, after training on the others."""
    model = Classifier(head, nnx.Rngs(seed))
    optimizer = nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)
    train, rng = jax.tree.map(jnp.asarray, train), np.random.default_rng(seed)
    for _ in range(steps):
        few = rng.choice(len(train.label), 64)
        step(model, optimizer, jax.tree.map(lambda part, few=few: part[few], train))
    return jax.tree.map(np.asarray, answers(model, test.x, test.lengths))


def figures(test, logit, weights):
    """Returns the figures of one head and seed, named in :data:`FOUND`; NaN if the head has no weights."""
    bags = roc_auc_score(test.label, logit), np.mean((logit > 0) == test.label)
    if weights is None:
        return *bags, np.nan, np.nan
    holds = test.label == 1
    hits = np.take_along_axis(test.digits, weights.argmax(1)[:, None], 1)[holds, 0] == TARGET
    each = [
        roc_auc_score(d[:n] == TARGET, w[:n])
        for d, w, n in zip(test.digits, weights, test.lengths, strict=True)
        if TARGET in d
    ]
    return *bags, np.mean(hits), np.mean(each)


def picture(test, weights, count=5):
    """Draws the first bags with a 9: each digit, and its weight below it."""
    figure = new_figure((LONGEST * 0.55, count * 1.1))
    panels = figure.subplots(2 * count, LONGEST, squeeze=False, gridspec_kw={"height_ratios": [2, 1] * count})
    for row, bag in enumerate(np.flatnonzero(test.label)[:count]):
        for place, (image, bar) in enumerate(zip(panels[2 * row], panels[2 * row + 1], strict=True)):
            for panel in (image, bar):
                panel.set_axis_off()
            if place < test.lengths[bag]:
                image.imshow(test.x[bag, place].reshape(8, 8), cmap="Greys")
                bar.bar(0, weights[bag, place], color="#c23b22" if test.digits[bag, place] == TARGET else REAL)
            bar.set_ylim(0, weights[bag].max())
    figure.suptitle("Weights of gated attention in bags that hold a 9; those of a 9 in red")
    return figure


if __name__ == "__main__":
    main()

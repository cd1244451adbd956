"""Speaker recognition from signals of different lengths, by the mean, by statistics, and by attentive statistics.

A signal has 40 to 200 frames of eight channels. The signals are artificial: parts in which a speaker speaks, and parts
of noise that is as loud. While a speaker speaks, each of seven channels has a standard deviation that depends on the
speaker, around a mean of 0. So the mean of the frames has no information, but their deviation has (Snyder et al. 2018).
It has more if frames of noise have little weight (Okabe, Koshinaka and Shinoda 2018). The eighth channel tells speech
from noise, but no label does.

Run it: ``python examples/learn_signals.py`` (two minutes on two cores), or with ``--small`` for a quick run.
"""

import argparse
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from rich.progress import track

from attnpool_flax import AttentiveStatisticsPool, mean_pooling, statistics_pooling
from attnpool_ref.plot import REAL, new_figure

SPEAKERS, CHANNELS, SHORTEST, LONGEST = 6, 8, 40, 200
HEADS = "mean", "statistics", "attentive statistics"


class Signals(NamedTuple):
    """Signals x [B, L, c] with padding, lengths [B], whether a frame is speech [B, L], and the speaker [B]."""

    x: Any
    lengths: Any
    speaks: Any
    speaker: Any


class Classifier(nnx.Module):
    """Classifier of signals with a logit for each speaker; ``head`` is one of :data:`HEADS`."""

    def __init__(self, head, rngs):
        self.head = head
        self.pool = nnx.data(None)
        if head == "attentive statistics":
            self.pool = AttentiveStatisticsPool(CHANNELS, hidden_features=16, per_channel=False, rngs=rngs)
        self.logits = nnx.Linear(CHANNELS if head == "mean" else 2 * CHANNELS, SPEAKERS, rngs=rngs)

    def __call__(self, x, lengths):
        """Returns (logits [B, speakers], weights [B, L] of attention, or None)."""
        weights = None
        if self.pool is not None:
            pooled, weights = self.pool(x, lengths=lengths, return_weights=True)
        else:
            pooled = (mean_pooling if self.head == "mean" else statistics_pooling)(x, lengths=lengths)
        return self.logits(pooled), weights


def main(arguments=None):
    """Trains every head with every seed, prints the figures, writes the picture; returns the figures by head."""
    options = parser().parse_args(arguments)
    seeds, steps = options.seeds or (1 if options.small else 5), options.steps or (100 if options.small else 1000)
    right, shares = {head: [] for head in HEADS}, []
    for seed in track(range(seeds), "seeds"):
        rng = np.random.default_rng(seed)
        spread = np.exp(rng.normal(0, 0.25, (SPEAKERS, CHANNELS - 1)))
        train, test = (signals(spread, rng, options.signals) for _ in range(2))
        for head in HEADS:
            logits, weights = learned(head, train, test, seed, steps)
            right[head].append(np.mean(logits.argmax(1) == test.speaker))
            if weights is not None:
                shares.append((weights * test.speaks).sum(1).mean())
                if not seed:
                    picture(test, weights).savefig(options.out, dpi=120)
    print(f"{options.signals} signals to learn from, as many to test; {steps} steps; {seeds} seeds, mean ± deviation")
    for head, found in right.items():
        print(f"{head:<22} {np.mean(found):.3f} ± {np.std(found):.3f} of {SPEAKERS} speakers right")
    print(
        f"weight on frames of speech: {np.mean(shares):.3f} ± {np.std(shares):.3f}; they are {test.speaks.sum() / test.lengths.sum():.3f} of all frames"
    )
    print(f"picture: {options.out}")
    return {head: np.mean(found) for head, found in right.items()}


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", action="store_true", help="one seed, few steps")
    parser.add_argument("--seeds", type=int, help="how many seeds (5)")
    parser.add_argument("--steps", type=int, help="steps of training (1000)")
    parser.add_argument("--signals", type=int, default=600, help="signals to learn from, and as many to test (600)")
    parser.add_argument("--out", default="signals.png", help="where the picture goes (signals.png)")
    return parser


def signals(spread, rng, count):
    """Returns signals of speakers; ``spread`` [speakers, channels - 1] are the standard deviations of their channels."""
    lengths, speaker = rng.integers(SHORTEST, LONGEST + 1, count), rng.integers(SPEAKERS, size=count)
    x = np.full((count, LONGEST, CHANNELS), np.nan, np.float32)  # NaN would show that a head reads padding
    speaks = np.zeros((count, LONGEST), bool)
    for i, length in enumerate(lengths):
        turns = np.cumsum(rng.random(length) < 0.08)  # an odd number of turns exchanges noise and speech
        speaks[i, :length] = (turns + rng.integers(2)) % 2
        voice = np.where(speaks[i, :length, None], spread[speaker[i]], np.exp(rng.normal(0, 0.5, CHANNELS - 1)))
        x[i, :length, 1:] = voice * rng.standard_normal((length, CHANNELS - 1))
        x[i, :length, 0] = speaks[i, :length] + 0.3 * rng.standard_normal(length)
    return Signals(x, lengths, speaks, speaker)


OPTIMIZER = optax.adam(1e-2)
"""One optimizer for all seeds, so that all of them run the program that the first one compiled."""


@nnx.jit
def step(model, optimizer, few):
    """Takes one training step on a few signals."""

    def loss_of(model):
        logits, _ = model(few.x, few.lengths)
        return optax.softmax_cross_entropy_with_integer_labels(logits, few.speaker).mean()

    optimizer.update(model, nnx.grad(loss_of)(model))


@nnx.jit
def answers(model, x, lengths):
    """Returns (logits, weights or None) of signals."""
    return model(x, lengths)


def learned(head, train, test, seed, steps):
    """Returns (logits, weights or None) of the test signals, after training on the others."""
    model = Classifier(head, nnx.Rngs(seed))
    optimizer = nnx.Optimizer(model, OPTIMIZER, wrt=nnx.Param)
    train, rng = jax.tree.map(jnp.asarray, train), np.random.default_rng(seed)
    for _ in range(steps):
        few = rng.choice(len(train.speaker), 64)
        step(model, optimizer, jax.tree.map(lambda part, few=few: part[few], train))
    return jax.tree.map(np.asarray, answers(model, test.x, test.lengths))


def picture(test, weights, count=4):
    """Draws the longest signals: one channel, and the weight of each frame; frames of speech are shaded."""
    figure = new_figure((9, 2 * count))
    panels = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
    for panel, i in zip(panels, np.argsort(-test.lengths)[:count], strict=True):
        length = test.lengths[i]
        panel.plot(test.x[i, :length, 1], color="0.6", linewidth=0.8)
        panel.fill_between(
            range(length), 0, 1, where=test.speaks[i, :length], transform=panel.get_xaxis_transform(), color="#f2d9a6"
        )
        panel.set_ylabel("channel 1")
        weight = panel.twinx()
        weight.plot(weights[i, :length], color=REAL)
        weight.set_ylabel("weight")
    panels[-1].set_xlabel("frame")
    figure.suptitle("Weights of attentive statistics; the shaded frames are speech")
    return figure


if __name__ == "__main__":
    main()

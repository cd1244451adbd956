"""Ranking of 20,000 candidate entities for 64 queries by cross pooling, in blocks of candidates and bounded memory.

The queries are the 64 texts "entity, relation" of the pairs beside this file (`minilm_pairs.md`), and their tails
are among the candidates. The other candidates are random sets of the tails' real tokens, as large as real tails. The
score of a query and a candidate is the cosine of the two vectors that :func:`attnpool_flax.cross_attention_pooling`
returns for them.

Run it: ``python examples/rank_candidates.py`` (a minute on two cores), or with ``--small`` for a quick run.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
from measuring import measured
from minilm_pairs import minilm_pairs
from rich.progress import track

import attnpool_flax
import attnpool_ref

SCALE = 10.0


def main(arguments=None):
    """Ranks, compares a sample with the oracle (`attnpool_ref`), and prints time and memory."""
    options = parser().parse_args(arguments)
    x, x_mask, y, y_mask, truth = drawn(options.candidates)
    with measured() as took:
        scores, places = rank(x, x_mask, y, y_mask, options.top, options.block)
    print(f"{len(x)} queries, {len(y):,} candidates: {took.seconds:.1f} s, {took.peak / 2**20:.0f} MiB beside the data")

    with measured() as took:
        off = checked(x, x_mask, y, y_mask, scores, places, options.sample)
    seconds = took.seconds / options.sample * len(x) * len(y)
    print(
        f"the oracle, pair by pair: {seconds:.0f} s as estimated from {options.sample} pairs, {took.peak / 2**20:.0f} MiB"
    )
    print(f"largest difference from the oracle on these pairs: {off:.1e}")
    alone = np.argsort(-cosines(attnpool_flax, x, y[truth], x_mask, y_mask[truth]), 1)
    for what, order, own in (("all candidates", places, truth), ("the real tails", alone, np.arange(len(x)))):
        found = [f"{np.mean((order[:, :top] == own[:, None]).any(1)):.0%} of {top}" for top in (1, 10, options.top)]
        print(f"the query's own tail among the first of {what}: {', '.join(found)}")
    return off


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--small", dest="candidates", action="store_const", const=500, help="500 candidates")
    parser.add_argument("--candidates", type=int, help="how many candidates (20,000)")
    parser.add_argument("--block", type=int, default=250, help="candidates at a time (250)")
    parser.add_argument("--top", type=int, default=100, help="how many are kept for each query (100)")
    parser.add_argument("--sample", type=int, default=200, help="pairs that the oracle looks at (200)")
    parser.set_defaults(candidates=20_000)
    return parser


def drawn(candidates, seed=0):
    """Returns (queries [Q, L, d], mask, candidates [C, T, d], mask, the index of each query's own tail)."""
    pairs, rng = minilm_pairs(), np.random.default_rng(seed)
    queries, tails = (attnpool_ref.l2_normalize(pairs[key]) for key in ("hr", "tail"))
    mask = pairs["tail_mask"]
    tokens = tails[mask]
    lengths = rng.choice(mask.sum(1), candidates - len(tails))
    y = np.zeros((candidates, *tails.shape[1:]), np.float32)
    y_mask = np.concatenate([mask, attnpool_ref.lengths_to_mask(lengths, tails.shape[1])])
    y[: len(tails)] = np.where(mask[..., None], tails, 0)
    y[len(tails) :][y_mask[len(tails) :]] = tokens[rng.integers(len(tokens), size=lengths.sum())]
    order = rng.permutation(candidates)
    return queries, pairs["hr_mask"], y[order], y_mask[order], np.argsort(order)[: len(tails)]


def rank(x, x_mask, y, y_mask, top, block):
    """Returns (scores [Q, top], indices [Q, top]) of the best candidates of each query, the best first."""
    x, x_mask = jnp.asarray(x), jnp.asarray(x_mask)
    best = jnp.full((len(x), top), -jnp.inf), jnp.full((len(x), top), -1)
    for start in track(range(0, len(y), block), "candidates"):
        few, few_mask = (padded(part[start : start + block], block) for part in (y, y_mask))
        best = better(best, x, x_mask, few, few_mask, jnp.arange(start, start + block), len(y))
    return tuple(np.asarray(part) for part in best)


def padded(part, length):
    """Returns a block that is padded to the full size, so that all blocks use one program."""
    return np.pad(part, [(0, length - len(part))] + [(0, 0)] * (part.ndim - 1))


@functools.partial(jax.jit, donate_argnums=0)
def better(best, x, x_mask, y, y_mask, places, count):
    """Returns the best of the previous candidates and of a block; indices from ``count`` on are padding."""
    scores = jnp.where(places < count, cosines(attnpool_flax, x, y, x_mask, y_mask), -jnp.inf)
    scores = jnp.concatenate([best[0], scores], 1)
    places = jnp.concatenate([best[1], jnp.broadcast_to(places, (len(x), len(places)))], 1)
    scores, chosen = jax.lax.top_k(scores, best[0].shape[1])
    return scores, jnp.take_along_axis(places, chosen, 1)


def cosines(package, x, y, x_mask, y_mask):
    """Returns the cosines [Q, C] of the two pooled vectors of each pair."""
    pooled = package.cross_attention_pooling_all_pairs(x, y, x_mask, y_mask, reduction="mean", scale=SCALE)
    x_pooled, y_pooled = (package.l2_normalize(part) for part in pooled)
    return (x_pooled * y_pooled).sum(-1)


def checked(x, x_mask, y, y_mask, scores, places, sample):
    """Returns the largest difference from the oracle on a sample of pairs, computed one by one."""
    rng, off = np.random.default_rng(1), 0.0
    for _ in range(sample):
        query, rank = rng.integers(len(x)), rng.integers(places.shape[1])
        place = places[query, rank]
        pooled = attnpool_ref.cross_attention_pooling(
            x[query], y[place], x_mask[query], y_mask[place], reduction="mean", scale=SCALE
        )
        first, second = (attnpool_ref.l2_normalize(part) for part in pooled)
        off = max(off, abs(float(first @ second) - float(scores[query, rank])))
    return off


if __name__ == "__main__":
    main()

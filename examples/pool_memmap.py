"""Pooling of ten million tokens from a file in bounded memory: whole in JAX, and as sentences in NumPy.

The file is a ``numpy.memmap`` of float16 (7.2 GiB); if it does not exist, it is made of real token embeddings.
Attention pooling over the whole file computes the state of each chunk, merges the states and finalizes the result. The
gradient of the query through a ``lax.scan`` over the chunks of an array in memory needs memory for one chunk, not for
all chunks. In NumPy the same tokens are pooled as sentences of 96 tokens, to one vector for each.

Run it: ``python examples/pool_memmap.py FILE`` (a few minutes on two cores), or with ``--small`` for a quick run.
"""

import argparse
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from measuring import measured, resident
from minilm_pairs import minilm_pairs
from rich.progress import track

import attnpool_flax
import attnpool_ref

WIDTH = 384
SENTENCE = 96
"""Tokens of a sentence; 10,000,000 tokens are 104,166 sentences."""
IN_MEMORY = 2**17
"""Tokens of the array in memory, and of the part that is compared with the oracle."""


def main(arguments=None):
    """Pools a file, compares a part with the oracle (`attnpool_ref`), and measures the memory of a query's gradient."""
    options = parser().parse_args(arguments)
    path = Path(options.file or Path(tempfile.mkdtemp(prefix="tokens")) / "tokens.float16")
    tokens = opened(path, options.tokens)
    query = attnpool_ref.l2_normalize(np.asarray(tokens[0], np.float32))
    with measured() as took:
        pooled = pool_file(tokens, query, options.chunk)
    rate = len(tokens) / took.seconds
    print(
        f"{len(tokens):,} tokens: {took.seconds:.1f} s, {rate:,.0f} a second, {rate * 2 * WIDTH / 2**30:.2f} GiB a second"
    )
    print(
        f"memory beside mapped pages: {resident() / 2**20:.0f} MiB, of which pooling added {took.peak / 2**20:.0f} MiB"
    )

    sentences = tokens[: len(tokens) // SENTENCE * SENTENCE].reshape(-1, SENTENCE, WIDTH)
    lengths = np.random.default_rng(1).integers(1, SENTENCE + 1, len(sentences))
    with measured() as took:
        vectors = pool_sentences(sentences, lengths, options.chunk // SENTENCE)
    print(
        f"{len(vectors):,} sentences in NumPy: {took.seconds:.1f} s, {len(vectors) / took.seconds:,.0f} a second; "
        f"pooling added {took.peak / 2**20:.0f} MiB"
    )

    few = np.asarray(tokens[:IN_MEMORY])
    expected = attnpool_ref.attention_pooling(few, None, query)
    off = float(np.max(np.abs(pool_file(few, query, options.chunk) - expected)))
    print(
        f"largest difference from the oracle on {len(few):,} tokens, of vectors up to {np.max(np.abs(pooled)):.2f}: {off:.1e}"
    )

    share = temporaries(len(few) // 8, query) / (2 * few.nbytes)
    print(f"temporaries of a query's gradient through a loop over 8 chunks: {share:.2f} of the tokens, in float32")
    return off, share


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", nargs="?", help="where the tokens are or will be (a new temporary file)")
    parser.add_argument("--small", dest="tokens", action="store_const", const=200_000, help="200,000 tokens")
    parser.add_argument("--tokens", type=int, help="how many tokens (10,000,000)")
    parser.add_argument("--chunk", type=int, default=2**15, help="tokens at a time (32,768)")
    parser.set_defaults(tokens=10_000_000)
    return parser


def opened(path, tokens):
    """Returns the file as an array [tokens, WIDTH] of float16; writes it if it does not exist."""
    if not path.exists():
        pairs, rng = minilm_pairs(), np.random.default_rng(0)
        real = np.concatenate([pairs[key][pairs[f"{key}_mask"]] for key in ("hr", "tail")]).astype(np.float16)
        made = np.memmap(path, np.float16, "w+", shape=(tokens, WIDTH))
        for start in track(range(0, tokens, IN_MEMORY), "writing"):
            few = min(IN_MEMORY, tokens - start)
            made[start : start + few] = real[rng.integers(len(real), size=few)]
        made.flush()
    return np.memmap(path, np.float16, "r").reshape(-1, WIDTH)


def pool_file(tokens, query, chunk):
    """Returns the attention pooling [WIDTH] of all tokens, and reads a given number of them at a time."""
    whole = None
    for start in track(range(0, len(tokens), chunk), "chunks"):
        few = tokens[start : start + chunk]
        state = attnpool_flax.attention_state(few, lengths=len(few), query=query)
        whole = state if whole is None else attnpool_flax.merge_states(whole, state)
    return np.asarray(attnpool_flax.finalize_state(whole))


def pool_sentences(sentences, lengths, chunk):
    """Returns the means [n, WIDTH] of sentences [n, SENTENCE, WIDTH] in NumPy, ``chunk`` sentences at a time."""
    vectors = np.empty((len(sentences), WIDTH), np.float32)
    for start in track(range(0, len(sentences), chunk), "sentences"):
        few = slice(start, start + chunk)
        part = sentences[few].astype(np.float32)  # means of float16 would be rounded to float16
        vectors[few] = attnpool_ref.mean_pooling(part, lengths=lengths[few])
    return vectors


def loss(query, chunks):
    """Returns a number that depends on the pooling of all chunks [n, L, WIDTH]."""

    def step(whole, few):
        return attnpool_flax.merge_states(whole, attnpool_flax.attention_state(few, None, query)), None

    empty = attnpool_flax.attention_state(chunks[0, :0], None, query)
    return jnp.sum(attnpool_flax.finalize_state(jax.lax.scan(step, empty, chunks)[0]) ** 2)


def temporaries(length, query):
    """Returns the bytes of temporaries of the query's gradient, through a loop over 8 chunks in float32."""
    chunks = jax.ShapeDtypeStruct((8, length, WIDTH), query.dtype)
    program = jax.jit(jax.grad(loss)).lower(jnp.asarray(query), chunks).compile()
    return program.memory_analysis().temp_size_in_bytes


if __name__ == "__main__":
    main()

"""Pooling of ragged token embeddings in Parquet to one vector per document, on a local cluster of processes.

Each partition is read as one packed row of tokens with segment ids, padded only at its end. A partition whose result
exists is not computed again, so you can stop the program and start it again. If a worker dies, another one computes its
partition (``--kill`` shows this).

Run it: ``python examples/pool_corpus.py FOLDER`` (a minute on two cores), or with ``--small`` for a quick run.
"""

import argparse
import itertools
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client, LocalCluster, as_completed, get_worker
from minilm_pairs import minilm_pairs
from rich.progress import Progress

import attnpool_ref

TOKENS_TOGETHER = 2**14
"""Packed rows are padded to a multiple of this number, so that few shapes are compiled."""


def main(arguments=None):
    """Writes a corpus if there is none, pools it, and compares a partition with the oracle (`attnpool_ref`)."""
    options = parser().parse_args(arguments)
    folder = Path(options.folder or tempfile.mkdtemp(prefix="corpus"))
    parts = write_corpus(folder / "tokens", options.documents, options.partitions)
    began = time.perf_counter()
    computed, tokens = pool_corpus(parts, folder / "vectors", options.workers, options.kill)
    seconds = time.perf_counter() - began
    print(
        f"{computed} of {len(parts)} partitions computed, the others were there: {seconds:.1f} s with the cluster's start"
    )
    if computed:
        print(f"{tokens:,} tokens, {tokens / seconds:,.0f} a second, {options.workers} processes")
    off = checked(parts[-1], folder / "vectors" / parts[-1].name)
    print(f"largest difference from the oracle in {parts[-1].name}: {off:.1e}")
    return computed, off


def parser():
    """Returns the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="where the corpus is or will be (a new temporary folder)")
    parser.add_argument("--small", dest="documents", action="store_const", const=2_000, help="2,000 documents")
    parser.add_argument("--documents", type=int, help="how many documents (40,000)")
    parser.add_argument("--partitions", type=int, default=16, help="how many files (16)")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes (one a core)")
    parser.add_argument("--kill", action="store_true", help="kill a worker when the first partition is done")
    parser.set_defaults(documents=40_000)
    return parser


def write_corpus(folder, documents, partitions, seed=0):
    """Returns the files of the corpus; writes missing ones from real tokens, in documents as long as texts are."""
    folder.mkdir(parents=True, exist_ok=True)
    pairs = minilm_pairs()
    tokens = np.concatenate([pairs[key][pairs[f"{key}_mask"]] for key in ("hr", "tail")])
    paths = []
    for part, ids in enumerate(np.array_split(np.arange(documents), partitions)):
        paths.append(folder / f"part-{part:04}.parquet")
        if paths[-1].exists():
            continue
        rng = np.random.default_rng((seed, part))
        lengths = np.minimum(rng.lognormal(3.2, 0.7, len(ids)).astype(int), 512)  # some documents are empty
        values = tokens[rng.integers(len(tokens), size=lengths.sum())]
        column = ragged(lengths, values)
        replaced(paths[-1], pa.table({"id": ids, "tokens": column}))
    return paths


def ragged(lengths, values):
    """Returns vectors [N, d] as a column of lists, with the given number of vectors for each document."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32()), vectors)


def replaced(path, table):
    """Writes a file atomically: it is complete or does not exist."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    pq.write_table(table, unfinished)
    unfinished.replace(path)


def pool_corpus(parts, folder, workers, kill=False):
    """Returns (the number of partitions that were computed, the number of their tokens)."""
    folder.mkdir(parents=True, exist_ok=True)
    left = [part for part in parts if not (folder / part.name).exists()]
    if not left:
        return 0, 0
    tokens = 0
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client, Progress() as progress:
        task = progress.add_task("partitions", total=len(left))
        for done in as_completed(client.map(pool_partition, left, folder=folder, pure=False)):
            process, count = done.result()
            tokens += count
            progress.advance(task)
            if kill:
                os.kill(process, signal.SIGKILL)
                kill = False
    return len(left), tokens


def pool_partition(path, folder):
    """Pools the documents of a file; returns the id of the process and the number of tokens."""
    import attnpool_flax  # imported in the worker, because JAX starts threads in the process that imports it

    table = pq.read_table(path)
    x, segment_ids, documents = packed(table["tokens"])
    fill = -len(x) % TOKENS_TOGETHER
    x = np.pad(x, ((0, fill), (0, 0)))
    segment_ids = np.pad(segment_ids, (0, fill), constant_values=max(documents - 1, 0))
    mask = np.arange(len(x)) < len(x) - fill
    pooled = attnpool_flax.segment_attention_pooling(x, segment_ids, documents, mask, indices_are_sorted=True)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.asarray(pooled).reshape(-1)), x.shape[1])
    replaced(folder / path.name, pa.table({"id": table["id"], "vector": vectors}))
    get_worker().log_event("pooled", path.name)
    return os.getpid(), int(mask.sum())


def packed(column):
    """Returns (x [N, d], segment ids [N], the number of documents) of a column of lists."""
    lists = column.combine_chunks()
    vectors = lists.flatten()
    x = np.asarray(vectors.flatten()).reshape(len(vectors), -1)
    lengths = np.asarray(lists.value_lengths())
    return x, np.repeat(np.arange(len(lengths)), lengths), len(lengths)


def checked(tokens, vectors):
    """Returns the largest difference of a file of vectors from the oracle, computed document by document."""
    x, segment_ids, documents = packed(pq.read_table(tokens)["tokens"])
    got = np.stack(pq.read_table(vectors)["vector"].to_numpy())
    starts = np.searchsorted(segment_ids, np.arange(documents + 1))
    each = (attnpool_ref.attention_pooling(x[a:b]) for a, b in itertools.pairwise(starts))
    return max(float(np.max(np.abs(want - have))) for want, have in zip(each, got, strict=True))


if __name__ == "__main__":
    main()

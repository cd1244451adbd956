"""The examples, small: what they compute is the oracle's, and what they promise holds."""

import export_onnx
import learn_bags
import learn_signals
import numpy as np
import pool_corpus
import pool_memmap
import pool_mesh
import rank_candidates
import siglip_head
from rounding import rounded

WIDTH = 384


def test_candidates_are_ranked_as_the_oracle_ranks_them(capsys):
    off = rank_candidates.main(["--candidates", "300", "--block", "128", "--top", "20", "--sample", "30"])
    assert off <= rounded(np.ones(1), WIDTH)
    assert "64 queries, 300 candidates" in capsys.readouterr().out


def test_the_best_candidates_are_the_best_of_all():
    """In blocks of which the last is not full, against one call with all candidates."""
    x, x_mask, y, y_mask, _ = rank_candidates.drawn(150)
    scores, places = rank_candidates.rank(x, x_mask, y, y_mask, 5, 64)
    every = np.asarray(rank_candidates.cosines(rank_candidates.attnpool_flax, x, y, x_mask, y_mask))
    np.testing.assert_allclose(scores, -np.sort(-every, 1)[:, :5], atol=rounded(np.ones(1), WIDTH), rtol=0)
    assert (places < 150).all() and (places >= 0).all()


def test_a_file_is_pooled_in_chunks_and_a_query_learned_in_the_room_of_one(tmp_path, capsys):
    off, share = pool_memmap.main([str(tmp_path / "tokens"), "--tokens", "40000", "--chunk", "4096"])
    assert off <= rounded(np.ones(1), 40_000)
    assert 0 < share < 0.5
    printed = capsys.readouterr().out
    assert "40,000 tokens" in printed and "416 sentences in NumPy" in printed
    assert pool_memmap.opened(tmp_path / "tokens", 7).shape == (40_000, pool_memmap.WIDTH)  # what is there is read


def test_sentences_of_a_file_are_pooled_in_chunks(tmp_path):
    tokens = pool_memmap.opened(tmp_path / "tokens", 960).reshape(10, pool_memmap.SENTENCE, WIDTH)
    vectors = pool_memmap.pool_sentences(tokens, np.arange(10), 4)
    for sentence, length, vector in zip(tokens, range(10), vectors, strict=True):
        want = sentence[:length].astype(float).mean(0) if length else np.zeros(WIDTH)
        np.testing.assert_allclose(vector, want, atol=rounded(want, length), rtol=0)


def test_a_corpus_is_pooled_once_whoever_dies(tmp_path, capsys):
    corpus = [str(tmp_path), "--documents", "600", "--partitions", "6", "--workers", "2"]
    computed, off = pool_corpus.main([*corpus, "--kill"])
    assert computed == 6 and off <= rounded(np.ones(1), 512)
    (tmp_path / "vectors" / "part-0002.parquet").unlink()
    computed, off = pool_corpus.main(corpus)
    assert computed == 1 and off <= rounded(np.ones(1), 512)
    assert "1 of 6 partitions computed, the others were there" in capsys.readouterr().out


def test_a_sequence_over_a_mesh_is_pooled_as_one_device_pools_it(capsys):
    off = pool_mesh.main(["--tokens", "4000"])
    assert max(off) <= rounded(np.ones(1), pool_mesh.WIDTH)
    assert "4,000 tokens of 64 over" in capsys.readouterr().out


def test_attention_finds_the_nine_that_no_label_names(tmp_path, capsys):
    out = tmp_path / "bags.png"
    found = learn_bags.main(["--seeds", "1", "--steps", "100", "--bags", "300", "--out", str(out)])
    assert found["gated"][0] > found["mean"][0]
    assert found["gated"][2] > 0.5  # one digit in ten is a 9
    assert out.stat().st_size > 10_000
    assert "largest weight on a 9" in capsys.readouterr().out


def test_statistics_tell_speakers_whose_means_are_the_same(tmp_path, capsys):
    out = tmp_path / "signals.png"
    right = learn_signals.main(["--seeds", "1", "--steps", "100", "--signals", "300", "--out", str(out)])
    assert right["attentive statistics"] > right["mean"]
    assert out.stat().st_size > 10_000
    assert "weight on frames of speech" in capsys.readouterr().out


def test_a_loaded_siglip_head_is_the_original_and_padding_stays_outside(capsys):
    offs = siglip_head.main(["--small"])
    assert max(offs) <= rounded(np.ones(1), 128)
    said = capsys.readouterr().out
    assert "vectors of NaN; attnpool the same vectors, bit for bit" in said
    assert "attnpool by 0\n" in said


def test_exported_poolings_are_those_of_the_oracle_in_onnx_runtime_at_three_lengths(tmp_path, capsys):
    off = export_onnx.main([str(tmp_path), "--slots", "32", "--width", "64"])
    assert set(off) == {"attention", "multi_head", "map_head", "gated", "packed_mean"}
    assert max(off.values()) <= rounded(np.ones(1), 64)
    assert "map_head.onnx: largest difference" in capsys.readouterr().out


def test_padding_changes_no_bit_in_onnx_runtime(tmp_path):
    pool, _ = export_onnx.modules(8, export_onnx.nnx.Rngs(0))["gated"]
    shapes = [
        export_onnx.jax.ShapeDtypeStruct(("batch", 6, *width), dtype)
        for width, dtype in (((8,), "float32"), ((), bool))
    ]
    export_onnx.export(pool, *shapes, path=tmp_path / "gated.onnx")
    x, mask = np.ones((2, 6, 8), np.float32), np.arange(6) < np.array([[4], [0]])
    results = [
        export_onnx.run(tmp_path / "gated.onnx", np.where(mask[..., None], x, fill), mask) for fill in (0, np.nan)
    ]
    np.testing.assert_array_equal(*results)
    assert not results[0][1].any()

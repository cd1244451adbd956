"""``attnpool formats`` and ``attnpool inspect``."""

import numpy as np
import pytest
from click.testing import CliRunner
from formats import heads

from attnpool_ref import formats
from attnpool_ref.commands.application import application
from attnpool_ref.formats.sources import safetensors


def run(*arguments):
    result = CliRunner().invoke(application, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    return result.exit_code, result.output


def test_formats_shows_all_of_them():
    status, shown = run("formats")
    assert status == 0
    lines = shown.splitlines()
    for row in formats.FORMATS.values():
        assert f"{row.name}  {row.module}" in lines
        assert all(part in shown for part in (row.title, row.source, row.usual))
    assert "num_heads, epsilon, activation" in shown


def test_inspect_says_which_formats_fit_and_how_to_load_them(tmp_path):
    file = tmp_path / "model.safetensors"
    safetensors.save(heads.tensors_of("siglip", prefix="vision.head.") | {"logit_scale": np.ones(())}, file)
    status, shown = run("inspect", file)
    assert status == 0
    assert "  siglip  MAPHead  prefix 'vision.head.'\n" in shown
    assert f'attnpool_flax.load("{file}", "siglip", num_heads=...)' in shown
    assert "  torch_mha  MultiHeadAttention  prefix 'vision.head.attention.'\n" in shown  # which it is made of


def test_inspect_says_which_prefix_where_there_are_several(tmp_path):
    file = tmp_path / "model.safetensors"
    safetensors.save(heads.tensors_of("clip", prefix="a.") | heads.tensors_of("clip", prefix="b."), file)
    status, shown = run("inspect", file)
    assert status == 0
    for prefix in ("a.", "b."):
        assert f'attnpool_flax.load("{file}", "clip", prefix="{prefix}")' in shown


def test_inspect_says_what_lacks_where_a_head_nearly_fits(tmp_path):
    file = tmp_path / "model.npz"
    np.savez(file, **heads.tensors_of("siglip_bv", prefix="params/img/", without=["probe"]))
    status, shown = run("inspect", file)
    assert status == 0
    assert "  flax_mha  MultiHeadAttention  prefix 'params/img/MultiHeadDotProductAttention_0/'\n" in shown
    assert "  nearly siglip_bv  MAPHead  prefix 'params/img/'\n" in shown
    assert "missing `probe`" in shown
    np.savez(file, **heads.tensors_of("clip", without=["positional_embedding"]))
    status, shown = run("inspect", file)
    assert status == 1
    assert f"No format fits {file}. Nearest:\n  clip  AttentionPool2d  prefix ''\n" in shown
    assert "missing `positional_embedding`" in shown
    np.savez(file, x=np.ones(3))
    assert run("inspect", file) == (1, f"No format fits {file}, nor does one nearly. `attnpool formats` lists them.\n")


def test_inspect_knows_a_model_of_sentence_transformers(tmp_path):
    (tmp_path / "modules.json").write_text('[{"type": "x.Pooling", "path": ""}]')
    (tmp_path / "config.json").write_text('{"embedding_dimension": 4, "pooling_mode": "mean"}')
    status, shown = run("inspect", tmp_path)
    assert status == 0
    assert f'attnpool_flax.load("{tmp_path}", "sentence_transformers")' in shown
    (tmp_path / "modules.json").write_text("[]")
    status, shown = run("inspect", tmp_path)
    assert status == 1
    assert "Nearest:\n  sentence_transformers  SentencePool  prefix ''\n" in shown
    assert "has no Pooling" in shown


@pytest.mark.parametrize(
    ("name", "message"), [("x.txt", "needs a .safetensors or .npz file"), ("x.npz", "no sound .npz file")]
)
def test_inspect_refuses_what_is_no_file_of_tensors(name, message, tmp_path):
    (tmp_path / name).write_text("hello")
    status, shown = run("inspect", tmp_path / name)
    assert status == 2
    assert message in shown
    assert run("inspect", tmp_path / "absent.npz")[0] == 2

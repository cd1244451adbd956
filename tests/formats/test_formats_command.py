"""``attnpool formats`` and ``attnpool inspect``."""

import contextlib

import command
import numpy as np
import pytest
from formats import heads

from attnpool_ref import formats
from attnpool_ref.cli.heads import inspect
from attnpool_ref.formats.sources import safetensors


def run(*arguments):
    result = command.run(*map(str, arguments))
    return result.exit_code, result.output


def test_formats_shows_all_of_them():
    status, shown = run("formats")
    assert status == 0
    lines = shown.splitlines()
    for row in formats.FORMATS.values():
        assert f"{row.name}  {row.module}" in lines
        assert all(part in shown for part in (row.title, row.source, row.usual))
    assert "num_heads, epsilon, activation" in shown


def test_formats_takes_words():
    status, shown = run("formats", "siglip")
    assert status == 0
    assert shown.startswith("siglip  MAPHead\n")
    names = [line.split("  ")[0] for line in shown.splitlines() if line and line[0] != " "]
    assert names[:3] == ["siglip", "siglip_bv", "timm_latent"]  # whose note speaks of it
    assert "torch_mha" not in names
    for words in (("timm", "pool"), ("timm pool",)):
        status, shown = run("formats", *words)
        assert "timm_pool2d  AttentionPool2d\n" in shown and "siglip  MAPHead" not in shown
    status, shown = run("formats", "timm_pool2d")
    assert shown.startswith("timm_pool2d  AttentionPool2d\n")
    status, shown = run("formats", "siglib")
    assert status == 1
    assert shown.startswith("No format has 'siglib'. Near it: siglip")


def folder_of(path, config, **sizes):
    safetensors.save(heads.tensors_of("siglip", prefix="head.", **sizes), path / "model.safetensors")
    (path / "config.json").write_text(config)


def test_inspect_reads_the_configuration_of_a_folder(tmp_path):
    folder_of(tmp_path, '{"vision_config": {"num_attention_heads": 2}}')
    status, shown = run("inspect", tmp_path)
    assert status == 0
    assert f'attnpool_flax.load("{tmp_path}", "siglip")\n' in shown
    assert f'attnpool_flax.load("{tmp_path}", "torch_mha", num_heads=...)\n' in shown  # whose heads it is not about
    folder_of(tmp_path, "{}")
    assert f'attnpool_flax.load("{tmp_path}", "siglip", num_heads=...)\n' in run("inspect", tmp_path)[1]
    folder_of(tmp_path, '{"vision_use_head": false}')
    shown = run("inspect", tmp_path)[1]
    assert "nearly siglip  MAPHead" in shown and "this model has no such head" in " ".join(shown.split())
    folder_of(tmp_path, "[]")
    status, shown = run("inspect", tmp_path)
    assert status == 2 and "is no JSON object" in shown


def test_inspect_names_the_folder_that_it_stands_in(tmp_path):
    folder = tmp_path / "model" / "inner"
    folder.mkdir(parents=True)
    with contextlib.chdir(folder):
        status, shown = run("inspect", ".")
        assert status == 2
        assert "inner has no .safetensors file" in shown
        folder_of(tmp_path / "model", '{"num_attention_heads": 2}')
        status, shown = run("inspect", "..")
    assert status == 0
    assert f"{tmp_path / 'model'} holds:\n" in shown
    assert f'attnpool_flax.load("{tmp_path / "model"}", "siglip")\n' in shown


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
    safetensors.save(heads.tensors_of("clip", prefix="a.", d=64) | heads.tensors_of("clip", prefix="b."), file)
    status, shown = run("inspect", file)
    assert status == 0
    assert f'attnpool_flax.load("{file}", "clip", prefix="a.")' in shown  # heads of 64, which do not divide 6
    assert f'attnpool_flax.load("{file}", "clip", prefix="b.", num_heads=...)' in shown


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
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Pooling", "path": ""}]')
    (tmp_path / "config.json").write_text('{"embedding_dimension": 4, "pooling_mode": "mean"}')
    status, shown = run("inspect", tmp_path)
    assert status == 0
    assert f'attnpool_flax.load("{tmp_path}", "sentence_transformers")' in shown
    (tmp_path / "modules.json").write_text("[]")
    status, shown = run("inspect", tmp_path)
    assert status == 1
    assert "Nearest:\n  sentence_transformers  SentencePool  prefix ''\n" in shown
    assert "has no Pooling" in shown


BARE = {"0.weight": (6, 5), "0.bias": (6,), "2.weight": (1, 6), "2.bias": (1,)}


def test_inspect_takes_the_mapping_that_torch_load_returns_and_tells_a_prefix(capsys):
    checkpoint = {"epoch": 3, "optimizer": {"state": {0: {"exp_avg": np.ones(6)}}}}
    tensors = heads.tensors_of("siglip", prefix="vision_model.head.")
    for key in ("state_dict", "model"):
        assert inspect(checkpoint | {key: tensors}) == 0
        shown = capsys.readouterr().out
        assert f"the mapping holds:\n  siglip  MAPHead  prefix '{key}/vision_model.head.'\n" in shown
        assert "\n    the head of SigLIP and SigLIP 2 in Hugging Face's transformers\n" in shown
        assert 'attnpool_flax.load(source, "siglip", num_heads=...)' in shown
    clam = {f"attention_net.3.{name}": np.ones(shape) for name, shape in BARE.items()}
    assert inspect(checkpoint | {"state_dict": clam}) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "Nearest: clam AdditiveAttentionPool prefix 'state_dict/attention_net.3.' clam: the mapping may" in shown
    assert shown.endswith("say `prefix='state_dict/attention_net.3.'`")
    assert inspect(clam | tensors) == 0
    assert "clam" not in capsys.readouterr().out  # any two layers have its names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x.txt", "needs a .safetensors or .npz file"),
        ("x.npz", "no sound .npz file"),
        ("x.pth.tar", "torch.load('x.pth.tar', weights_only=True, map_location='cpu')"),
        ("x.msgpack", "flax.serialization.msgpack_restore(open('x.msgpack', 'rb').read())"),
        ("x.weights.h5", "{weight.path: weight for weight in model.weights}"),
    ],
)
def test_inspect_refuses_what_is_no_file_of_tensors(name, message, tmp_path):
    (tmp_path / name).write_text("hello")
    status, shown = run("inspect", tmp_path / name)
    assert status == 2
    assert message in " ".join(shown.split())
    assert ("`attnpool_ref.cli.heads.inspect` takes it" in " ".join(shown.split())) == (name not in ("x.txt", "x.npz"))
    assert run("inspect", tmp_path / "absent.npz")[0] == 2

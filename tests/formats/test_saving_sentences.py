"""What follows the encoder is written into a folder of sentence-transformers, and the encoder's files stay as they were."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from formats.comparing import same_arrays, same_heads
from optional import posix

import attnpool_flax
from attnpool_flax import linen
from attnpool_ref import formats
from attnpool_ref.formats.sentences import MODES, Stage

FORMAT = "sentence_transformers"
FOLDERS = sorted((Path(__file__).parent / "golden" / FORMAT).iterdir())
every_folder = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
ENCODER = {
    "config.json": '{"model_type": "bert", "hidden_size": 4}',
    "model.safetensors": "numbers",
    "vocab.txt": "[PAD]",
}


def head_of(*stages, **parameters):
    return formats.Head("SentencePool", {"stages": stages}, parameters, {})


MEAN = Stage("pooling", modes=("mean",), width=4)
DENSE = Stage("dense", (("kernel", (4, 3)), ("bias", (3,))), activation="tanh")
HEAD = head_of(MEAN, DENSE, Stage("normalize"), kernel_1=np.ones((4, 3), np.float32), bias_1=np.ones(3, np.float32))


def read_json(file):
    return json.loads(file.read_text())


def everything(folder):
    """The bytes of all files by their paths."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def encoder(folder):
    folder.mkdir()
    for name, text in ENCODER.items():
        (folder / name).write_text(text)
    return folder


@every_folder
def test_what_is_read_of_a_model_is_read_again_of_a_new_folder_bit_for_bit(folder, tmp_path):
    head = formats.read(folder, FORMAT)
    formats.save(head, tmp_path / "new", FORMAT)
    same_heads(formats.read(tmp_path / "new", FORMAT), head)
    first = everything(tmp_path / "new")
    formats.save(head, tmp_path / "new", FORMAT)  # into its own folder
    assert everything(tmp_path / "new") == first
    assert not [name for name in first if "partial" in name]


@every_folder
def test_modules_of_both_kinds_write_the_same_folder(folder, tmp_path):
    attnpool_flax.save(attnpool_flax.load(folder, FORMAT, param_dtype=np.float32), tmp_path / "nnx", FORMAT)
    linen.save(*linen.load(folder, FORMAT, param_dtype=np.float32), tmp_path / "linen", FORMAT)
    assert everything(tmp_path / "nnx") == everything(tmp_path / "linen")


def test_the_configurations_are_those_that_every_version_of_the_library_reads(tmp_path):
    formats.save(HEAD, tmp_path / "model", FORMAT)
    listed = read_json(tmp_path / "model" / "modules.json")
    assert listed == [
        {
            "idx": place,
            "name": str(place),
            "path": f"{place + 1}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for place, kind in enumerate(("Pooling", "Dense", "Normalize"))
    ]
    pooling = {f"pooling_mode_{mode}": mode == "mean_tokens" for mode in ("cls_token", "max_tokens", "mean_tokens")}
    pooling |= dict.fromkeys(
        ("pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"), False
    )
    assert read_json(tmp_path / "model" / "1_Pooling" / "config.json") == {"word_embedding_dimension": 4} | pooling
    assert read_json(tmp_path / "model" / "2_Dense" / "config.json") == {
        "in_features": 4,
        "out_features": 3,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    assert read_json(tmp_path / "model" / "3_Normalize" / "config.json")["module_input_name"] == "sentence_embedding"
    assert not (tmp_path / "model" / "3_Normalize" / "model.safetensors").exists()
    others = head_of(Stage("pooling", modes=("mean", "cls"), width=4, include_prompt=False))  # in no order of old keys
    formats.save(others, tmp_path / "other", FORMAT)
    config = read_json(tmp_path / "other" / "1_Pooling" / "config.json")
    assert config == {"embedding_dimension": 4, "pooling_mode": ["mean", "cls"], "include_prompt": False}


def test_a_layer_before_the_pooling_says_that_it_reads_tokens(tmp_path):
    tokens = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    parameters = {"kernel_0": np.ones((4, 3), np.float32), "bias_0": np.ones(3, np.float32)}
    formats.save(head_of(DENSE, Stage("normalize"), **parameters), tmp_path / "model", FORMAT)
    assert tokens.items() <= read_json(tmp_path / "model" / "1_Dense" / "config.json").items()
    assert read_json(tmp_path / "model" / "2_Normalize" / "config.json") == tokens


def test_the_folder_of_an_encoder_becomes_a_model_and_its_files_stay(tmp_path):
    folder = encoder(tmp_path / "bert")
    before = {path: (path.read_bytes(), path.stat()) for path in folder.iterdir()}
    formats.save(HEAD, folder, FORMAT)
    assert {path: (path.read_bytes(), path.stat()) for path in before} == before
    first, *rest = read_json(folder / "modules.json")
    assert first == {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
    assert [(part["idx"], part["path"]) for part in rest] == [(1, "1_Pooling"), (2, "2_Dense"), (3, "3_Normalize")]
    same_heads(formats.read(folder, FORMAT), HEAD)


def test_the_parts_after_a_model_s_encoder_are_replaced_and_nothing_else(tmp_path):
    folder = encoder(tmp_path / "model")
    formats.save(HEAD, folder, FORMAT)
    listed = read_json(folder / "modules.json")
    listed[0] |= {"path": "0_Encoder", "type": "elsewhere.Encoder", "kwargs": ["task"]}
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q: "}}')
    before = everything(folder)
    formats.save(head_of(MEAN, Stage("normalize")), folder, FORMAT)
    after = everything(folder)
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {"modules.json", "2_Normalize/config.json"}
    listed = read_json(folder / "modules.json")
    assert listed[0] == {"idx": 0, "name": "0", "path": "0_Encoder", "type": "elsewhere.Encoder", "kwargs": ["task"]}
    assert [stage.kind for stage in formats.read(folder, FORMAT).options["stages"]] == ["pooling", "normalize"]


def test_the_width_of_tokens_is_said_or_follows_from_the_kernel(tmp_path):
    unsaid = Stage("pooling", modes=("mean", "max"))
    dense = Stage("dense", (("kernel", (8, 3)),))
    formats.save(head_of(unsaid, dense, kernel_1=np.ones((8, 3), np.float32)), tmp_path / "a", FORMAT)
    assert formats.read(tmp_path / "a", FORMAT).options["stages"][0].width == 4
    with pytest.raises(ValueError, match=r"nothing says how wide the tokens are; say it as `Stage\('pooling', width="):
        formats.save(head_of(unsaid, Stage("normalize")), tmp_path / "b", FORMAT)
    assert not (tmp_path / "b").exists()


ONES = {"kernel_1": np.ones((4, 3), np.float32), "bias_1": np.ones(3, np.float32)}


@pytest.mark.parametrize(
    ("stages", "parameters", "message"),
    [
        ((), {}, "the head has no Pooling, nor a Dense that projects tokens"),
        (
            (Stage("layer_norm", (("scale", (4,)), ("bias", (4,)))), MEAN),
            {"scale_0": np.ones(4), "bias_0": np.ones(4)},
            "stage 0 normalizes the pooled vector, and no Pooling comes before it",
        ),
        ((MEAN, MEAN), {}, "a second pooling after the first has nothing to pool"),
        ((MEAN, Stage("prompt")), {}, "a stage of the kind 'prompt' cannot be written"),
        ((Stage("pooling", modes=("median",), width=4),), {}, r"the modes \('median',\) cannot be written; there are cls, max"),
        ((Stage("pooling", width=4),), {}, r"the modes \(\) cannot be written"),
        ((MEAN, Stage("dense", DENSE.shapes, activation="swish")), ONES, "the activation 'swish' cannot be written; there are"),
        ((MEAN, DENSE), {"kernel_1": ONES["kernel_1"]}, r"`bias_1` is missing, needs \[3\]"),
        ((MEAN, DENSE), ONES | {"kernel_1": np.ones((3, 4))}, r"`kernel_1` is \[3, 4\], needs \[4, 3\]"),
        ((MEAN, DENSE), ONES | {"scale_7": np.ones(3)}, "has no place for `scale_7`"),
        ((MEAN, Stage("dense", (("kernel", (5, 3)),))), {"kernel_1": np.ones((5, 3))}, r"is \[5, 3\], needs \[4, o\]"),
        ((MEAN, Stage("dense", DENSE.shapes, residual=True)), ONES, "`residual.weight` is there where widths differ"),
        (
            (MEAN, Stage("layer_norm", (("scale", (3,)), ("bias", (3,))))),
            {"scale_1": np.ones(3), "bias_1": np.ones(3)},
            r"`scale_1` is \[3\], needs \[4\]",
        ),
        ((MEAN, DENSE), ONES | {"kernel_1": np.ones((4, 3), np.complex64)}, "'linear.weight' has dtype complex64"),
    ],
)  # fmt: skip
def test_what_the_library_does_not_have_is_refused_by_name_and_nothing_is_written(
    stages, parameters, message, tmp_path
):
    with pytest.raises(ValueError, match=f"{message}"):
        formats.save(head_of(*stages, **parameters), tmp_path / "model", FORMAT)
    assert not (tmp_path / "model").exists()


def test_a_folder_that_is_no_model_s_is_refused(tmp_path):
    def refused(message, target, error=ValueError, head=HEAD, **options):
        with pytest.raises(error, match=message):
            formats.save(head, target, FORMAT, **options)

    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").touch()
    refused("thesis is neither empty nor the folder of an encoder or of a model$", tmp_path / "thesis")
    refused("is written into a folder, and thesis.tex is none$", tmp_path / "thesis" / "thesis.tex")
    refused("there is no folder '.*absent'; none is made", tmp_path / "absent" / "model", FileNotFoundError)
    refused("is written into a folder, not into a dict", {}, TypeError)
    refused("`prefix` is 'head.', but this format has none", tmp_path / "new", prefix="head.")
    refused("holds a SentencePool, and this is a MAPHead", tmp_path / "new", head=HEAD._replace(module="MAPHead"))
    with pytest.raises(ValueError, match=r"^sentence_transformers is a folder, which `save` writes$"):
        formats.write(HEAD, FORMAT)
    assert sorted(os.listdir(tmp_path)) == ["thesis"]
    assert os.listdir(tmp_path / "thesis") == ["thesis.tex"]


def test_a_part_that_would_be_lost_is_named(tmp_path):
    folder = encoder(tmp_path / "model")
    formats.save(HEAD, folder, FORMAT)
    before = read_json(folder / "modules.json")
    listed = [*before, {"idx": 4, "name": "4", "path": "4_Own", "type": "mine.Own"}]
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(
        ValueError, match=r"model has a part of the type 'mine.Own' after its encoder, which would be lost"
    ):
        formats.save(HEAD, folder, FORMAT)
    listed = [before[0], {"idx": 1, "name": "1", "path": "1_LSTM", "type": "x.LSTM"}, *before[1:]]
    (folder / "modules.json").write_text(json.dumps(listed))
    formats.save(HEAD, folder, FORMAT)  # a part before the pooling belongs to the encoder
    assert [part["path"] for part in read_json(folder / "modules.json")] == [
        "",
        "1_LSTM",
        "2_Pooling",
        "3_Dense",
        "4_Normalize",
    ]
    listed = [before[0] | {"path": "1_Pooling"}, *before[1:]]
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(ValueError, match="1_Pooling is the folder of the encoder"):
        formats.save(HEAD, folder, FORMAT)


@posix
@pytest.mark.parametrize("name", ["modules.json", "1_Pooling", "1_Pooling/config.json", "2_Dense/model.safetensors"])
def test_nothing_is_written_through_a_link_as_caches_have_them(name, tmp_path):
    folder, cache = encoder(tmp_path / "model"), tmp_path / "cache"
    formats.save(HEAD, folder, FORMAT)
    shutil.move(folder / name, cache)
    (folder / name).symlink_to(cache)
    before = everything(tmp_path)
    with pytest.raises(ValueError, match=f"{name} is a link, as in a hub's cache; copy model, and save into the copy"):
        formats.save(HEAD, folder, FORMAT)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("place", range(4))
def test_a_model_that_cannot_be_written_whole_is_not_begun(place, tmp_path, full_disk):
    """The disk is full at one of four files: none of them has been replaced."""
    folder = encoder(tmp_path / "model")
    formats.save(HEAD, folder, FORMAT)
    before = everything(folder)
    full_disk(after=place)
    with pytest.raises(OSError, match="No space left"):
        formats.save(head_of(MEAN, DENSE, kernel_1=ONES["kernel_1"] + 1, bias_1=ONES["bias_1"]), folder, FORMAT)
    assert everything(folder) == before
    full_disk(after=place)
    with pytest.raises(OSError, match="No space left"):
        formats.save(HEAD, tmp_path / "new", FORMAT)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_is_missing_says_two_ways_to_get_it(current_folder):
    (current_folder / "models").mkdir()
    for source, whole, name in (
        ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("models/all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("BAAI/bge-m3", "BAAI/bge-m3", "BAAI/bge-m3"),
    ):
        with pytest.raises(FileNotFoundError) as caught:
            attnpool_flax.load(source, FORMAT)
        assert str(caught.value) == (
            f"there is no folder '{source}'; nothing is downloaded. Get it by `hf download {whole} --local-dir {source}`, or in "
            f'Python by `SentenceTransformer("{name}").save("{source}")`'
        )


def test_parameters_of_any_dtype_are_written_with_their_bits(tmp_path):
    import ml_dtypes

    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        head = HEAD._replace(parameters={name: array.astype(dtype) for name, array in HEAD.parameters.items()})
        formats.save(head, tmp_path / "model", FORMAT)
        same_arrays(formats.read(tmp_path / "model", FORMAT).parameters, head.parameters)


def test_all_modes_are_written_in_any_order(tmp_path):
    for modes in (MODES, MODES[::-1], ("max", "max")):
        formats.save(head_of(Stage("pooling", modes=modes, width=4)), tmp_path / "model", FORMAT)
        assert formats.read(tmp_path / "model", FORMAT).options["stages"][0].modes == modes

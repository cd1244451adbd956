"""What cannot be read out of a folder is refused in one sentence that names the file and its key."""

import json
import re

import numpy as np
import pytest
from formats import heads

from attnpool_ref import formats
from attnpool_ref.formats.sources import safetensors


def refused(message, name, tensors, **options):
    with pytest.raises(ValueError, match=message):
        formats.read(tensors, name, **options)


def folder(path, config, **tensors):
    (path / "config.json").write_text(json.dumps(config))
    safetensors.save(tensors or heads.tensors_of("siglip", prefix="vision_model.head."), path / "model.safetensors")
    return path


def test_a_configuration_says_heads_epsilon_and_activation_and_the_caller_wins(tmp_path):
    vision = {"num_attention_heads": 3, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}
    for config in (vision, {"vision_config": vision, "num_attention_heads": 5}):
        options = formats.read(folder(tmp_path, config), "siglip").options
        assert (options["num_heads"], options["epsilon"], options["activation"]) == (3, 1e-5, "gelu")
    said = formats.read(tmp_path, "siglip", num_heads=2, epsilon=0.0, activation="relu").options
    assert (said["num_heads"], said["epsilon"], said["activation"]) == (2, 0.0, "relu")
    usual = formats.read(folder(tmp_path, {"num_attention_heads": 1}), "siglip").options
    assert (usual["epsilon"], usual["activation"]) == (1e-6, "gelu_tanh")


def test_heads_that_a_configuration_leaves_away_are_those_of_its_class(tmp_path):
    head = heads.tensors_of("siglip", prefix="head.", d=12)
    for config in ({"model_type": "siglip2_vision_model"}, {"model_type": "siglip", "vision_config": {}}):
        assert formats.read(folder(tmp_path, config, **head), "siglip").options["num_heads"] == 12
    of_the_text = {"num_attention_heads": 4, "vision_config": {"hidden_act": "gelu"}}
    for config in ({}, {"model_type": "phi4_multimodal"}, {"model_type": ["siglip"]}, of_the_text):
        refused(
            "^siglip: no tensor says `num_heads`, and config.json has no `num_attention_heads`; say `num_heads=`$",
            "siglip",
            folder(tmp_path, config, **head),
        )
        assert formats.read(tmp_path, "siglip", num_heads=3).options["num_heads"] == 3


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"vision_use_head": False}, "`vision_use_head` of config.json is False: this model has no such head"),
        (
            {"num_attention_heads": 2, "hidden_act": "quick_gelu"},
            "`hidden_act` of config.json is 'quick_gelu', which no module of attnpool has",
        ),
        (
            {"vision_config": {"num_attention_heads": 2, "hidden_act": ["gelu"]}},
            r"`vision_config.hidden_act` of config.json is \['gelu'\], which no module of attnpool has",
        ),
        (
            {"vision_config": {"num_attention_heads": 4}},
            "`vision_config.num_attention_heads` of config.json is 4, which does not divide the width 6",
        ),
        ({"num_attention_heads": "2"}, "`num_attention_heads` of config.json is '2', needs an integer of at least 1"),
        (
            {"num_attention_heads": 2, "layer_norm_eps": "1e-6"},
            "`layer_norm_eps` of config.json is '1e-6', needs a number of at least 0",
        ),
        (
            {"model_type": "siglip"},
            "heads that `model_type` 'siglip' of config.json has by default is 12, which does not divide the width 6",
        ),
        (
            {"num_attention_heads": 2, "layer_norm_eps": 10**400},
            r"`layer_norm_eps` of config.json is 10+\.\.\.0+, needs a number of at least 0",
        ),
        ({"num_attention_heads": 10**4200}, r"config.json is 10+\.\.\.0+, which does not divide the width 6"),
        ([], "config.json of .* is no JSON object"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_by_its_own_names(config, message, tmp_path):
    refused(f"{message}$", "siglip", folder(tmp_path, config))


def test_a_folder_without_tensors_or_with_too_many_is_refused(tmp_path):
    refused("has no .safetensors file", "siglip", tmp_path)
    for name in ("a", "b"):
        safetensors.save(heads.tensors_of("siglip"), tmp_path / f"{name}.safetensors")
    refused("has 2 .safetensors files and no index; name one: a.safetensors", "siglip", tmp_path, num_heads=2)


def test_a_checkpoint_of_orbax_and_a_name_on_a_hub_are_refused_with_what_to_write(tmp_path, monkeypatch):
    step = tmp_path / "checkpoint" / "3"
    step.mkdir(parents=True)
    (step / "_METADATA").touch()
    code = re.escape(f"give `orbax.checkpoint.StandardCheckpointer().restore({str(step)!r})`")
    for folder in (step, step.parent):
        refused(f"^{folder.name} is a checkpoint of Orbax, which is not read here; {code}$", "siglip", folder)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nothing is downloaded. Get it by `hf download google/siglip --local"):
        formats.read("google/siglip", "siglip")
    for name in ("head.safetensors", "checkpoint/head.safetensors", "models/head.safetensors"):
        with pytest.raises(FileNotFoundError, match=r"nothing is downloaded$"):
            formats.read(name, "siglip")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "custom_pooling.Pooling",
            "^sentence_transformers: the part 'custom_pooling.Pooling' is code of the model's own",
        ),
        ("Pooling", "^sentence_transformers: the part 'Pooling' is code of the model's own, which is not run here$"),
        (
            "sentence_transformers.multi_vector_encoder.modules.HierarchicalTokenPooling",
            "HierarchicalTokenPooling' clusters tokens; remove it from modules.json, and see `attnpool find token pooling`$",
        ),
        ("sentence_transformers.sentence_transformer.modules.pooling.Pooling", None),
        ("pylate.models.Pooling", None),
    ],
)
def test_a_part_is_read_by_its_library_and_never_by_its_last_name_only(kind, message, tmp_path):
    listed = json.loads((model(tmp_path, POOLING) / "modules.json").read_text())
    listed[1]["type"] = kind
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    if message is None:
        assert formats.read(tmp_path, "sentence_transformers").options["stages"][0].modes == ("mean",)
    else:
        refused(message, "sentence_transformers", tmp_path)


def model(path, *parts, **files):
    """A folder as sentence-transformers writes it; parts are (type, configuration, tensors)."""
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    for number, (kind, config, tensors) in enumerate(parts, 1):
        own = path / f"{number}_{kind}"
        own.mkdir(exist_ok=True)
        (own / "config.json").write_text(json.dumps(config))
        if tensors:
            safetensors.save(
                {name: np.ones(shape, np.float32) for name, shape in tensors.items()}, own / "model.safetensors"
            )
        listed.append(
            {"idx": number, "name": str(number), "path": own.name, "type": f"sentence_transformers.models.{kind}"}
        )
    (path / "modules.json").write_text(json.dumps(listed))
    return path


POOLING = ("Pooling", {"word_embedding_dimension": 4, "pooling_mode_mean_tokens": True}, {})
DENSE = {"linear.weight": (3, 4), "linear.bias": (3,)}


TENSORS = {"Dense": DENSE, "LayerNorm": {"norm.weight": (4,), "norm.bias": (4,)}}
NOT_POOLED, FLAG = ", which is not the pooled vector", ", needs true or false"


@pytest.mark.parametrize(
    ("kind", "key", "value", "reason"),
    [
        ("Pooling", "word_embedding_dimension", "4", ", needs an integer of at least 1"),
        ("Pooling", "pooling_mode_median_tokens", True, ", but there are only cls, max,"),
        ("Pooling", "pooling_mode_cls_token", "false", FLAG),
        ("Pooling", "include_prompt", "false", FLAG),
        ("Dense", "activation_function", "os.system", "; known are Identity"),
        ("Dense", "activation_function", ["x"], "; known are Identity"),
        ("Dense", "module_input_name", "token_embeddings", NOT_POOLED),
        ("Dense", "in_features", 5, ", but its tensors need 4"),
        ("Dense", "out_features", "3", ", but its tensors need 3"),
        ("Dense", "bias", "false", FLAG),
        ("Dense", "use_residual", "no", FLAG),
        ("LayerNorm", "dimension", 3, ", but its tensors need 4"),
        ("Normalize", "module_input_name", "token_embeddings", NOT_POOLED),
        ("Normalize", "module_input_name", None, NOT_POOLED),
        ("Normalize", "module_output_name", "other", NOT_POOLED),
    ],
)
def test_a_wrong_value_of_a_part_s_configuration_is_refused(kind, key, value, reason, tmp_path):
    part = (kind, (POOLING[1] if kind == "Pooling" else {}) | {key: value}, TENSORS.get(kind, {}))
    parts = [part] if kind == "Pooling" else [POOLING, part]
    message = f"`{key}` of {len(parts)}_{kind}/config.json is {value!r}{reason}"
    refused(re.escape(message), "sentence_transformers", model(tmp_path, *parts))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            [("Pooling", {"embedding_dimension": 4, "pooling_mode": "median"}, {})],
            "`pooling_mode` of 1_Pooling/config.json is 'median', needs some of cls",
        ),
        (
            [("Pooling", {"pooling_mode": "mean"}, {})],
            "`embedding_dimension` of 1_Pooling/config.json is None, needs an",
        ),
        (
            [("Pooling", {"embedding_dimension": 10**4290, "pooling_mode": ["mean", "max"]}, {}), ("Dense", {}, DENSE)],
            r"is 10+\.\.\.0+, needs an integer of at least 1 and below 2147483648$",
        ),
        ([POOLING, POOLING], "a second pooling after the first has nothing to pool"),
        (
            [("Normalize", {}, {}), POOLING],
            "`module_input_name` of 1_Normalize/config.json is 'sentence_embedding', needs 'token_embeddings': no Pooling",
        ),
        (
            [("Dense", {"module_output_name": "sentence_embedding"}, DENSE), POOLING],
            "`module_output_name` of 1_Dense/config.json is 'sentence_embedding', needs 'token_embeddings'",
        ),
        (
            [("LayerNorm", {}, {"norm.weight": (4,), "norm.bias": (4,)}), POOLING],
            "1_LayerNorm normalizes the pooled vector, and no Pooling comes before it; list it after the Pooling, or",
        ),
        (
            [("Dense", {}, DENSE), POOLING],
            "`word_embedding_dimension` of 2_Pooling/config.json is 4, but the Dense before it has 3 features",
        ),
        ([("Dense", {"in_features": 5}, DENSE)], "`in_features` of 1_Dense/config.json is 5, but its tensors need 4"),
        ([("Dropout", {}, {})], "has no Pooling, nor a Dense that projects tokens"),
        (
            [("WeightedLayerPooling", {}, {"layer_weights": (2,)})] * 2,
            "a mean of layers must come first, and 2_WeightedLayerPooling comes after 'layers'",
        ),
        (
            [POOLING, ("LSTM", {}, {})],
            "no module of attnpool has a part of the type 'sentence_transformers.models.LSTM'",
        ),
        ([("Pooling", [], {})], "config.json of 1_Pooling is no JSON object"),
        (
            [("WeightedLayerPooling", {"num_hidden_layers": 12}, {"layer_weights": (2,)}), POOLING],
            "`num_hidden_layers` of 1_WeightedLayerPooling/config.json is 12, but its tensors need 5",
        ),
        ([POOLING, ("Dense", {}, {"linear.weight": (3, 5), "linear.bias": (3,)})], r"is \[3, 5\], needs \[3, 4\]"),
        ([POOLING, ("Dense", {"bias": False}, DENSE)], "unexpected `linear.bias`"),
        ([POOLING, ("Dense", {"use_residual": True}, DENSE)], "`residual.weight` is there where widths differ"),
        ([POOLING, ("Dense", {}, {})], "2_Dense has no .safetensors file"),
        (
            [POOLING, ("LayerNorm", {}, {"norm.weight": (5,), "norm.bias": (5,)})],
            r"`norm.weight` is \[5\], needs \[4\]",
        ),
    ],
)
def test_a_model_whose_parts_are_not_known_or_do_not_fit_is_refused(parts, message, tmp_path):
    refused(message, "sentence_transformers", model(tmp_path, *parts))


def test_a_mask_of_late_interaction_is_skipped_and_never_lost(tmp_path):
    tokens = {"module_input_name": "token_embeddings"}
    model(tmp_path, ("Dense", {}, DENSE), ("MultiVectorMask", {}, {}), ("Normalize", tokens, {}))
    head = formats.read(tmp_path, "sentence_transformers")
    assert [stage.kind for stage in head.options["stages"]] == ["dense", "normalize"]
    refused("no module", "sentence_transformers", model(tmp_path, ("Dense", {}, DENSE), ("TokenPooling", {}, {})))
    model(tmp_path, ("MultiVectorMask", {}, {}), ("Dense", {}, DENSE), ("MultiVectorMask", {}, {}))
    with pytest.raises(
        ValueError, match=r"has a part of the type '.*MultiVectorMask' after its encoder, which would be"
    ):
        formats.save(head, tmp_path, "sentence_transformers")


def test_a_part_without_files_needs_no_folder(tmp_path):
    """A repository keeps no empty folder, and that of all-MiniLM-L6-v2 has none for its Normalize."""
    model(tmp_path, POOLING, ("Normalize", {}, {}))
    (tmp_path / "2_Normalize" / "config.json").unlink()
    stages = formats.read(tmp_path, "sentence_transformers").options["stages"]
    (tmp_path / "2_Normalize").rmdir()
    assert formats.read(tmp_path, "sentence_transformers").options["stages"] == stages
    assert [stage.kind for stage in stages] == ["pooling", "normalize"]
    (tmp_path / "1_Pooling" / "config.json").unlink()
    (tmp_path / "1_Pooling").rmdir()
    refused("modules.json names '1_Pooling', which is not there", "sentence_transformers", tmp_path)


def test_a_folder_that_is_no_model_of_sentence_transformers_says_what_it_would_do(tmp_path):
    refused(r"has no modules.json; .* takes the mean: `mean_pooling\(x, mask\)`", "sentence_transformers", tmp_path)
    refused("is read from a model's folder, not from {}", "sentence_transformers", {})
    refused("`num_heads` is 2, but this format has none", "sentence_transformers", tmp_path, num_heads=2)
    (tmp_path / "modules.json").write_text('{"type": "Pooling"}')
    refused("modules.json is no list of parts", "sentence_transformers", tmp_path)
    model(tmp_path, POOLING, ("Dense", {}, {}))
    (tmp_path / "2_Dense" / "pytorch_model.bin").touch()
    refused(
        "2_Dense has pytorch_model.bin and no .safetensors file; it may be a pickle", "sentence_transformers", tmp_path
    )

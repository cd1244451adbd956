"""What transformers itself makes of a file that was saved here, and of a configuration that says little."""

import warnings

import pytest
from flax import nnx
from imported import SiglipVisionConfig
from transformers import CONFIG_MAPPING, SiglipVisionModel

import attnpool_flax
from attnpool_ref import formats

ROWS = [row for row in formats.FORMATS.values() if row.config_heads]


def test_a_saved_head_goes_through_from_pretrained(tmp_path):
    config = SiglipVisionConfig(
        hidden_size=8, intermediate_size=6, num_attention_heads=2, num_hidden_layers=1, image_size=4, patch_size=2
    )
    config.save_pretrained(tmp_path)
    head = attnpool_flax.MAPHead(in_features=8, num_heads=2, hidden_features=6, rngs=nnx.Rngs(0))
    attnpool_flax.save(head, tmp_path / "model.safetensors", "siglip", prefix="head.")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the encoder is not in the file
        theirs = SiglipVisionModel.from_pretrained(tmp_path)
    state = {name: tensor for name, tensor in theirs.state_dict().items() if "head." in name}
    again = attnpool_flax.load(state, "siglip", num_heads=2)
    for name, value in nnx.to_pure_dict(nnx.state(head, nnx.Param)).items():
        assert (getattr(again, name)[...] == value).all(), name
    assert attnpool_flax.load(tmp_path, "siglip").num_heads == 2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_configuration_leaves_away_is_what_its_class_has(row):
    for model_type, heads in row.config_heads.items():
        config = CONFIG_MAPPING[model_type]()
        config = getattr(config, "vision_config", config)
        said = {name: getattr(config, key) for name, key in row.config.items()}
        usual = {"num_heads": heads, "epsilon": row.epsilon, "activation": "gelu_pytorch_tanh"}
        assert said == {name: usual[name] for name in said}

"""Folders of sentence-transformers that ``save`` wrote: the library reads them, and its own modules compute the same."""

import json

import jax
import numpy as np
import pytest
import torch
from flax import nnx
from formats.sentence_stages import allowed_errors, pooled
from imported import BertConfig, BertModel, BertTokenizerFast, SentenceTransformer, import_from_string

import attnpool_flax
from attnpool_flax.modules.sentences import SentencePool
from attnpool_ref import formats
from attnpool_ref.formats.sentences import ACTIVATIONS, MODES, Stage

TEXTS = ["pool the tokens", "the mask", "the tokens of the mask and the pool of the tokens"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "pool", "the", "tokens", "mask", "of", "and"]
WIDTH, PROMPT = 6, 2


def dense(width, result, activation="tanh", bias=True, residual=False):
    shapes = [("kernel", (width, result))] + [("bias", (result,))] * bias
    shapes += [("residual_kernel", (width, result))] * (residual and width != result)
    return Stage("dense", tuple(shapes), activation=activation, residual=residual)


def pooling(*modes, **options):
    return Stage("pooling", modes=modes, width=WIDTH, **options)


NORM, UNIT = Stage("layer_norm", (("scale", (5,)), ("bias", (5,)))), Stage("normalize")
MODELS = {
    "mean": (pooling("mean"), UNIT),
    "modes in the order of old keys": (pooling(*MODES),),
    "modes in another order": (pooling(*MODES[::-1]),),
    "without the prompt": (pooling("mean", "cls", "weightedmean", include_prompt=False), dense(3 * WIDTH, 5), UNIT),
    "residuals": (
        pooling("mean"),
        dense(WIDTH, 5, "gelu", residual=True),
        NORM,
        dense(5, 5, "identity", bias=False, residual=True),
    ),
    "layers of tokens": (dense(WIDTH, 5, "gelu"), UNIT, Stage("pooling", modes=("mean", "max"), width=5), dense(10, 5)),
    "activations": (pooling("max"), *(dense(WIDTH, WIDTH, name) for name in ACTIVATIONS.values())),
}


def made(stages):
    """A module of random parameters."""
    random = np.random.default_rng(0)
    module = SentencePool(stages, rngs=nnx.Rngs(0))
    parameters = {
        name: random.normal(size=value.shape).astype(np.float32)
        for name, value in nnx.to_pure_dict(nnx.state(module)).items()
    }
    nnx.update(module, parameters)
    return module, {name: array.astype(np.float64) for name, array in parameters.items()}


def encoder(folder):
    """A BERT of random weights, as transformers writes it."""
    folder.mkdir()
    (folder / "words.txt").write_text("\n".join(WORDS))
    BertTokenizerFast(vocab=str(folder / "words.txt"), vocab_file=str(folder / "words.txt")).save_pretrained(folder)
    (folder / "words.txt").unlink()
    torch.manual_seed(0)
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), hidden_size=WIDTH, **sizes)).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", MODELS)
def test_a_model_whose_parts_were_saved_into_its_encoder_s_folder_is_the_library_s(name, tmp_path):
    module, parameters = made(MODELS[name])
    folder = encoder(tmp_path / "model")
    attnpool_flax.save(module, folder, "sentence_transformers")
    model = SentenceTransformer(str(folder), device="cpu").double().eval()
    features = model[0](model.tokenize(TEXTS) | {"prompt_length": PROMPT})
    x, mask = features["token_embeddings"].detach().numpy(), features["attention_mask"].numpy().astype(bool)
    expected = model(features)["sentence_embedding"].detach().numpy()
    errors = allowed_errors(MODELS[name], parameters, x, mask, expected, PROMPT)
    ours = pooled(MODELS[name], parameters, x, mask, PROMPT)
    np.testing.assert_allclose(ours, expected, atol=errors["float64"], rtol=0)
    with jax.enable_x64(True):
        loaded = attnpool_flax.load(folder, "sentence_transformers", param_dtype=np.float64)
        np.testing.assert_allclose(loaded(x, mask, PROMPT), expected, atol=errors["float64"], rtol=0)


def test_a_model_that_the_library_saved_is_saved_again_with_other_parts(tmp_path):
    folder = encoder(tmp_path / "encoder")
    attnpool_flax.save(made(MODELS["residuals"])[0], folder, "sentence_transformers")
    model = SentenceTransformer(str(folder), device="cpu", prompts={"query": "the "})
    model.save(str(tmp_path / "model"))
    before = {path: path.read_bytes() for path in (tmp_path / "model").iterdir() if path.is_file()}
    module, _ = made(MODELS["mean"])
    attnpool_flax.save(module, tmp_path / "model", "sentence_transformers")
    changed = [path.name for path, content in before.items() if path.read_bytes() != content]
    assert changed == ["modules.json"]
    again = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    assert again.prompts["query"] == "the " and len(again) == 3
    unit = np.linalg.norm(again.encode(TEXTS), axis=-1)
    np.testing.assert_allclose(unit, 1, rtol=4 * np.finfo(np.float32).eps)


def test_the_library_s_modules_read_every_part_of_a_new_folder(tmp_path):
    stages = (Stage("layers", (("layer_weights", (3,)),), start=2), pooling("mean"), dense(WIDTH, 5), NORM, UNIT)
    module, parameters = made(stages)
    attnpool_flax.save(module, tmp_path / "model", "sentence_transformers")
    layers = np.random.default_rng(1).normal(size=(5, 2, 4, WIDTH))
    features = {
        "all_layer_embeddings": list(torch.tensor(layers)),
        "attention_mask": torch.tensor([[1] * 4, [1, 1, 0, 0]]),
    }
    for part in json.loads((tmp_path / "model" / "modules.json").read_text()):
        read = import_from_string(part["type"]).load(str(tmp_path / "model"), subfolder=part["path"]).double().eval()
        features = read(features)
    expected, mask = features["sentence_embedding"].detach().numpy(), features["attention_mask"].numpy().astype(bool)
    errors = allowed_errors(stages, parameters, layers, mask, expected, 0)
    np.testing.assert_allclose(pooled(stages, parameters, layers, mask, 0), expected, atol=errors["float64"], rtol=0)
    assert formats.read(tmp_path / "model", "sentence_transformers").options["stages"] == stages

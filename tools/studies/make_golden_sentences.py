"""Command that writes the folders of ``tests/formats/golden/sentence_transformers/`` by sentence-transformers, once.

Each folder is a model with random weights and without an encoder, and ``expected.npz`` with tokens, a mask, the
prompt's length and the library's float64 results. Run it with sentence-transformers 6: ``python
tools/studies/make_golden_sentences.py``.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from sentence_transformers.sentence_transformer import modules

HERE = Path(__file__).resolve().parent.parent.parent / "tests" / "formats" / "golden" / "sentence_transformers"
WIDTH = 3
MODES = ["lasttoken", "mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean"]
"""Pooling modes in another order than the table's, so that a wrong order of concatenation is found."""


def main():
    """Writes all folders."""
    torch.manual_seed(0)
    every = WIDTH * len(MODES)
    write("all_modes", [modules.Pooling(WIDTH, MODES)])
    write("without_prompt", [modules.Pooling(WIDTH, MODES, include_prompt=False)])
    write(
        "dense",
        [
            modules.Pooling(WIDTH, MODES),
            modules.Dense(every, 5),
            modules.LayerNorm(5),
            modules.Dropout(0.5),
            modules.Dense(5, 5, bias=False, activation_function=torch.nn.GELU(), use_residual=True),
            modules.Dense(5, 4, activation_function=torch.nn.SiLU(), use_residual=True),
            modules.Dense(4, 2, activation_function=torch.nn.Identity()),
            modules.Normalize(),
        ],
    )
    write(
        "layers",
        [modules.WeightedLayerPooling(WIDTH, num_hidden_layers=4, layer_start=2), modules.Pooling(WIDTH, "mean")],
    )
    old = write("old_keys", [modules.Pooling(WIDTH, ["cls", "max", "mean"])])
    booleans = {f"pooling_mode_{mode}": mode in ("cls_token", "max_tokens", "mean_tokens") for mode in OLD}
    (old / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": WIDTH} | booleans))


OLD = ("mean_tokens", "cls_token", "max_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken")


def write(name, stages):
    """Writes one folder and returns its path."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    encoder = "sentence_transformers.sentence_transformer.modules.transformer.Transformer"
    parts = [{"idx": 0, "name": "0", "path": "", "type": encoder}]
    for number, stage in enumerate(stages, 1):
        for parameter in stage.parameters():
            torch.nn.init.normal_(parameter)
        kind = type(stage)
        own = folder / f"{number}_{kind.__name__}"
        own.mkdir()
        stage.save(str(own))
        parts.append(
            {"idx": number, "name": str(number), "path": own.name, "type": f"{kind.__module__}.{kind.__name__}"}
        )
        stage.double().eval()
    (folder / "modules.json").write_text(json.dumps(parts, indent=2))
    tokens = torch.randn(5, 4, 6, WIDTH).double()  # of five layers
    right = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 0]])
    expected = {}
    for side, mask in (("right", right), ("left", right.flip(1))):
        features = {"token_embeddings": tokens[-1].clone(), "attention_mask": mask.clone(), "prompt_length": 2}
        features["all_layer_embeddings"] = list(tokens)
        for stage in stages:
            features = stage(features)
        expected |= {f"{side}_mask": mask.numpy(), side: features["sentence_embedding"].detach().numpy()}
    layers = isinstance(stages[0], modules.WeightedLayerPooling)
    np.savez(folder / "expected.npz", x=(tokens if layers else tokens[-1]).numpy(), **expected)
    return folder


if __name__ == "__main__":
    main()

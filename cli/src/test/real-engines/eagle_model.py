"""eagle_model.py MODEL DIR: writes an EAGLE drafter with random weights for the llama in MODEL: one of its layers, and a projection.

It guesses badly; what counts is that the server around it drafts, which changes what it makes of its cache.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file


def main(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    target = load_file(model / "model.safetensors")
    layer = "model.layers.0."
    weights = {
        name.removeprefix("model."): values.clone()
        for name, values in target.items()
        if name.startswith(layer) and "input_layernorm" not in name
    }
    embedding = target["model.embed_tokens.weight"]
    torch.manual_seed(7)
    weights["embed_tokens.weight"] = embedding.clone()
    weights["fc.weight"] = (torch.randn(embedding.shape[1], 2 * embedding.shape[1]) * 0.05).to(embedding.dtype)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    shape = json.loads((model / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**shape, "num_hidden_layers": 1}))


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))

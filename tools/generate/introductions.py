"""Introductions of the pages that ``make_docs`` writes."""

BUGS_INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from tools/studies/bugs/ (`make docs`), not by hand. -->

# Mistakes in the notebooks

Mistakes of the [five notebooks](notebooks/README.md) (seeds 000 to 004) that attnpool began with, and of the public
code behind them. Each mistake has the smallest input that shows it, attnpool's call for this input, the wrong result of
the source ("theirs"), and the right result, which attnpool returns. The tests run all of them, with `attnpool_ref` and
`attnpool_flax`: {number} wrong results and {error} errors. {note} further remarks have no code.

Ids that differ only in their last letter show the same mistake. Results are written as flat vectors. To run a block,
first run `import numpy as np` and `from attnpool_ref import *`. Padding in the inputs has arbitrary values, because it
must not matter.
""".strip()

TRAPS_INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from tools/studies/traps/ (`make docs`), not by hand. -->

# Traps in public code

Mistakes in the poolings of public libraries and of authors' repositories. Each mistake has its place in the source, the
smallest input that shows it, attnpool's call for this input, the wrong result of the source ("theirs"), and the right
result, which attnpool returns. The tests run all of them, with a formula that repeats the source's arithmetic: {number}
wrong results and {error} errors. {note} further remark has no code. For libraries that can be installed, `make peers`
compares the wrong result with the library's own ([peers.md](peers.md)).

Results are written as flat vectors. To run a block, first run `import numpy as np` and `from attnpool_ref import *`.
Padding in the inputs has arbitrary values, because it must not matter. Names such as `richliao/textClassifier` are repositories on GitHub. [bugs.md](bugs.md) has the mistakes
of the notebooks that attnpool began with, and [verdicts.md](verdicts.md) shows which guarantees other libraries give.
""".strip()

HEADS_INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from attnpool_ref/formats/table/ (`make docs`), not by hand. -->

# Trained heads

A head is the part of a model after the encoder that pools its tokens, such as SigLIP's attention over image patches.
attnpool loads heads that other libraries trained. A loaded head has the results of the original up to rounding, unless
a format below says otherwise, and takes a mask even where the original takes none. `load` returns an NNX module, and
`attnpool_flax.linen.load` a Linen module and its variables. `save` writes a head in the format of the other library.
The tensors of a head that was loaded and not changed are written with the same bits.

```python
import numpy as np
import attnpool_flax
from flax import nnx

layer = nnx.MultiHeadAttention(2, 8, rngs=nnx.Rngs(0), decode=False)
attention = attnpool_flax.load(layer, "flax_mha")
x = np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)
print(np.abs(attention(x, x, x) - layer(x)).max() < 1e-6)  # True

tensors = {}
attnpool_flax.save(attention, tensors, "torch_mha", prefix="self_attn.")
print(tensors["self_attn.in_proj_weight"].shape)  # (24, 8)
```

* **Sources**: `load` takes a `.safetensors` or `.npz` file, a `.safetensors.index.json`, a model's folder
  (`.safetensors` files and a `config.json`; for sentence-transformers a `modules.json`), a mapping from names to arrays
  (of NumPy, JAX or PyTorch), such as a `state_dict()`, or an NNX or Equinox module. It reads only the tensors of the
  head, and downloads and unpickles nothing. For a `.pt` file, pass what `torch.load(file, weights_only=True,
  map_location="cpu")` returns, also if it is a checkpoint with the tensors under a key such as "state_dict". For
  `.msgpack` and `.h5` files the error says what to pass.
* **Prefix**: in the file of a whole model, the keys of a head begin with a prefix, such as `vision_model.head.`. By
  default `load` finds it. If the file has several heads, the error lists their prefixes: pass one as `prefix=`, with
  the separator at its end. `attnpool inspect FILE` lists the formats that fit a file, and their prefixes;
  `attnpool_ref.cli.heads.inspect(mapping)` does so in Python.
* **Options that the file does not contain**: the number of heads, the epsilon and the activation come from your
  arguments, else, in the formats `siglip` and `vjepa2_hf`, from the `config.json` of the folder, else from the defaults
  of the source. Only a folder has a configuration, so pass the folder, not the file in it. If an option has none of
  these, the error says what to pass. `save` does not write these options either: if they differ from the other
  library's defaults, pass them to that library too.
* **Metadata**: in a `.safetensors` file in the format of a PyTorch library, `save` writes the metadata `{"format":
  "pt"}`, because transformers requires it. Other metadata of the file that was loaded is not written.
* **sentence-transformers**: a model is a folder. `attnpool_flax.save(pool, "models/mine", "sentence_transformers")`
  writes the layers of the pool (`WeightedLayerPooling`, `Pooling`, `Dense`, `LayerNorm`, `Normalize`) with their
  configurations, and lists them in `modules.json`. It never writes an encoder. If the folder has an encoder,
  `SentenceTransformer("models/mine")` then loads both; if it has a model, the pool's layers replace those after the
  model's encoder. A new or empty folder gets the layers only.
* **Existing files**: `save` replaces an existing `.safetensors` or `.npz` file as a whole: if it held a whole model,
  only the head remains. To a dictionary `save` adds the tensors of the head. If the process dies during `save`, each
  file is either the old one or the new one, and complete.
* **Result**: `load` returns the module that the format names below, with each parameter in the dtype of the file
  (`param_dtype=` converts it; float64 parameters need `jax_enable_x64`). With `dtype=jnp.bfloat16` the module computes in
  bfloat16 and keeps its parameters. Tensors of the head for which the module has
  no parameter, such as the counter of a batch normalization, are kept in the module's attribute `extras` (in Linen in
  the collection "extras"), and `save` writes them again.
* **Padding and fully masked rows**: NaN at padding changes no bit of a result. For a fully masked row the pooled
  vector is 0 before any output projection, and what follows (the projection with its bias, an MLP) is applied to this
  0. All such rows therefore have the same result, and the gradient with respect to their tokens is 0.
* **NumPy**: `attnpool_ref.formats.read` and `save` read and write the same formats, without JAX.

The largest difference between the results of attnpool and of the original, which each format below states, was measured
with random weights in float64, by `python tools/studies/golden_differences.py`.
`python examples/siglip_head.py` compares a SigLIP head of real size with Flax's own layers. """.strip()

"""Introductions of the pages that ``make_docs`` writes."""

INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from the table and the docstrings (`make docs`), not by hand. -->

# Variants

Every function is in both packages under the same name: `attnpool_ref` has its definition in NumPy, `attnpool_flax` its
implementation in JAX. Functions of `attnpool_flax` may also take `axis_name=` (for a sequence that is split over
devices) and `precision=` (of matrix products). `help(attnpool_flax.NAME)` explains these arguments.

Each function has its equation, its call, a list of facts, its arguments, its result, its errors and an example. The facts
are the shapes of arguments and results, the allowed values of options, the arguments that only `attnpool_flax` has, the
Flax module that holds the parameters, and the source of the equation.

In the equations, $k_l$ is 1 if token $l$ is real and 0 if it is padding, and $l : k_l$ under a sum means that the sum
runs over real tokens. In the shapes, a letter is the size of an axis: L tokens, d features, n queries, m keys, H heads,
others as the arguments say. `...` are any batch axes, `[]` is a number, `?` after a name means that the argument is
optional, and `|` separates possible shapes. [conventions.md](conventions.md) explains masks, dtypes and batch axes.
[references.md](references.md) lists the sources by their keys: the key, such as `d2l`, is the last word of the line
"source" of a function.
""".strip()

MODULES_INTRODUCTION = """
Each class is in `attnpool_flax` (NNX) and in `attnpool_flax.linen`. `dropout_rate` drops attention weights after the
normalizer; `return_weights=True` returns them before. Packed tokens are passed with `segment_ids=` and `num_segments=`.
With `axis_name` sequences are split over devices. Chunks have functions only, so states have no dropout.
""".strip()

BUGS_INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from tools/studies/bugs/ (`make docs`), not by hand. -->

# Mistakes in the notebooks

Mistakes of the [five notebooks](notebooks/README.md) (seeds 000 to 004) that attnpool began with, and of the public
code behind them. Each mistake has the smallest input that shows it, attnpool's call for this input, the wrong result of
the source ("theirs"), and the right result, which attnpool returns. The tests run all of them, with `attnpool_ref` and
`attnpool_flax`: {number} wrong results and {error} errors. {note} further remarks have no code.

Ids that differ only in their last letter show the same mistake. Results are written as flat vectors. To run a block,
first run `import numpy as np` and `from attnpool_ref import *`. Padding in the inputs has arbitrary values, because it
must not matter. [variants.md](variants.md) defines the functions.
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

WHICH_INTRODUCTION = """
<!-- Written by tools/generate/make_docs.py from attnpool_ref/table/names/ (`make docs`), not by hand. -->

# You know it as

Poolings by the names that other libraries and papers give them. Each name has attnpool's call, its source, and a note:
how the call differs from the source or, if it does not, what its arguments are. `attnpool find WORD` searches the same
table: `attnpool find ABMIL`, `attnpool find global attention`.

The calls are the same in `attnpool_ref` and `attnpool_flax`. `x` [..., L, d] are L tokens of width d, and `mask`
[..., L] is True at real tokens. `q` is a query, or several; in attentions `q`, `k` and `v` are queries, keys and values.
`W`, `U`, `V`, `K`, `Q`, `O` are kernels, `w` and `b` are vectors; `W1`, `b_q` and the like are further kernels and biases.
`y` is a second sequence, `y_mask` its mask, and `scores` are [..., L]. In normalizations, `s` and `u` are scales, and `t`
and `v` are shifts. `f` and `g` are your functions, and `**maps` are the kernels and biases of multi-head attention. `where`,
`concatenate` and similar functions are NumPy's or JAX's. "Module" names the class of `attnpool_flax` that holds the
parameters of the call. [variants.md](variants.md) defines the functions, and [references.md](references.md) lists the
papers.
""".strip()

FAMILIES = {
    "segments": """
`pack` and `unpack` convert between a list of sequences and packed tokens. Each `segment_…` function returns for each
segment the result of the function without `segment_` in its name. `segment_cross_attention_pooling` takes two packed
sequences and lacks the reduction "max".
""".strip(),
    "streaming": """
Chunks are parts of a sequence that do not overlap. Their states can be merged in any order. Merging with the state of a
chunk without real tokens, such as one of length 0, changes nothing.
""".strip(),
}
"""Second paragraphs of the introductions of families, by the family's name; the first is that of the module."""

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

"""Each generated file that is committed is what its generator writes: stubs, the table of sources, pages, pictures."""

from functools import partial

import bibliography
import make_pictures
import make_stubs
import pytest

REPAIR = "run `make docs` and commit what it writes"
GENERATED = {
    **{make_stubs.path_of(package): partial(make_stubs.stub, package) for package in make_stubs.PACKAGES},
    make_stubs.JUDGE: make_stubs.judge_stub,
    bibliography.MODULE: bibliography.module,
    **{make_pictures.FOLDER / f"{name}.svg": draw for name, draw in make_pictures.PICTURES.items()},
}


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: "/".join(path.parts[-2:]))
def test_a_file_is_what_its_generator_writes(path):
    assert path.read_text(encoding="utf-8") == GENERATED[path](), REPAIR

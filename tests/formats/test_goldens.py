"""What the originals made of random weights, our functions make of the same files.

All of it in NumPy. The modules of these files are tested in ``test_golden_modules.py``.
"""

import numpy as np
import pytest
from formats.comparing import same_arrays, same_heads, within
from formats.goldens import FOLDER, GOLDENS, allowed, as_the_original, computed, deviations_of_context

import attnpool_ref
from attnpool_ref import formats

every_golden = pytest.mark.parametrize("golden", GOLDENS, ids=str)


@every_golden
def test_the_oracle_gives_what_the_original_gave(golden):
    head = golden.head(np.float64)
    for mask, output in golden.pairs():
        result = as_the_original(golden, head, mask)
        within(result, output, allowed(golden, head, mask))


OTHERS = {
    "activation": {"gelu": "gelu_tanh", "gelu_tanh": "gelu"},
    "epsilon": {1e-5: 1e-6, 1e-6: 1e-5, 1e-12: 1e-10, 1e-7: 1e-10},
    "context_ddof": {0: 1, 1: 0},
}
"""Values of options that change a result little: another kernel, bias or norm changes it by as much as it is."""


@pytest.mark.parametrize("option", OTHERS)
def test_a_wrong_value_of_an_option_that_changes_little_would_show(option):
    seen = 0
    for golden in GOLDENS:
        head = golden.head(np.float64)
        without_context = option == "context_ddof" and not head.options.get("global_context")
        if head.options.get(option) in OTHERS[option] and not without_context:
            wrong = head._replace(options=head.options | {option: OTHERS[option][head.options[option]]})
            difference = np.abs(computed(wrong, golden.wide()) - golden.output)
            assert np.any(difference > allowed(golden, head, None)), golden
            seen += 1
    assert seen


def test_every_format_with_tensors_has_a_file_and_none_is_large():
    assert {golden.format.name for golden in GOLDENS} == {name for name, row in formats.FORMATS.items() if row.forms}
    assert max(path.stat().st_size for path in FOLDER.iterdir()) <= 50_000


def test_one_head_of_two_libraries_has_the_same_parameters():
    one, other = (golden.head() for name in ("siglip", "siglip_bv") for golden in GOLDENS if golden.name == name)
    same_heads(one, other)


def test_wespeakers_context_differs_by_no_more_than_its_epsilon_can_do():
    """As far as the scores of a channel move, so far may its weights, by a factor, and its mean and deviation by it."""
    (golden,) = (golden for golden in GOLDENS if golden.name == "wespeaker_astp")
    head, x = golden.head(np.float64), golden.wide()["x"]
    kernel, out_kernel = (head.parameters[key] for key in ("kernel", "out_kernel"))
    for mask, output in golden.pairs():
        theirs, ours = deviations_of_context(head, x, mask)
        scores = (theirs - ours) @ np.abs(kernel[2 * x.shape[-1] :]) @ np.abs(out_kernel)
        factor = np.expm1(2 * scores)
        real = np.ones(x.shape[:-1], bool) if mask is None else mask
        mean, deviation = np.split(computed(head, {"x": x}, mask), 2, -1)
        farthest = np.max(np.where(real[..., None], np.abs(x - mean[:, None]), 0), 1)
        moved = np.concatenate([factor * farthest, factor * (deviation + farthest)], -1)
        found = np.abs(computed(head, {"x": x}, mask) - output)
        rounding = allowed(golden, head, mask)
        np.testing.assert_array_less(found, moved + rounding)
        assert np.any(found > rounding)  # or else it would not have to be said


def test_clam_is_read_after_its_own_evaluation_has_cut_the_names():
    (golden,) = (golden for golden in GOLDENS if golden.name == "clam-ungated")
    cut = {key.replace(".module", ""): tensor for key, tensor in golden.tensors.items()}
    with pytest.raises(ValueError, match=r"^clam: .* that many layers have; if so, say `prefix='attention_net.3.'`$"):
        formats.read(cut, "clam")
    same_arrays(formats.read(cut, "clam", prefix="attention_net.3.").parameters, golden.head().parameters)
    same_arrays(
        formats.write(formats.read(cut, "clam", prefix="attention_net.3."), "clam", prefix="attention_net.3."), cut
    )


def test_vjepa_is_read_with_and_without_the_map_that_it_never_applies():
    (golden,) = (golden for golden in GOLDENS if golden.name == "vjepa")
    without = {key: tensor for key, tensor in golden.tensors.items() if ".proj." not in key}
    head = formats.read(without, "vjepa", **golden.about["given"])
    same_arrays(head.parameters, golden.head().parameters)
    assert head.extras == {}
    assert attnpool_ref.formats.write(head, "vjepa", prefix=golden.about["prefix"]).keys() == without.keys()

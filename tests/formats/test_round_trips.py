"""What is read comes back, for every form of every format: names, dtypes, bits."""

import copy
import pickle

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import linen as nn
from formats import heads
from formats.comparing import same_arrays

import attnpool_flax
from attnpool_flax import linen
from attnpool_ref import formats

every_form = pytest.mark.parametrize(("name", "form"), heads.EVERY_FORM, ids=str)
DTYPES = (np.float32, np.float64, np.float16, ml_dtypes.bfloat16)


def prefix_of(name):
    """A prefix, which the forms that fit too much need anyway."""
    return "model.visual." if formats.get(name).separator == "." else "params/img/"


@every_form
def test_a_prefix_is_found_among_other_keys(name, form):
    row = formats.get(name)
    tensors = heads.tensors_of(name, form, prefix_of(name)) | {"other.weight": np.ones((3, 3)), "n": np.array(1)}
    if row.forms[form].bare:
        with pytest.raises(ValueError, match=f"{name}: the mapping may have such a head"):
            formats.read(tensors, name, **heads.given(name))
        return
    head = formats.read(tensors, name, **heads.given(name))
    same_arrays(formats.write(head, name, prefix=prefix_of(name)), heads.tensors_of(name, form, prefix_of(name)))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@every_form
def test_a_file_gives_back_what_was_saved(name, form, dtype, tmp_path):
    tensors = heads.tensors_of(name, form, dtype=dtype)
    head = formats.read(tensors, name, prefix="", **heads.given(name))
    for ending in (".safetensors", ".npz"):
        file = tmp_path / f"head{ending}"
        if ending == ".npz" and dtype == ml_dtypes.bfloat16:
            with pytest.raises(ValueError, match=r"has dtype bfloat16, which .npz files do not have"):
                formats.save(head, file, name)
            assert not list(tmp_path.glob(".*"))
            continue
        formats.save(head, file, name)
        if ending == ".safetensors":  # transformers refuses a file that does not say it
            assert (b'"__metadata__":{"format":"pt"}' in file.read_bytes()) == (formats.get(name).framework == "pt")
        again = formats.read(file, name, prefix="", **heads.given(name))
        same_arrays(formats.write(again, name), tensors)


@pytest.mark.parametrize("name", ["siglip_bv", "flax_mha", "keras_mha", "haiku_mha"])
def test_a_tree_is_read_as_its_names_are(name):
    tensors = heads.tensors_of(name)
    tree = {}
    for key, array in tensors.items():
        *path, leaf = key.split("/")
        node = tree
        for piece in path:
            node = node.setdefault(piece, {})
        node[leaf] = array
    head = formats.read({"params": {"pool": tree}}, name, **heads.given(name))
    same_arrays(formats.write(head, name), tensors)


def test_arrays_in_the_other_byte_order_are_read():
    tensors = heads.tensors_of("flax_mha")
    swapped = {key: array.astype(array.dtype.newbyteorder()) for key, array in tensors.items()}
    written = {}
    attnpool_flax.save(attnpool_flax.load(swapped, "flax_mha"), written, "flax_mha")
    same_arrays(written, tensors)


def test_parameters_in_boxes_are_read():
    tensors, written = heads.tensors_of("flax_mha"), {}
    boxed = {key: nn.Partitioned(jnp.asarray(array), (None,) * array.ndim) for key, array in tensors.items()}
    module, variables = linen.load({"params": boxed, 0: {"step": 3}}, "flax_mha")
    linen.save(module, variables, written, "flax_mha")
    same_arrays(written, tensors)


def test_copies_of_extras_are_equal_and_read_only():
    extras = attnpool_flax.load(heads.tensors_of("clam"), "clam").extras
    for copied in (copy.copy(extras), copy.deepcopy(extras), pickle.loads(pickle.dumps(extras))):
        assert copied == extras and hash(copied) == hash(extras)
        assert not any(array.flags.writeable for array in copied.values())


def test_optional_biases_come_and_go():
    for without in ([], ["q.bias"], ["proj.bias", "kv.bias"], ["q.bias", "kv.bias", "proj.bias"]):
        tensors = heads.tensors_of("timm_latent", without=without)
        head = formats.read(tensors, "timm_latent", **heads.given("timm_latent"))
        same_arrays(formats.write(head, "timm_latent"), tensors)
    assert head.options["use_bias"] is False
    lacking = formats.read(
        heads.tensors_of("timm_latent", without=["kv.bias"]), "timm_latent", **heads.given("timm_latent")
    )
    assert lacking.options["use_bias"] == ("query_bias", "out_bias")


def test_extras_that_change_nothing_are_made_where_a_module_was_not_loaded():
    head = formats.read(heads.tensors_of("clam", 1), "clam")
    written = formats.write(head._replace(extras={}), "clam")
    same_arrays({"attention_c.bias": written["attention_c.bias"]}, {"attention_c.bias": np.zeros(4, np.float32)})


def test_a_batch_norm_that_was_trained_since_is_written_as_it_is_now():
    tensors = heads.tensors_of("speechbrain_asp")
    head = formats.read(tensors, "speechbrain_asp")
    head.parameters["norm_scale"] = head.parameters["norm_scale"] * 2
    written = formats.write(head, "speechbrain_asp")
    again = formats.read(written, "speechbrain_asp")
    for name in ("norm_scale", "norm_bias"):
        np.testing.assert_array_max_ulp(again.parameters[name], head.parameters[name], 1)
    same_arrays(
        {key: written[key] for key in written if "norm" not in key},
        {k: v for k, v in tensors.items() if "norm" not in k},
    )


SIGNALING = np.uint32(0x7F812345)
"""The bits of a NaN that NumPy warns of where it casts it."""

ODD_STATISTICS = {
    "a variance below 0": ("running_var", -1.0),
    "a variance that epsilon makes 0": ("running_var", np.float32(-1e-5)),
    "NaN in a mean": ("running_mean", np.nan),
    "an infinite mean": ("running_mean", np.inf),
    "NaN in a scale": ("weight", np.nan),
    "a signaling NaN in a mean": ("running_mean", SIGNALING),
    "a mean near the largest float": ("running_mean", 3e38),
}


@pytest.mark.parametrize("case", ODD_STATISTICS)
def test_a_batch_norm_is_written_bit_for_bit_whatever_its_statistics(case):
    name, value = ODD_STATISTICS[case]
    tensors, written = heads.tensors_of("speechbrain_asp"), {}
    tensor = tensors[f"tdnn.norm.norm.{name}"]
    (tensor.view(np.uint32) if value is SIGNALING else tensor)[2] = value
    head = formats.read(tensors, "speechbrain_asp")
    same_arrays(formats.write(head, "speechbrain_asp"), tensors)
    for dtype in (None, jnp.bfloat16):
        module = attnpool_flax.load(tensors, "speechbrain_asp", param_dtype=dtype)
        attnpool_flax.save(module, written, "speechbrain_asp")
        norm = {key: array for key, array in tensors.items() if "norm" in key}
        same_arrays({key: written[key] for key in norm}, norm)


def test_a_zero_that_lost_its_sign_has_changed():
    tensors = heads.tensors_of("speechbrain_asp")
    tensors["tdnn.norm.norm.weight"][2] = tensors["tdnn.norm.norm.bias"][2] = 0
    head = formats.read(tensors, "speechbrain_asp")
    head.parameters["norm_scale"] = np.where(
        head.parameters["norm_scale"] == 0, np.float32(-0.0), head.parameters["norm_scale"]
    )
    again = formats.read(formats.write(head, "speechbrain_asp"), "speechbrain_asp")
    assert np.signbit(again.parameters["norm_scale"][2])


def test_files_of_one_format_are_written_as_another_of_the_same_module():
    head = formats.read(heads.tensors_of("siglip"), "siglip", num_heads=2)
    there = formats.read(formats.write(head, "siglip_bv", prefix="params/img/MAPHead_0/"), "siglip_bv")
    assert there.options == head.options
    same_arrays(there.parameters, head.parameters)


def test_a_sharded_file_is_read_through_its_index(tmp_path):
    import json

    from attnpool_ref.formats.sources import safetensors

    tensors = heads.tensors_of("siglip", prefix="head.")
    names = sorted(tensors)
    parts = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
    for file, held in parts.items():
        safetensors.save({name: tensors[name] for name in held}, tmp_path / file)
    index = {"weight_map": {name: file for file, held in parts.items() for name in held}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for source in (tmp_path, tmp_path / "model.safetensors.index.json"):
        head = formats.read(source, "siglip", num_heads=2)
        same_arrays(formats.write(head, "siglip", prefix="head."), tensors)


def test_only_the_tensors_of_the_head_are_read(tmp_path):
    from attnpool_ref.formats.sources import opened, safetensors

    file = tmp_path / "model.safetensors"
    safetensors.save(heads.tensors_of("siglip", prefix="head.") | {"encoder.weight": np.ones((500, 500))}, file)
    raw = bytearray(file.read_bytes())
    raw[-2_000_000:-1] = b"\xff" * 1_999_999  # the encoder's numbers, which nobody looks at
    file.write_bytes(raw)
    assert "encoder.weight" in opened(file).tensors
    formats.read(file, "siglip", num_heads=2)

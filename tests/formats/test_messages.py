"""What cannot be loaded or saved is refused in one sentence that says what to do."""

import re
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx
from formats import heads

import attnpool_flax
from attnpool_flax import linen
from attnpool_ref import formats


def refused(message, name, tensors, **options):
    with pytest.raises(ValueError, match=message):
        formats.read(tensors, name, **options)


def test_all_keys_that_do_not_fit_are_named_at_once():
    tensors = heads.tensors_of("siglip", prefix="head.", without=["mlp.fc1.bias", "layernorm.weight"])
    tensors |= {"head.mlp.fc3.weight": np.ones((2, 2)), "head.mlp.fc2.bias": np.ones(5)}
    refused(
        r"^siglip: the keys of the mapping under 'head.' do not fit: missing `layernorm.weight`, `mlp.fc1.bias`; "
        r"unexpected `head.mlp.fc3.weight`; `head.mlp.fc2.bias` is \[5\], needs \[6\]$",
        "siglip",
        tensors,
        num_heads=2,
    )


def test_heads_of_two_widths_are_named():
    tensors = heads.tensors_of("keras_mha") | {"value/kernel": np.ones((10, 2, 5)), "value/bias": np.ones((2, 5))}
    refused(r"`value/kernel` is \[10, 2, 5\], needs \[v, 2, 3\]", "keras_mha", tensors)


def test_a_norm_of_another_width_than_the_packed_kernel_is_named():
    tensors = heads.tensors_of("coca") | {"ln_k.weight": np.ones(4), "ln_k.bias": np.ones(4)}
    refused(r"`ln_k.weight` is \[4\], needs \[6\]; `ln_k.bias` is \[4\], needs \[6\]$", "coca", tensors, num_heads=2)


@pytest.mark.parametrize("prefix", ["head", "vision.head", 3, b"head."])
def test_a_prefix_that_ends_within_a_piece_is_refused(prefix):
    tensors = heads.tensors_of("siglip", prefix="head.")
    refused("^siglip: `prefix` is .*, needs '.' or '/' at its end", "siglip", tensors, num_heads=2, prefix=prefix)
    head = formats.read(tensors, "siglip", num_heads=2, prefix="head/")  # either separator
    with pytest.raises(ValueError, match=r"^siglip: `prefix` is .*head.'"):
        formats.write(head, "siglip", prefix=prefix)


def test_names_that_differ_by_their_separator_alone_are_refused():
    tensors = heads.tensors_of("siglip", prefix="head.") | {"head/probe": np.ones((1, 1, 6))}
    refused("'head.probe' and 'head/probe' are one name, written with '.' and with '/'", "siglip", tensors, num_heads=2)


@pytest.mark.parametrize("name", ["\x1b[2J", "\ud800", "a\nb"])
def test_names_that_move_a_cursor_or_cannot_be_printed_are_escaped(name):
    tensors = heads.tensors_of("siglip", prefix="head.") | {f"head.{name}": np.ones(3)}
    refused(f"unexpected `head.{re.escape(repr(name)[1:-1])}`$", "siglip", tensors, num_heads=2)


def test_of_many_unexpected_keys_the_ten_that_are_nearest_are_named_and_the_others_counted():
    near = {f"head.mlp.fc{number}.weight": np.ones(1) for number in range(3, 8)}
    many = {f"head.blocks.{number}.weight": np.ones(1) for number in range(20_000)}
    with pytest.raises(ValueError, match="unexpected") as caught:
        formats.read(heads.tensors_of("siglip", prefix="head.") | many | near, "siglip", num_heads=2)
    message = str(caught.value)
    listed = ", ".join(f"`{name}`" for name in [*near, *sorted(many)[:5]])
    assert message.endswith(f"do not fit: unexpected {listed} and 19995 more")


def test_a_name_of_any_length_is_shown_by_its_ends():
    tensors = heads.tensors_of("siglip", prefix="head.") | {f"head.{'x' * 100_000}": np.ones(1)}
    refused(r"unexpected `head\.x+\.\.\.x+`$", "siglip", tensors, num_heads=2)
    with pytest.raises(ValueError, match=r"and 190 more$") as caught:
        formats.read(
            {f"{'x' * 10_000}{n}.{key}": a for n in range(200) for key, a in heads.tensors_of("clip").items()}, "clip"
        )
    assert len(str(caught.value)) < 3000


def test_a_name_too_long_for_an_archive_is_named(tmp_path):
    head = formats.read(heads.tensors_of("flax_mha"), "flax_mha")
    with pytest.raises(ValueError, match=r"^'a+\.\.\..*' has \d+ letters, too many for .npz files; take .safetensors$"):
        formats.save(head, tmp_path / "x.npz", "flax_mha", prefix="a" * 70_000 + "/")
    formats.save(head, tmp_path / "x.safetensors", "flax_mha", prefix="a" * 70_000 + "/")
    assert [path.name for path in tmp_path.iterdir()] == ["x.safetensors"]


def test_a_number_of_more_digits_than_python_prints_is_refused():
    for options in ({"num_heads": 10**5000}, {"num_heads": 2, "epsilon": 10**5000}):
        refused("is an int with thousands of digits, ", "siglip", heads.tensors_of("siglip"), **options)


def test_the_time_for_a_file_grows_with_its_names_and_not_with_their_square():
    """The tenfold number of layers takes about tenfold, where each would be held against all names a hundredfold."""

    def seconds(count, act):
        layers = {f"l{n}.{key}": a for n in range(count) for key, a in heads.tensors_of("torch_mha").items()}
        begin = time.process_time()
        act(layers)
        return time.process_time() - begin

    def read(layers):
        with pytest.raises(ValueError, match="has no such head"):
            formats.read(layers, "siglip")

    for act in (read, formats.fitting):
        assert seconds(3000, act) < 40 * seconds(300, act)


def test_several_heads_are_listed():
    both = heads.tensors_of("siglip", prefix="a.") | heads.tensors_of("siglip", prefix="b.head.")
    refused(r"has 2 such heads; say which `prefix`: 'a.', 'b.head.'$", "siglip", both, num_heads=2)
    assert formats.read(both, "siglip", prefix="a.", num_heads=2).module == "MAPHead"


def test_no_head_at_all_says_what_was_looked_for():
    refused(
        "^clip: the mapping has no such head: no key ends with one of `positional_embedding`, ",
        "clip",
        {"a": np.ones(2)},
    )


def test_an_unknown_format_is_answered_with_the_nearest():
    refused("^no format is called 'siglib'; did you mean siglip, siglip_bv", "siglib", {})
    refused("^no format is called 'SigLIP'; did you mean siglip, siglip_bv", "SigLIP", {})
    refused("^no format is called 'zzz'; there are siglip, ", "zzz", {})
    for source, name in (("siglip", {}), ({}, formats.get("siglip"))):
        with pytest.raises(TypeError, match=r"^`format` is a (dict|Format), needs the name of a format, such as"):
            formats.read(source, name)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("siglip", {}, "no tensor says `num_heads`; say `num_heads=`, or give the folder with its config.json$"),
        ("siglip", {"num_heads": 4}, "`num_heads` is 4, which does not divide the width 6"),
        ("siglip", {"num_heads": 0}, "`num_heads` is 0, needs an integer of at least 1"),
        ("siglip", {"num_heads": 2.0}, "`num_heads` is 2.0, needs an integer of at least 1"),
        ("siglip", {"num_heads": True}, "`num_heads` is True, needs an integer of at least 1"),
        (
            "siglip",
            {"num_heads": 2, "activation": "swish"},
            "`activation` is 'swish', needs one of gelu_tanh, gelu, relu",
        ),
        ("siglip", {"num_heads": 2, "epsilon": -1.0}, "`epsilon` is -1.0, needs a number of at least 0"),
        ("siglip", {"num_heads": 2, "epsilon": "1e-6"}, "`epsilon` is '1e-6', needs a number of at least 0"),
        ("flax_mha", {"num_heads": 3}, "`num_heads` is 3, but the tensors have 2"),
        ("torch_mha", {"num_heads": 2, "epsilon": 1e-6}, "`epsilon` is 1e-06, but this format has none"),
        ("clam", {"num_heads": 2}, "`num_heads` is 2, but this format has none"),
        ("siglip", {"num_heads": 2, "add_zero_attn": True}, "`add_zero_attn` is True, but this format has none"),
        ("torch_mha", {"num_heads": 2, "add_zero_attn": 1}, "`add_zero_attn` is 1, needs True or False"),
        (
            "siglip",
            {"num_heads": 2, "activation": "gelu_new"},
            "`activation` is 'gelu_new', needs one of .*; 'gelu_new' is 'gelu_tanh' here$",
        ),
        (
            "timm_latent",
            {},
            "no tensor says `num_heads`, `epsilon`, `activation`; say `num_heads=`, `epsilon=`, `activation=`$",
        ),
        (
            "timm_latent",
            {"epsilon": 1e-6},
            "no tensor says `num_heads`, `activation`; say `num_heads=`, `activation=`$",
        ),
        ("timm_latent", {"num_heads": 2, "epsilon": 1e-6}, "no tensor says `activation`; say `activation=`$"),
        ("timm_latent", {"num_heads": 2, "activation": "gelu"}, "no tensor says `epsilon`"),
        ("clip", {}, "no tensor says `num_heads`"),  # heads of 64 do not divide a width of 6
    ],
)
def test_options_are_asked_for_and_checked(name, options, message):
    refused(f"^{name}: {message}", name, heads.tensors_of(name), **options)


@pytest.mark.parametrize(
    ("name", "key", "feature"),
    [
        ("torch_mha", "bias_k", "an extra key and value"),
        ("flax_mha", "query_ln/scale", "a norm per head"),
        ("timm_latent", "q_norm.weight", "a norm per head"),
        ("timm_latent", "pos_embed", "positions of its own"),
        ("timm_pool2d", "pos_embed.periods", "rotary positions"),
        ("vjepa", "blocks.0.norm1.weight", "self-attention blocks in its probe"),
        ("vjepa", "cross_attention_block.q.weight", "a probe without its block"),
        ("vjepa2_hf", "self_attention_layers.0.layer_norm1.weight", "self-attention layers in its probe"),
        ("aim", "k.bias", "biases in AIM's probe"),
        ("coca", "attn.bias_k", "an extra key and value"),
    ],
)
def test_a_feature_that_no_module_has_is_named(name, key, feature):
    tensors = heads.tensors_of(name, prefix="x.") | {f"x.{key}": np.ones((1, 1, 6))}
    refused(
        f"^{name}: no module of attnpool has {feature}.*, which `x.{key}` belongs to",
        name,
        tensors,
        **heads.given(name),
    )


def test_a_head_of_timm_without_positions_may_have_rotary_ones():
    for form in range(4):
        rotary = heads.tensors_of("timm_pool2d", form, prefix="head.", without=["pos_embed"], d=8)
        refused(
            "^timm_pool2d: the keys of the mapping under 'head.' do not fit: missing `pos_embed`; no module of attnpool has the "
            "rotary positions of `RotAttentionPool2d`, which a head without it may have$",
            "timm_pool2d",
            rotary,
            num_heads=2,
        )
    more = heads.tensors_of("timm_pool2d", without=["pos_embed", "proj.weight"])
    refused("do not fit: missing `pos_embed`, `proj.weight`$", "timm_pool2d", more, num_heads=2)


def test_a_head_that_stands_elsewhere_or_is_another_is_shown():
    siglip = heads.tensors_of("siglip", prefix="module.head.") | {"module.encoder.weight": np.ones((2, 2))}
    for prefix in ("head.", "module.", ""):
        refused(
            f"^siglip: the mapping has none of `probe`, .* under '{prefix}'; one is under 'module.head.'$",
            "siglip",
            siglip,
            num_heads=2,
            prefix=prefix,
        )
    refused("; one is under 'state_dict/module.head.'$", "siglip", {"state_dict": siglip}, prefix="module.head.")
    asked = {"num_heads": 2, "epsilon": 1e-6, "activation": "gelu"}
    refused("unexpected .*; `siglip` fits under 'module.head.'$", "timm_latent", siglip, **asked)
    refused("; `haiku_mha` fits$", "flax_mha", heads.tensors_of("haiku_mha"))
    refused("; `clam` fits under 'a.'$", "abmil", heads.tensors_of("clam", prefix="a."))
    lacking = heads.tensors_of(
        "siglip", prefix="head.", without=["probe"]
    )  # its attention alone would fit as torch_mha
    refused("do not fit: missing `probe`$", "siglip", lacking, num_heads=2)
    normed = heads.tensors_of("timm_latent") | {"q_norm.weight": np.ones(3)}
    refused("no key ends with one of [^;]*$", "clip", normed)


def test_what_is_no_source_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file or folder 'absent/siglip'; nothing is downloaded"):
        formats.read("absent/siglip", "siglip")
    for source in (3, None, [np.ones(2)], iter({"probe": np.ones(2)}.items())):
        with pytest.raises(
            TypeError, match=r"path or a mapping, not from an? \w+; give a mapping from names to arrays$"
        ):
            formats.read(source, "siglip")
    with pytest.raises(TypeError, match=r"not from a Layer; give what its `state_dict\(\)` returns"):
        formats.read(type("Layer", (), {"state_dict": dict})(), "siglip")
    with pytest.raises(TypeError, match=r"not from a MultiHeadDotProductAttention; give its variables, as `init`"):
        attnpool_flax.load(nn.MultiHeadDotProductAttention(2), "flax_mha")
    for empty in ({}, {"probe": [1.0, 2.0]}):
        refused("^siglip: the mapping holds no arrays, of NumPy, JAX or PyTorch$", "siglip", empty)
    (tmp_path / "x.txt").touch()
    refused(r"x.txt: needs a .safetensors or .npz file, a folder or a mapping", "siglip", tmp_path / "x.txt")
    (tmp_path / "flax_model.msgpack").touch()
    refused(r"has flax_model.msgpack and no .safetensors file; it is a msgpack file", "siglip", tmp_path)
    integers = {key: value.astype(np.int32) for key, value in heads.tensors_of("flax_mha").items()}
    refused("`query/kernel` has dtype int32, needs float16, bfloat16, float32, float64", "flax_mha", integers)
    masked = heads.tensors_of("flax_mha")
    masked["key/kernel"] = np.ma.masked_less(masked["key/kernel"], 0)
    refused(r"^'key/kernel' is a masked array, needs a plain one; give `array.filled\(value\)`$", "flax_mha", masked)


@pytest.mark.parametrize("dtype", [np.complex64, np.longdouble, ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
def test_a_dtype_that_no_parameter_has_is_refused(dtype):
    tensors = {key: value.astype(dtype) for key, value in heads.tensors_of("flax_mha").items()}
    refused("`query/kernel` has dtype .*, needs float16, bfloat16, float32, float64$", "flax_mha", tensors)


def test_a_bfloat16_that_lost_its_name_in_an_archive_is_named(tmp_path):
    tensors = heads.tensors_of("flax_mha", dtype=ml_dtypes.bfloat16)
    np.savez(tmp_path / "head.npz", **tensors)
    refused(r"has dtype \|V2, needs .*; `array.view\(ml_dtypes.bfloat16\)` if", "flax_mha", tmp_path / "head.npz")


def test_statistics_of_integers_are_refused():
    tensors = heads.tensors_of("speechbrain_asp")
    tensors["tdnn.norm.norm.weight"] = np.array([1, 2, 3, 4, 5])
    refused("`tdnn.norm.norm.weight` has dtype int64, needs float16", "speechbrain_asp", tensors)


def test_a_loaded_module_computes_in_another_dtype_than_that_of_its_parameters():
    tensors, narrow = heads.tensors_of("speechbrain_asp"), {"dtype": jnp.bfloat16}
    assert attnpool_flax.load(tensors, "speechbrain_asp", **narrow).dtype == jnp.bfloat16
    module, variables = linen.load(tensors, "speechbrain_asp", **narrow)
    assert (module.dtype, variables["params"]["kernel"].dtype) == (jnp.bfloat16, jnp.float32)
    for load in (attnpool_flax.load, linen.load):
        with pytest.raises(ValueError, match=r"^AttentiveStatisticsPool: `dtype` is int8, needs one of float16"):
            load(tensors, "speechbrain_asp", dtype="int8")


@pytest.mark.parametrize("dtype", [jnp.int32, bool, jnp.complex64])
def test_parameters_are_converted_to_floats_alone(dtype):
    for load in (attnpool_flax.load, linen.load):
        with pytest.raises(
            ValueError, match=r"^flax_mha: `param_dtype` is .*, needs float16, bfloat16, float32, float64$"
        ):
            load(heads.tensors_of("flax_mha"), "flax_mha", param_dtype=dtype)


def test_parameters_of_several_dtypes_are_loaded_where_nothing_is_promoted():
    tensors = heads.tensors_of("flax_mha")
    tensors["query/bias"] = tensors["query/bias"].astype(np.float16)
    with jax.numpy_dtype_promotion("strict"):
        module = attnpool_flax.load(tensors, "flax_mha")
    assert (module.query_bias[...].dtype, module.query_kernel[...].dtype) == (jnp.float16, jnp.float32)


class Tensor:
    """What PyTorch has on its device "meta"."""

    __module__ = "torch"
    shape, dtype = (4, 2, 3), "torch.float32"

    def detach(self):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")


def test_a_tensor_of_pytorch_without_numbers_is_named():
    for kind in (Tensor, type("Parameter", (Tensor,), {"__module__": "elsewhere"})):
        tensors = heads.tensors_of("flax_mha") | {"key/kernel": kind()}
        refused("'key/kernel' is a tensor that cannot be read: Cannot copy out", "flax_mha", tensors)


def test_float64_without_x64_asks_for_a_dtype():
    tensors = heads.tensors_of("flax_mha", dtype=np.float64)
    for load in (attnpool_flax.load, linen.load):
        for options in ({}, {"param_dtype": jnp.float64}):
            with pytest.raises(
                ValueError, match="`query_kernel` would be float64, which JAX has only with `jax_enable_x64`"
            ):
                load(tensors, "flax_mha", **options)
    assert attnpool_flax.load(tensors, "flax_mha", param_dtype=jnp.float32).query_kernel[...].dtype == jnp.float32
    with jax.enable_x64(True):
        assert attnpool_flax.load(tensors, "flax_mha").query_kernel[...].dtype == jnp.float64


def test_a_head_that_a_format_cannot_hold_is_refused_with_the_reason(tmp_path):
    def cannot(message, module, name, target=None):
        with pytest.raises(ValueError, match=message):
            attnpool_flax.save(module, {} if target is None else target, name)

    rngs = nnx.Rngs(0)
    head = attnpool_flax.MAPHead(in_features=4, num_heads=2, hidden_features=8, rngs=rngs)
    cannot("^clip holds an AttentionPool2d, and this is a MAPHead", head, "clip")
    cannot("^torch_mha holds a MultiHeadAttention, and this is a Linear", nnx.Linear(2, 2, rngs=rngs), "torch_mha")
    cannot("^sentence_transformers holds a SentencePool, and this is a MAPHead", head, "sentence_transformers")
    cannot(r"x.h5: needs an ending that is written here: .safetensors, .npz", head, "siglip", tmp_path / "x.h5")
    bare = attnpool_flax.MAPHead(in_features=4, num_heads=2, hidden_features=8, use_bias=False, rngs=rngs)
    cannot("^siglip cannot hold this MAPHead: `attention.in_proj_bias` needs `query_bias`, `key_bias`", bare, "siglip")
    pool = attnpool_flax.AdditiveAttentionPool(4, 3, use_bias=False, rngs=rngs)
    cannot("^abmil cannot hold this AdditiveAttentionPool: .*`attention.0.bias` needs `bias`", pool, "abmil")
    author = attnpool_flax.AttentiveProbe(in_features=4, num_heads=2, variant="aim", rngs=rngs)
    cannot("^vjepa cannot hold this AttentiveProbe: `variant` is 'aim', needs 'vjepa'", author, "vjepa")
    relu = attnpool_flax.AdditiveAttentionPool(4, 3, activation="relu", rngs=rngs)
    for name in ("abmil", "clam"):
        cannot("cannot hold this AdditiveAttentionPool: `activation` is 'relu', needs 'tanh'", relu, name)
    plain = attnpool_flax.AttentiveStatisticsPool(4, hidden_features=3, rngs=rngs)
    cannot("^speechbrain_asp cannot hold this .*: `use_norm` is False, needs True", plain, "speechbrain_asp")
    options = {"use_norm": True, "global_context": True, "context_ddof": 1}
    unbiased = attnpool_flax.AttentiveStatisticsPool(4, hidden_features=3, rngs=rngs, **options)
    cannot("`context_ddof` is 1, needs 0", unbiased, "speechbrain_asp")
    with pytest.raises(FileNotFoundError, match=r"there is no folder '.*absent'; none is made"):
        attnpool_flax.save(head, tmp_path / "absent" / "x.npz", "siglip")
    wide = attnpool_flax.MultiHeadAttention(num_heads=2, query_features=4, out_features=6, rngs=rngs)
    cannot(r"`out_proj.weight` would be \[6, 4\], needs \[4, 4\]", wide, "torch_mha")
    for sink, message in (
        (1.0, "flax_mha cannot hold .*`sink` is 1.0, needs None"),
        (0.0, "`sink` is 0.0, needs None"),
        ("learned", "it has no place for `sink`"),
    ):
        with_sink = attnpool_flax.MultiHeadAttention(num_heads=2, query_features=4, sink=sink, rngs=rngs)
        cannot(message, with_sink, "flax_mha")
    module, variables = linen.load(heads.tensors_of("clam"), "clam")
    with pytest.raises(ValueError, match='`variables` has no collection "params"'):
        linen.save(module, variables["params"], {}, "clam")
    with pytest.raises(TypeError, match="a head is written to a path or into a dict, not into an int"):
        attnpool_flax.save(head, 3, "siglip")

"""A refused call ends in its message: one frame of the package, that of what was called, and no chained exception."""

import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from packages import every_package

import attnpool_flax
import attnpool_ref

X = np.ones((2, 3, 4), np.float32)
FLOATS = np.ones((2, 3), np.float32)
POOL = attnpool_flax.AttentionPool(4, rngs=nnx.Rngs(0))
LINEN = attnpool_flax.linen.AttentionPool()
PARAMS = {"params": {"query": jnp.ones(4)}}
LINEN_LOAD, LINEN_SAVE = attnpool_flax.linen.load, attnpool_flax.linen.save
HEADS = {"in_proj_weight": np.ones((6, 2), np.float32), "out_proj.weight": np.eye(2, dtype=np.float32)}

REFUSED = {  # (the call, the function of the frame)
    **{
        f"{package.__name__}, {what}": (call, name)
        for package in (attnpool_ref, attnpool_flax)
        for what, call, name in (
            ("a mask of floats", lambda p=package: p.mean_pooling(X, FLOATS), "mean_pooling"),
            ("an unknown keyword", lambda p=package: p.mean_pooling(X, maks=1), "mean_pooling"),
            ("a missing argument", lambda p=package: p.mean_pooling(), "mean_pooling"),
            ("text", lambda p=package: p.mean_pooling("x"), "mean_pooling"),
            ("an option", lambda p=package: p.masked_softmax(X, axis=7), "masked_softmax"),
            ("a ragged list", lambda p=package: p.mean_pooling([[1], [2, 3]]), "mean_pooling"),
            ("a list of nothing", lambda p=package: p.pack([]), "pack"),
            ("no state", lambda p=package: p.merge_states(1, 2), "merge_states"),
        )
    },
    "under jit": (lambda: jax.jit(attnpool_flax.mean_pooling)(X, FLOATS), "mean_pooling"),
    "a module's width": (lambda: POOL(X[..., :3]), "AttentionPool.__call__"),
    "a module's mask": (lambda: POOL(X, FLOATS), "AttentionPool.__call__"),
    "a module's keyword": (lambda: POOL(X, maks=1), "AttentionPool.__call__"),
    "a module's constructor": (lambda: attnpool_flax.AttentionPool(0, rngs=nnx.Rngs(0)), "AttentionPool.__init__"),
    "a Linen module's mask": (lambda: LINEN.apply(PARAMS, X, FLOATS), "AttentionPool.__call__"),
    "a Linen module's field": (lambda: attnpool_flax.linen.AttentionPool(dtype="int8"), "AttentionPool.__init__"),
    "sizes by position": (lambda: attnpool_flax.MAPHead(8, 2, 16, rngs=nnx.Rngs(0)), "MAPHead.__init__"),
    "a Linen module's sizes by position": (lambda: attnpool_flax.linen.MAPHead(2, 16), "MAPHead.__init__"),
}


REFUSED |= {  # heads of files
    **{
        f"{load.__module__}.{load.__name__}, {what}": (call, load.__name__)
        for load in (attnpool_ref.formats.read, attnpool_flax.load, LINEN_LOAD)
        for what, call in (
            ("an unknown format", lambda load=load: load({}, "sigli")),
            ("no name", lambda load=load: load({}, 3)),
            ("no arrays", lambda load=load: load({}, "siglip")),
            ("no source", lambda load=load: load(None, "siglip")),
            ("a file that is not there", lambda load=load: load("nowhere.npz", "siglip")),
            ("a folder that is not there", lambda load=load: load("nowhere", "sentence_transformers")),
            ("a number of heads", lambda load=load: load(HEADS, "torch_mha", num_heads=3)),
            ("keys that are missing", lambda load=load: load({"a": np.ones(2)}, "torch_mha", num_heads=1)),
            ("an unknown keyword", lambda load=load: load(HEADS, "torch_mha", heads=1)),
        )
    },
    **{
        f"{load.__module__}.{load.__name__}, {dtype}": (
            lambda load=load, dtype=dtype: load(HEADS, "torch_mha", num_heads=1, param_dtype=dtype),
            load.__name__,
        )
        for load in (attnpool_flax.load, LINEN_LOAD)
        for dtype in ("int8", "nonsense")
    },
    "save, another module": (lambda: attnpool_flax.save(POOL, {}, "siglip"), "save"),
    "save, no module": (lambda: attnpool_flax.save({}, {}, "siglip"), "save"),
    "save, a Linen module": (lambda: attnpool_flax.save(LINEN, {}, "siglip"), "save"),
    "linen.save, another module": (lambda: LINEN_SAVE(LINEN, PARAMS, {}, "siglip"), "save"),
    "linen.save, no module": (lambda: LINEN_SAVE(3, PARAMS, {}, "siglip"), "save"),
    "linen.save, an NNX module": (lambda: LINEN_SAVE(POOL, PARAMS, {}, "siglip"), "save"),
    "formats.write, no head": (lambda: attnpool_ref.formats.write(3, "siglip"), "write"),
    "formats.save, no head": (lambda: attnpool_ref.formats.save(3, {}, "sentence_transformers"), "save"),
    "formats.save, no folder": (
        lambda: attnpool_ref.formats.save(
            attnpool_ref.formats.read(HEADS, "torch_mha", num_heads=1), "no/a.npz", "torch_mha"
        ),
        "save",
    ),
    "formats.fitting": (lambda: attnpool_ref.formats.fitting("nowhere.npz"), "fitting"),
    "formats.examined": (lambda: attnpool_ref.formats.examined(3), "examined"),
    "formats.get": (lambda: attnpool_ref.formats.get("x"), "get"),
}


def frames(error):
    """The frames of the packages in a traceback, as (file, function)."""
    found = traceback.extract_tb(error.__traceback__)
    return [frame.name for frame in found if "attnpool_ref/" in frame.filename or "attnpool_flax/" in frame.filename]


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_shows_one_frame_of_the_package_and_chains_nothing(name):
    call, function = REFUSED[name]
    with pytest.raises((TypeError, ValueError, OSError)) as caught:
        call()
    assert frames(caught.value) == [function]
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_all_frames_are_there_where_they_are_asked_for(monkeypatch):
    monkeypatch.setenv("ATTNPOOL_TRACEBACK", "full")
    for call, _ in REFUSED.values():
        with pytest.raises((TypeError, ValueError, OSError)) as caught:
            call()
        assert caught.value.__context__ is None
    with pytest.raises(ValueError, match="mean_pooling: `mask` has dtype float32") as caught:
        attnpool_flax.mean_pooling(X, FLOATS)
    assert len(frames(caught.value)) > 3


@every_package
def test_an_error_of_a_callers_function_keeps_its_frames(package):
    def normalizer(scores, mask):
        raise ValueError("mine")

    module = attnpool_flax.AttentionPool(4, normalizer=normalizer, rngs=nnx.Rngs(0))
    for call in (lambda: package.attend(X, X.mT, normalizer=normalizer), lambda: module(X)):
        with pytest.raises(ValueError, match="mine") as caught:
            call()
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "normalizer"


POLARITY = "? True is a real token here"
LAST_BUT_ONE = "tokens are on the last axis but one"


@every_package
@pytest.mark.parametrize(
    ("function", "keyword", "meant"),
    [
        ("mean_pooling", "maks", "; did you mean `mask`?"),
        ("mean_pooling", "attention_mask", "; did you mean `mask`?"),
        (
            "mean_pooling",
            "key_padding_mask",
            "; did you mean `mask=~key_padding_mask`? True is a real token here",
        ),
        ("mean_pooling", "padding_mask", "; did you mean `mask=padding_mask`? True is a real token here"),
        ("mean_pooling", "src_key_padding_mask", f"; did you mean `mask=~src_key_padding_mask`{POLARITY}"),
        ("mean_pooling", "paddings", f"; did you mean `mask=paddings == 0`{POLARITY}"),
        ("mean_pooling", "attn_mask", f"; did you mean `mask=attn_mask`{POLARITY}"),
        ("mean_pooling", "wav_lens", "; did you mean `lengths=np.round(wav_lens * L).astype(int)`?"),
        ("mean_pooling", "where", "; did you mean `mask`?"),
        ("mean_pooling", "axis", f"; {LAST_BUT_ONE}: `x.swapaxes(axis, -2)` for another axis"),
        ("mean_pooling", "dim", f"; {LAST_BUT_ONE}: `x.swapaxes(dim, -2)` for another axis"),
        ("mean_pooling", "keepdims", "; the result has no axis of tokens: `[..., None, :]` adds one"),
        ("dot_product_attention", "paddings", f"; did you mean `mask=paddings[..., None, :] == 0`{POLARITY}"),
        (
            "dot_product_attention",
            "key_padding_mask",
            f"; did you mean `mask=~key_padding_mask[..., None, :]`{POLARITY}",
        ),
        ("dot_product_attention", "key_value_seq_lengths", "; did you mean `lengths`?"),
        (
            "dot_product_attention",
            "is_causal",
            "; did you mean `mask=np.tril(np.ones((n, m), bool))`, with n queries and m keys?",
        ),
        (
            "cross_attention_pooling",
            "key_padding_mask",
            f"; did you mean `x_mask=~key_padding_mask` or `y_mask=~key_padding_mask`{POLARITY}",
        ),
        ("mean_pooling", "other", "; it takes `x`, `mask`, `lengths`"),
        ("l2_normalize", "dim", "; did you mean `axis`?"),
        ("layer_norm", "eps", "; did you mean `epsilon`?"),
    ],
)
def test_an_unknown_keyword_suggests_what_was_meant(package, function, keyword, meant):
    with pytest.raises(TypeError) as caught:
        getattr(package, function)(X, **{keyword: 1})
    assert str(caught.value) == f"{function}: got an unexpected keyword argument '{keyword}'{meant}"


def test_an_unknown_keyword_of_a_module_suggests_what_was_meant():
    with pytest.raises(TypeError, match=r"'key_padding_mask'; did you mean `mask=~key_padding_mask`\? True"):
        POOL(X, key_padding_mask=FLOATS)
    with pytest.raises(TypeError, match="'in_feature'; did you mean `in_features`"):
        attnpool_flax.AttentionPool(in_feature=4, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(("kind", "sizes"), [("AttentionPool", {"in_features": 4}), ("MAPHead", {"in_features": 4})])
def test_missing_rngs_come_with_an_example(kind, sizes):
    with pytest.raises(TypeError, match=r"'rngs', such as `rngs=nnx.Rngs\(0\)`$"):
        getattr(attnpool_flax, kind)(**sizes)


@pytest.mark.parametrize(
    ("save", "message"),
    [
        (lambda: attnpool_flax.save({}, {}, "siglip"), "save: `module` is a dict, needs an NNX module"),
        (lambda: LINEN_SAVE(POOL, PARAMS, {}, "siglip"), "save: `module` is an AttentionPool, needs a Linen module"),
        (lambda: attnpool_ref.formats.write({}, "siglip"), "`head` is a dict, needs a Head, as `read` gives it"),
        (
            lambda: attnpool_flax.load(HEADS, "torch_mha", num_heads=1, param_dtype="x"),
            "torch_mha: `param_dtype` is 'x', needs float16, bfloat16, float32, float64",
        ),
    ],
)
def test_what_is_no_module_head_or_dtype_is_refused_by_name(save, message):
    with pytest.raises(TypeError) as caught:
        save()
    assert str(caught.value) == message

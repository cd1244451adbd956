"""Sizes of arrays for the largest machines, by function, and optional arguments that are passed in addition to masks.

A function that is not listed has the sizes POOLING; packed tokens and states those of their dense function: N = B L
tokens in B segments. "B" is the batch axis, also if a row calls it "...".
"""

POOLING = {"B": 1024, "L": 512, "d": 768}
QUERIES = {"B": 512, "n": 1024, "m": 1024, "d": 128}
SCORES = {"B": 64, "n": 1024, "m": 1024, "d": 128}
HIDDEN = {"B": 8, "n": 64, "m": 4096, "d": 768, "h": 256}
LOCATIONS = {"B": 64, "n": 256, "m": 512, "d": 512}
PAIRS = {"B": 8, "n": 4096, "k": 4096, "T": 4096, "L": 4096, "J": 4096, "d": 128}
VECTORS = {"B": 524288, "d": 768}
EVENTS = {"B": 65536, "m": 128, "f": 768, "h": 256, "o": 128, "d": 128}

SIZES = {
    "lengths_to_mask": {"B": 65536, "max_length": 512},
    "spans_to_mask": {"B": 1024, "S": 16, "ends": 2, "max_length": 512},
    "token_positions": {"B": 65536, "L": 512},
    "location_score": LOCATIONS,
    "attend": QUERIES,
    "dot_product_attention": QUERIES,
    "additive_score": HIDDEN,
    "concat_score": HIDDEN,
    "tanh_sum_score": HIDDEN,
    "additive_attention": HIDDEN,
    "tanh_sum_attention": HIDDEN,
    "location_attention": LOCATIONS,
    "multi_head_attention": {"B": 8, "n": 1024, "m": 1024, "d": 768, "H": 12, "c": 64, "c'": 64},
    "kernel_regression": {"B": 8, "n": 512, "m": 2048, "d": 128},
    "attention_pooling": POOLING | {"c": 64},
    "multi_head_attention_pooling": {"B": 256, "L": 1024, "d": 1152, "n": 1, "H": 16, "c": 72, "c'": 72},
    "attentive_statistics_pooling": {"B": 256, "L": 512, "d": 1536, "h": 128},
    "additive_attention_pooling": POOLING | {"h": 128},
    "attention_penalty": {"B": 1024, "n": 16, "L": 512},
    "latent_attention_pooling": {"B": 16, "L": 512, "d": 1024, "r": 512, "H": 8, "c": 128, "c'": 128, "f": 4096},
    "set2set_pooling": {"B": 1024, "L": 512, "d": 256},
    "gated_sum_pooling": POOLING | {"o": 256},
    "vlad_pooling": {"B": 1024, "L": 512, "d": 128, "K": 64, "G": 8},
    "layer_norm": VECTORS,
    "residual_feed_forward": {"B": 65536, "d": 768, "f": 3072},
    "cross_attention_pooling": POOLING | {"T": 512},
    "cross_attention_pooling, reduction=max": PAIRS,
    "cross_attention_pooling_all_pairs": {"B": 32, "C": 2000, "L": 24, "T": 16, "d": 384},
    "code_wise_attention": PAIRS,
    "mask_attention": PAIRS,
    "bidaf_attention": PAIRS,
    "maxsim_score": {"B": 1024, "L": 32, "T": 180, "d": 128},
    "maxsim_score_all_pairs": {"B": 32, "C": 2000, "L": 32, "T": 180, "d": 128},
    "orthogonal_decomposition": VECTORS,
    "linear_decomposition": VECTORS,
    "rigid_decomposition": VECTORS,
    "semantic_match": {"B": 64, "L": 256, "T": 256, "d": 300},
    "graph_decomposition": {"k": 2048, "d": 256},
    "attention_triplet_loss": EVENTS,
    "differential_context": EVENTS,
    "relation_vector": EVENTS,
    "relation_triplet_loss": EVENTS,
    "field_attention_pooling": {"B": 16384, "J": 32, "d": 64},
    "label_attention": {"B": 64, "M": 512, "d": 256, "c": 64, "v": 256},
}
"""Sizes by the name of the dense function, or by name and option."""


class Sizes(dict):
    """Sizes by letter; a width that is not given, such as that of queries or results, is d."""

    def __missing__(self, letter):
        """Returns the size of d."""
        return self["d"]


def of(family, dense, options):
    """Returns the sizes of a function."""
    named = ", ".join([dense, *(f"{key}={value}" for key, value in options.items())])
    default = SCORES if family in ("normalizers", "scores") else POOLING
    return SIZES.get(named) or SIZES.get(dense, default)


ARGUMENTS = {
    "attention_pooling": ("query",),
    "multi_head_attention_pooling": ("query_kernel", "out_kernel", "query_bias", "key_bias", "value_bias", "out_bias"),
    "weighted_pooling": ("weights",),
    "additive_attention_pooling": ("bias", "gate_kernel", "gate_bias", "out_kernel#1"),
    "attentive_statistics_pooling": ("bias", "out_kernel#1"),
    "latent_attention_pooling": ("norm_scale", "norm_bias", "latent_norm_scale", "latent_norm_bias"),
    "layer_norm": ("scale", "bias"),
    "residual_feed_forward": ("bias", "out_kernel", "out_bias", "norm_scale", "norm_bias"),
    "gumbel_softmax": ("noise",),
}
"""Optional arguments that are passed in addition to masks, by the name of the dense function."""

OPTIONAL = {
    "additive_score": (("bias",),),
    "concat_score": (("bias",),),
    "tanh_sum_score": (("bias",),),
    "location_score": (("bias",),),
    "attend": (("dropout_multiplier",),),
    "dot_product_attention": (("bias",), ("dropout_multiplier",)),
    "additive_attention": (("bias",), ("dropout_multiplier",)),
    "tanh_sum_attention": (("bias",),),
    "multi_head_attention": (("query_bias", "key_bias", "value_bias", "out_bias"), ("dropout_multiplier",)),
    "attention_pooling": (
        ("query_kernel", "key_kernel"),
        ("query_norm_scale", "query_norm_bias"),
        ("bias",),
        ("dropout_multiplier",),
    ),
    "multi_head_attention_pooling": (("bias",), ("dropout_multiplier",)),
    "std_pooling": (("weights",),),
    "statistics_pooling": (("weights",),),
    "attentive_statistics_pooling": (("out_bias#1", "norm_scale", "norm_bias"),),
    "additive_attention_pooling": (("out_bias#1", "value"), ("dropout_multiplier#1",)),
    "latent_attention_pooling": (("mlp_bias", "mlp_out_bias", "mlp_norm_scale", "mlp_norm_bias"),),
    "vlad_pooling": (("assign_bias",),),
    "gated_sum_pooling": (("gate_bias", "value_bias"),),
    "cross_attention_pooling": (("x_kernel", "y_kernel"), ("x_dropout_multiplier", "y_dropout_multiplier")),
    "cross_attention_pooling_all_pairs": (("x_kernel", "y_kernel"),),
}
"""Optional arrays that are passed together in one more call, by the name of the dense function."""

OPTIONS = {"k": 8, "num_steps": 6, "window": 3, "num_layers": 2}
"""Options that are counts; functions without such an option ignore it."""

EXTRA = {"cross_attention_pooling": ({"reduction": "max"},)}
"""Values of options that are compiled in addition to the defaults."""

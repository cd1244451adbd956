"""Table rows of functions that compare examples, fields or labels."""

from attnpool_ref.table.row import of_family

ROWS = of_family(
    "relations",
    attention_triplet_loss=dict(
        shapes="anchor[..., m] positive[..., m] negative[..., m] margin[] -> [...]",
        source="patro2018",
        equation="max(0, |a - p|^2 + margin - |a - n|^2)",
        facts={"differences"},
    ),
    differential_context=dict(
        shapes="attention[..., m] supporting[..., m] opposing[..., m] mask?[..., m] weight[] -> [..., m]",
        source="patro2018",
        equation="s + weight d or s * (weight d), d = r+ - r-, r+ = proj_s(s+) + proj_s(s-), "
        "r- = (s+ - proj_s(s+)) + (s- - proj_s(s-))",
        options={"mode": ("add", "mul")},
        norms=True,
    ),
    relation_vector=dict(
        shapes="x[..., f] y[..., f] x_kernel[f, h] y_kernel[f, h] out_kernel[h, o] bias[h] -> [..., o]",
        source="liu2022",
        equation="sigmoid(x W1 + y W2 + b) W3",
        module="RelationVector",
    ),
    relation_triplet_loss=dict(
        shapes="x[..., f] similar[..., f] dissimilar[..., f] x_kernel[f, h] y_kernel[f, h] out_kernel[h, o] bias[h] "
        "margin[] -> [...]",
        source="liu2022",
        equation="max(0, margin + |a(x, x) - a(x, similar)|^2 - |a(x, x) - a(x, dissimilar)|^2), a = relation_vector",
    ),
    field_attention_pooling=dict(
        shapes="target[..., d] fields[..., J, e] kernel[J, d+e]|[d+e] bias[J]|[] mask?[..., J] -> [..., d+e]",
        weights="[..., J]",
        source="zhang2021",
        equation="o = sum_j w_j [target; f_j], w = softmax_j(tanh([target; f_j] . W_j + b_j))",
        rules=("d may be 0",),
        module="FieldAttentionPool",
    ),
    label_attention=dict(
        shapes="labels[..., M, d] mask?[..., M] query_kernel[d, c] key_kernel[d, c] value_kernel[d, v] -> [..., M, v]",
        weights="[..., M, M]",
        source="vaswani2017",
        equation="o = softmax((R Wq)(R Wk)^T / sqrt(c)) R Wv, R the label vectors",
        squares="M",
        module="LabelAttention",
    ),
)

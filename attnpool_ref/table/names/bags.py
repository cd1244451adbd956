"""Entries of the index of names (``attnpool find``): multiple-instance learning, speech and sound."""

from attnpool_ref.table.names.entry import Entry

INSTANCES = (
    Entry(
        ("ABMIL", "attention-based MIL", "attention MIL", "whole-slide images (WSI)"),
        "additive_attention_pooling(x, mask, kernel=V, bias=b, out_kernel=w)",
        "Ilse, Tomczak, Welling 2018; AttentionDeepMIL",
        "Bags may be padded and masked. AttentionDeepMIL takes one bag. The last bias cancels in the softmax.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("gated attention MIL", "gated ABMIL", "GatedAttention"),
        "additive_attention_pooling(x, mask, kernel=V, bias=b, gate_kernel=U, gate_bias=c, out_kernel=w)",
        "Ilse, Tomczak, Welling 2018; AttentionDeepMIL",
        "Bags may be padded and masked. AttentionDeepMIL takes one bag. The last bias cancels in the softmax.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("CLAM", "CLAM-SB", "CLAM-MB", "Attn_Net_Gated", "whole-slide images"),
        "additive_attention_pooling(x, mask, kernel=V, bias=b, gate_kernel=U, gate_bias=c, out_kernel=w)",
        "Lu et al. 2021; mahmoodlab/CLAM",
        "For CLAM-SB `w` is [h] (hidden width), for CLAM-MB [h, classes]. CLAM's `A_raw` are scores before the softmax.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("torchmil AttentionPool",),
        'additive_attention_pooling(x, mask, kernel=V, bias=b, out_kernel=w, activation="tanh")',
        "torchmil's `AttentionPool`",
        "torchmil's `return_att` returns scores, attnpool's `return_weights` returns weights.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("DSMIL",),
        'critical = attend(swapaxes(c, -1, -2), x, mask[..., None, :], normalizer="hardmax")\n'
        "dot_product_attention(f(critical), f(x), g(x), mask[..., None, :])",
        "Li, Li, Eliceiri 2021; binli123/dsmil-wsi",
        "This is DSMIL's bag stream; `c` [..., L, classes] are class scores. Its instance stream is `max_pooling(c, mask)`.",
    ),
    Entry(
        ("noisy-or", "noisy-or MIL"),
        "noisy_or_pooling(p, mask)",
        "Maron, Lozano-Pérez 1997",
        "`p` [..., L, d] are probabilities. attnpool multiplies without logarithms, so the gradient is finite at p = 1.",
    ),
    Entry(
        ("top-k MIL", "top-k pooling", "top-k mean", "mean of the k largest"),
        "top_k_pooling(x, mask, k=8)",
        "Durand, Thome, Cord 2016, the part of the highest scores; torch.topk, then a mean",
        "With fewer than k real tokens, the result is their mean; torch.topk fails or takes padding. Ties share the gradient.",
    ),
    Entry(
        ("WELDON", "min-max pooling"),
        "top_k_pooling(x, mask, k=10) - top_k_pooling(-x, mask, k=10)",
        "Durand, Thome, Cord 2016",
        "`x` [..., L, C] are the class scores of the tiles. The call adds the means of the 10 highest and of the 10 lowest.",
    ),
    Entry(
        ("CHOWDER",),
        "concatenate([max_pooling(x, mask), min_pooling(x, mask)], -1)",
        "Courtiol et al. 2018",
        "`x` [..., L, 1] are the scores of the tiles. CHOWDER takes the R highest and R lowest; the call is for R = 1.",
    ),
    Entry(
        ("LSE pooling", "log-sum-exp pooling", "logmeanexp", "LsePlus"),
        "logsumexp_pooling(x, mask, r)",
        "Pinheiro, Collobert 2015; timm's LsePlus",
        "`r` is the sharpness. The sum of exponentials is divided by the number of real tokens, unless `mean=False`.",
        "LogSumExpPool",
    ),
    Entry(
        ("TransMIL", "GraphMultisetTransformer"),
        "",
        "Shao et al. 2021; Baek et al. 2021",
        "attnpool does not have these models. TransMIL pools by `first_pooling` (CLS token), GraphMultisetTransformer "
        "by `PMA`.",
    ),
    Entry(
        ("ISAB", "Set Transformer encoder"),
        "",
        "Lee et al. 2019",
        "attnpool does not have these layers. They return a vector for each token; the Set Transformer's decoder "
        "pools these by `PMA`.",
    ),
)

SPEECH = (
    Entry(
        ("x-vector", "statistics pooling", "StatsPool", "TSTP", "StatisticsPooling", "speaker embedding"),
        "statistics_pooling(x, mask, ddof=1)",
        "Snyder et al. 2018; SpeechBrain, WeSpeaker, pyannote",
        "`ddof=1` is torch's std, `ddof=0` is Kaldi's. A single frame has std 0; in torch it is NaN.",
    ),
    Entry(
        ("speaker masks", "mask for each speaker", "speaker diarization", "pyannote StatsPool with weights"),
        "each = broadcast_to(x[..., None, :, :], (*masks.shape, d))\nstatistics_pooling(each, masks, ddof=1)",
        "pyannote's `StatsPool`",
        "`masks` [..., S, L] of S speakers give [..., S, 2d]. In JAX, `jax.vmap` with in_axes=(None, 0) does it for one x.",
    ),
    Entry(
        ("TSDP", "std pooling", "standard deviation pooling"),
        "std_pooling(x, mask, ddof=1)",
        "WeSpeaker's `TSDP`",
        "Equal tokens have std 0, with gradient 0. WeSpeaker adds a small constant to the variance.",
    ),
    Entry(
        ("ASP", "attentive statistics pooling", "attentive statistics", "speaker embedding"),
        "attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=w)",
        "Okabe, Koshinaka, Shinoda 2018",
        "w [h] gives one weight for each frame. The variance is computed around the mean, not as E[x^2] - mean^2.",
        "AttentiveStatisticsPool",
    ),
    Entry(
        ("ECAPA", "ECAPA-TDNN", "SpeechBrain AttentiveStatisticsPooling"),
        "attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=V, norm_scale=s, norm_bias=t, "
        "global_context=True, epsilon=1e-12)",
        "Desplanques, Thienpondt, Demuynck 2020; spkrec-ecapa-voxceleb",
        "From ECAPA's batch norm: s = weight / sqrt(variance + 1e-5), t = bias - mean * s. A fully masked row gives "
        "0, not NaN.",
        "AttentiveStatisticsPool",
    ),
    Entry(
        ("ASTP", "WeSpeaker ASTP", "3D-Speaker ASTP"),
        "attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=V, global_context=True, context_ddof=1)",
        "WeSpeaker's and 3D-Speaker's `ASTP`, where the global context is off by default",
        "ASTP's variance, E[x^2] - mean^2, loses digits in float32. Its minimum, here `epsilon`, is 1e-7, in 3D-Speaker 1e-10.",
        "AttentiveStatisticsPool",
    ),
    Entry(
        ("multi-head ASP", "MHASTP", "MQMHASTP"),
        "concatenate([attentive_statistics_pooling(y, mask, kernel=W, bias=b, out_kernel=V) for y, W, b, V in heads], -1)",
        "WeSpeaker's `MHASTP`",
        "`heads` has (y, W, b, V) for each head (`MQMHASTP`: and query), y its channels of x. WeSpeaker clamps variances at 1e-7.",
    ),
    Entry(
        ("SAP", "self-attentive pooling"),
        "additive_attention_pooling(x, mask, kernel=W, bias=b, out_kernel=w)",
        "Cai, Chen, Li 2018; voxceleb_trainer",
        "In voxceleb_trainer's ResNetSE34L the hidden layer is as wide as x. Here its width is that of `W`.",
        "AdditiveAttentionPool",
    ),
    Entry(
        ("SpeechBrain AttentionPooling", "S3PRL AttentionPooling", "linear attention score", "Linear(d, 1)"),
        "attention_pooling(x, mask, w, scale=1.0)",
        "SpeechBrain's and S3PRL's `AttentionPooling`",
        "`w` [d] is the weight of the linear layer. Its bias is left out, because it cancels in the softmax.",
        "AttentionPool",
    ),
    Entry(
        ("AutoPool", "softmax pooling", "adaptive pooling of sound events"),
        "softmax_pooling(p, mask, alpha)",
        "McFee, Salamon, Bello 2018; marl/autopool",
        "`p` are probabilities, `alpha` is the sharpness. autopool's Keras layer ignores masks; its default axis is the batch.",
        "SoftmaxPool",
    ),
    Entry(
        ("linear softmax pooling", "linear softmax"),
        "weighted_pooling(p, p, mask)",
        "Wang, Li, Metze 2019",
        "`p` [..., L, d] are probabilities, weighted by themselves. If all are 0, the result is 0.",
        takes=("weighted_pooling weights[..., L, d]",),
    ),
    Entry(
        ("PANNs AttBlock", "channel gating", "AttBlock"),
        "weighted_pooling(f(x), masked_softmax(gate, mask[..., None], axis=-2), mask)",
        "Kong et al. 2020",
        "`gate` [..., L, d] are scores. AttBlock clamps them to ±10.",
        takes=("weighted_pooling weights[..., L, d]",),
    ),
)

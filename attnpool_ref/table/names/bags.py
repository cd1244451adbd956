"""Entries of the index of names (``attnpool find``): multiple-instance learning, speech and sound."""

from attnpool_ref.table.names.entry import entries

INSTANCES = entries("""
ABMIL | attention-based MIL | attention MIL | whole-slide images (WSI)
  call: additive_attention_pooling(x, mask, kernel=V, bias=b, out_kernel=w)
  source: Ilse, Tomczak, Welling 2018; AttentionDeepMIL
  differs: Bags may be padded and masked. AttentionDeepMIL takes one bag. The last bias cancels in the softmax.
gated attention MIL | gated ABMIL | GatedAttention
  call: additive_attention_pooling(x, mask, kernel=V, bias=b, gate_kernel=U, gate_bias=c, out_kernel=w)
  source: Ilse, Tomczak, Welling 2018; AttentionDeepMIL
  differs: Bags may be padded and masked. AttentionDeepMIL takes one bag. The last bias cancels in the softmax.
CLAM | CLAM-SB | CLAM-MB | Attn_Net_Gated | whole-slide images
  call: additive_attention_pooling(x, mask, kernel=V, bias=b, gate_kernel=U, gate_bias=c, out_kernel=w)
  source: Lu et al. 2021; mahmoodlab/CLAM
  differs: For CLAM-SB `w` is [h] (hidden width), for CLAM-MB [h, classes]. CLAM's `A_raw` are scores before the
    softmax.
torchmil AttentionPool
  call: additive_attention_pooling(x, mask, kernel=V, bias=b, out_kernel=w, activation="tanh")
  source: torchmil's `AttentionPool`
  differs: torchmil's `return_att` returns scores, attnpool's `return_weights` returns weights.
DSMIL
  call: critical = attend(swapaxes(c, -1, -2), x, mask[..., None, :], normalizer="hardmax")
    dot_product_attention(f(critical), f(x), g(x), mask[..., None, :])
  source: Li, Li, Eliceiri 2021; binli123/dsmil-wsi
  differs: This is DSMIL's bag stream; `c` [..., L, classes] are class scores. Its instance stream is `max_pooling(c,
    mask)`.
noisy-or | noisy-or MIL
  call: noisy_or_pooling(p, mask)
  source: Maron, Lozano-Pérez 1997
  differs: `p` [..., L, d] are probabilities. attnpool multiplies without logarithms, so the gradient is finite at p =
    1.
top-k MIL | top-k pooling | top-k mean | mean of the k largest
  call: top_k_pooling(x, mask, k=8)
  source: Durand, Thome, Cord 2016, the part of the highest scores; torch.topk, then a mean
  differs: With fewer than k real tokens, the result is their mean; torch.topk fails or takes padding. Ties share the
    gradient.
WELDON | min-max pooling
  call: top_k_pooling(x, mask, k=10) - top_k_pooling(-x, mask, k=10)
  source: Durand, Thome, Cord 2016
  differs: `x` [..., L, C] are the class scores of the tiles. The call adds the means of the 10 highest and of the 10
    lowest.
CHOWDER
  call: concatenate([max_pooling(x, mask), min_pooling(x, mask)], -1)
  source: Courtiol et al. 2018
  differs: `x` [..., L, 1] are the scores of the tiles. CHOWDER takes the R highest and R lowest; the call is for R = 1.
LSE pooling | log-sum-exp pooling | logmeanexp | LsePlus
  call: logsumexp_pooling(x, mask, r)
  source: Pinheiro, Collobert 2015; timm's LsePlus
  differs: `r` is the sharpness. The sum of exponentials is divided by the number of real tokens, unless `mean=False`.
TransMIL | GraphMultisetTransformer
  source: Shao et al. 2021; Baek et al. 2021
  differs: attnpool does not have these models. TransMIL pools by `first_pooling` (CLS token), GraphMultisetTransformer
    by `PMA`.
ISAB | Set Transformer encoder
  source: Lee et al. 2019
  differs: attnpool does not have these layers. They return a vector for each token; the Set Transformer's decoder pools
    these by `PMA`.
""")

SPEECH = entries("""
x-vector | statistics pooling | StatsPool | TSTP | StatisticsPooling | speaker embedding
  call: statistics_pooling(x, mask, ddof=1)
  source: Snyder et al. 2018; SpeechBrain, WeSpeaker, pyannote
  differs: `ddof=1` is torch's std, `ddof=0` is Kaldi's. A single frame has std 0; in torch it is NaN.
speaker masks | mask for each speaker | speaker diarization | pyannote StatsPool with weights
  call: each = broadcast_to(x[..., None, :, :], (*masks.shape, d))
    statistics_pooling(each, masks, ddof=1)
  source: pyannote's `StatsPool`
  differs: `masks` [..., S, L] of S speakers give [..., S, 2d]. In JAX, `jax.vmap` with in_axes=(None, 0) does it for
    one x.
TSDP | std pooling | standard deviation pooling
  call: std_pooling(x, mask, ddof=1)
  source: WeSpeaker's `TSDP`
  differs: Equal tokens have std 0, with gradient 0. WeSpeaker adds a small constant to the variance.
ASP | attentive statistics pooling | attentive statistics | speaker embedding
  call: attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=w)
  source: Okabe, Koshinaka, Shinoda 2018
  differs: w [h] gives one weight for each frame. The variance is computed around the mean, not as E[x^2] - mean^2.
ECAPA | ECAPA-TDNN | SpeechBrain AttentiveStatisticsPooling
  call: attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=V, norm_scale=s, norm_bias=t,
    global_context=True, epsilon=1e-12)
  source: Desplanques, Thienpondt, Demuynck 2020; spkrec-ecapa-voxceleb
  differs: From ECAPA's batch norm: s = weight / sqrt(variance + 1e-5), t = bias - mean * s. A fully masked row gives 0,
    not NaN.
ASTP | WeSpeaker ASTP | 3D-Speaker ASTP
  call: attentive_statistics_pooling(x, mask, kernel=W, bias=b, out_kernel=V, global_context=True, context_ddof=1)
  source: WeSpeaker's and 3D-Speaker's `ASTP`, where the global context is off by default
  differs: ASTP's variance, E[x^2] - mean^2, loses digits in float32. Its minimum, here `epsilon`, is 1e-7, in
    3D-Speaker 1e-10.
multi-head ASP | MHASTP | MQMHASTP
  call: concatenate([attentive_statistics_pooling(y, mask, kernel=W, bias=b, out_kernel=V) for y, W, b, V in heads], -1)
  source: WeSpeaker's `MHASTP`
  differs: `heads` has (y, W, b, V) for each head (`MQMHASTP`: and query), y its channels of x. WeSpeaker clamps
    variances at 1e-7.
  module: none
SAP | self-attentive pooling
  call: additive_attention_pooling(x, mask, kernel=W, bias=b, out_kernel=w)
  source: Cai, Chen, Li 2018; voxceleb_trainer
  differs: In voxceleb_trainer's ResNetSE34L the hidden layer is as wide as x. Here its width is that of `W`.
SpeechBrain AttentionPooling | S3PRL AttentionPooling | linear attention score | Linear(d, 1)
  call: attention_pooling(x, mask, w, scale=1.0)
  source: SpeechBrain's and S3PRL's `AttentionPooling`
  differs: `w` [d] is the weight of the linear layer. Its bias is left out, because it cancels in the softmax.
AutoPool | softmax pooling | adaptive pooling of sound events
  call: softmax_pooling(p, mask, alpha)
  source: McFee, Salamon, Bello 2018; marl/autopool
  differs: `p` are probabilities, `alpha` is the sharpness. autopool's Keras layer ignores masks; its default axis is
    the batch.
linear softmax pooling | linear softmax
  call: weighted_pooling(p, p, mask)
  source: Wang, Li, Metze 2019
  differs: `p` [..., L, d] are probabilities, weighted by themselves. If all are 0, the result is 0.
  module: none
  takes: weighted_pooling weights[..., L, d]
PANNs AttBlock | channel gating | AttBlock
  call: weighted_pooling(f(x), masked_softmax(gate, mask[..., None], axis=-2), mask)
  source: Kong et al. 2020
  differs: `gate` [..., L, d] are scores. AttBlock clamps them to ±10.
  module: none
  takes: weighted_pooling weights[..., L, d]
""")

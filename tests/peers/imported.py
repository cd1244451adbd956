"""The libraries beside PyTorch; what they warn of while they are imported is theirs to mend."""

# ruff: noqa: F401 - the files of tests import these names from here

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import entmax
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling
    from sentence_transformers.sparse_encoder.modules import SpladePooling
    from sentence_transformers.util import import_from_string, maxsim
    from torch_geometric import nn as pyg
    from torch_geometric.nn import aggr
    from torch_geometric.nn.aggr.utils import PoolingByMultiheadAttention
    from transformers import (
        Aimv2VisionConfig,
        BertConfig,
        BertModel,
        BertTokenizerFast,
        Siglip2VisionConfig,
        SiglipVisionConfig,
        Wav2Vec2Config,
    )
    from transformers.models.aimv2.modeling_aimv2 import Aimv2AttentionPoolingHead
    from transformers.models.siglip2.modeling_siglip2 import Siglip2MultiheadAttentionPoolingHead
    from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2ForXVector

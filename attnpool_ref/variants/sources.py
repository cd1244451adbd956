"""Where the variants come from."""

SOURCES = {
    "ba2016": "Ba, Kiros, Hinton: Layer normalization. 2016.",
    "bahdanau2015": "Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate. ICLR 2015.",
    "d2l": "Zhang, Lipton, Li, Smola: Dive into Deep Learning, chapter Attention Mechanisms and Transformers. 2023.",
    "gardner2018": "Gardner et al.: AllenNLP: a deep semantic natural language processing platform. NLP-OSS 2018.",
    "ilse2018": "Ilse, Tomczak, Welling: Attention-based deep multiple instance learning. ICML 2018.",
    "jang2017": "Jang, Gu, Poole: Categorical reparameterization with Gumbel-softmax. ICLR 2017.",
    "lin2017": "Lin et al.: A structured self-attentive sentence embedding. ICLR 2017.",
    "liu2022": "Liu, Du, Li, Pan, Ming: Augmenting legal judgment prediction with contrastive case relations. "
    "COLING 2022.",
    "luong2015": "Luong, Pham, Manning: Effective approaches to attention-based neural machine translation. EMNLP 2015.",
    "martins2016": "Martins, Astudillo: From softmax to sparsemax: a sparse model of attention and multi-label classification. ICML 2016.",
    "muennighoff2022": "Muennighoff: SGPT: GPT sentence embeddings for semantic search. 2022.",
    "notebook000": "Notebook 'Attention pooling achievement' (seed 000): cross pooling of two sequences for SimKGC.",
    "notebook001": "Notebook 'Attention_pooling' (seed 001): fixed weights, and one learned query.",
    "notebook002": "Notebook 'Attention mechanism' (seed 002): three rules, and the class Attn.",
    "onnx": "ONNX operators: https://onnx.ai/onnx/operators.",
    "patro2018": "Patro, Namboodiri: Differential attention for visual question answering. CVPR 2018.",
    "peters2019": "Peters, Niculae, Martins: Sparse sequence-to-sequence models. ACL 2019.",
    "ramapuram2025": "Ramapuram et al.: Theory, analysis, and best practices for sigmoid self-attention. ICLR 2025.",
    "reimers2019": "Reimers, Gurevych: Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.",
    "seo2017": "Seo, Kembhavi, Farhadi, Hajishirzi: Bidirectional attention flow for machine comprehension. ICLR 2017.",
    "shazeer2017": "Shazeer et al.: Outrageously large neural networks: the sparsely-gated mixture-of-experts layer. ICLR 2017.",
    "shazeer2020": "Shazeer: GLU variants improve transformer. 2020.",
    "vaswani2017": "Vaswani et al.: Attention is all you need. NeurIPS 2017.",
    "wang2016": "Wang, Mi, Ittycheriah: Sentence similarity learning by lexical decomposition and composition. "
    "COLING 2016.",
    "wang2022": "Wang, Zhao, Wei, Liu: SimKGC: simple contrastive knowledge graph completion with pre-trained language models. ACL 2022.",
    "yue2021": "Yue et al.: NeurJudge: a circumstance-aware neural framework for legal judgment prediction. "
    "SIGIR 2021.",
    "zhang2021": "Zhang et al.: Multi-interactive attention network for fine-grained feature learning in CTR prediction. "
    "WSDM 2021.",
}
"""What the rows' ``source`` keys stand for."""

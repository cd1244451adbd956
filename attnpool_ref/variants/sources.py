"""Where the variants come from."""

SOURCES = {
    "arandjelovic2016": "Arandjelovic, Gronat, Torii, Pajdla, Sivic: NetVLAD: CNN architecture for weakly supervised place "
    "recognition. CVPR 2016.",
    "ba2016": "Ba, Kiros, Hinton: Layer normalization. 2016.",
    "bahdanau2015": "Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate. ICLR 2015.",
    "d2l": "Zhang, Lipton, Li, Smola: Dive into Deep Learning, chapter Attention Mechanisms and Transformers. 2023.",
    "khattab2020": "Khattab, Zaharia: ColBERT: efficient and effective passage search via contextualized late interaction over "
    "BERT. SIGIR 2020.",
    "lee2024": "Lee et al.: NV-Embed: improved techniques for training LLMs as generalist embedding models. ICLR 2025.",
    "liu2022": "Liu, Du, Li, Pan, Ming: Augmenting legal judgment prediction with contrastive case relations. "
    "COLING 2022.",
    "luong2015": "Luong, Pham, Manning: Effective approaches to attention-based neural machine translation. EMNLP 2015.",
    "martins2016": "Martins, Astudillo: From softmax to sparsemax: a sparse model of attention and multi-label classification. ICML 2016.",
    "notebook000": "Notebook 'Attention pooling achievement' (seed 000): cross pooling of two sequences for SimKGC.",
    "notebook001": "Notebook 'Attention_pooling' (seed 001): fixed weights, and one learned query.",
    "notebook002": "Notebook 'Attention mechanism' (seed 002): three rules, and the class Attn.",
    "onnx": "ONNX operators: https://onnx.ai/onnx/operators.",
    "patro2018": "Patro, Namboodiri: Differential attention for visual question answering. CVPR 2018.",
    "peters2019": "Peters, Niculae, Martins: Sparse sequence-to-sequence models. ACL 2019.",
    "ramapuram2025": "Ramapuram et al.: Theory, analysis, and best practices for sigmoid self-attention. ICLR 2025.",
    "reimers2019": "Reimers, Gurevych: Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.",
    "seo2017": "Seo, Kembhavi, Farhadi, Hajishirzi: Bidirectional attention flow for machine comprehension. ICLR 2017.",
    "shazeer2020": "Shazeer: GLU variants improve transformer. 2020.",
    "vaswani2017": "Vaswani et al.: Attention is all you need. NeurIPS 2017.",
    "vinyals2016": "Vinyals, Bengio, Kudlur: Order matters: sequence to sequence for sets. ICLR 2016.",
    "wang2016": "Wang, Mi, Ittycheriah: Sentence similarity learning by lexical decomposition and composition. "
    "COLING 2016.",
    "wang2022": "Wang, Zhao, Wei, Liu: SimKGC: simple contrastive knowledge graph completion with pre-trained language models. ACL 2022.",
    "yue2021": "Yue et al.: NeurJudge: a circumstance-aware neural framework for legal judgment prediction. "
    "SIGIR 2021.",
    "zhang2021": "Zhang et al.: Multi-interactive attention network for fine-grained feature learning in CTR prediction. "
    "WSDM 2021.",
}
"""What the rows' ``source`` keys stand for."""

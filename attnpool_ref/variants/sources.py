"""Where the variants come from."""

SOURCES = {
    "bahdanau2015": "Bahdanau, Cho, Bengio: Neural machine translation by jointly learning to align and translate. ICLR 2015.",
    "corso2020": "Corso, Cavalleri, Beaini, Liò, Veličković: Principal neighbourhood aggregation for graph nets. NeurIPS 2020.",
    "d2l": "Zhang, Lipton, Li, Smola: Dive into Deep Learning, chapter Attention Mechanisms and Transformers. 2023.",
    "desplanques2020": "Desplanques, Thienpondt, Demuynck: ECAPA-TDNN: emphasized channel attention, propagation and "
    "aggregation in TDNN based speaker verification. Interspeech 2020.",
    "durand2016": "Durand, Thome, Cord: WELDON: weakly supervised learning of deep convolutional neural networks. CVPR 2016.",
    "hyndman1996": "Hyndman, Fan: Sample quantiles in statistical packages. The American Statistician 50(4), 1996.",
    "liu2022": "Liu, Du, Li, Pan, Ming: Augmenting legal judgment prediction with contrastive case relations. "
    "COLING 2022.",
    "luong2015": "Luong, Pham, Manning: Effective approaches to attention-based neural machine translation. EMNLP 2015.",
    "maron1997": "Maron, Lozano-Pérez: A framework for multiple-instance learning. NIPS 1997.",
    "martins2016": "Martins, Astudillo: From softmax to sparsemax: a sparse model of attention and multi-label classification. ICML 2016.",
    "mcfee2018": "McFee, Salamon, Bello: Adaptive pooling operators for weakly labeled sound event detection. IEEE/ACM TASLP 26(11), 2018.",
    "notebook000": "Notebook 'Attention pooling achievement' (seed 000): cross pooling of two sequences for SimKGC.",
    "notebook001": "Notebook 'Attention_pooling' (seed 001): fixed weights, and one learned query.",
    "notebook002": "Notebook 'Attention mechanism' (seed 002): three rules, and the class Attn.",
    "okabe2018": "Okabe, Koshinaka, Shinoda: Attentive statistics pooling for deep speaker embedding. Interspeech 2018.",
    "patro2018": "Patro, Namboodiri: Differential attention for visual question answering. CVPR 2018.",
    "peters2019": "Peters, Niculae, Martins: Sparse sequence-to-sequence models. ACL 2019.",
    "pinheiro2015": "Pinheiro, Collobert: From image-level to pixel-level labeling with convolutional networks. CVPR 2015.",
    "radenovic2018": "Radenović, Tolias, Chum: Fine-tuning CNN image retrieval with no human annotation. IEEE TPAMI 41(7), 2018.",
    "reimers2019": "Reimers, Gurevych: Sentence-BERT: sentence embeddings using Siamese BERT-networks. EMNLP 2019.",
    "seo2017": "Seo, Kembhavi, Farhadi, Hajishirzi: Bidirectional attention flow for machine comprehension. ICLR 2017.",
    "snyder2018": "Snyder, Garcia-Romero, Sell, Povey, Khudanpur: X-vectors: robust DNN embeddings for speaker "
    "recognition. ICASSP 2018.",
    "vaswani2017": "Vaswani et al.: Attention is all you need. NeurIPS 2017.",
    "wang2016": "Wang, Mi, Ittycheriah: Sentence similarity learning by lexical decomposition and composition. "
    "COLING 2016.",
    "wang2022": "Wang, Zhao, Wei, Liu: SimKGC: simple contrastive knowledge graph completion with pre-trained language models. ACL 2022.",
    "yue2021": "Yue et al.: NeurJudge: a circumstance-aware neural framework for legal judgment prediction. "
    "SIGIR 2021.",
    "zaheer2017": "Zaheer, Kottur, Ravanbakhsh, Póczos, Salakhutdinov, Smola: Deep sets. NIPS 2017.",
    "zhang2021": "Zhang et al.: Multi-interactive attention network for fine-grained feature learning in CTR prediction. "
    "WSDM 2021.",
}
"""What the rows' ``source`` keys stand for."""

"""Picture of the weights of two sentences' tokens under attention pooling, whose query is the mean of the tokens."""

import attnpool_ref
from examples.minilm_pairs import minilm_pairs
from pictures.svg import Picture, percent

SHOWN = (5, 0)
"""The sentences of ``docs/guides/sentence-embeddings.md`` that are drawn."""

ROW, PANEL, WORDS, BARS = 24, 350, 88, 180
"""Height of a token's row; widths of a sentence, of its words, and of the longest bar."""


def results():
    """Returns (tokens, weights) of each sentence, without its padding."""
    pairs = minilm_pairs()
    _, weights = attnpool_ref.attention_pooling(pairs["hr"], pairs["hr_mask"], return_weights=True)
    return [
        (pairs["hr_tokens"][text][real], weights[text][real]) for text in SHOWN for real in [pairs["hr_mask"][text]]
    ]


def draw():
    """Returns the picture."""
    sentences = results()
    longest, largest = max(len(tokens) for tokens, _ in sentences), max(weights.max() for _, weights in sentences)
    description = "; ".join(
        ", ".join(f"{token} {percent(weight)}" for token, weight in zip(*sentence, strict=True))
        for sentence in sentences
    )
    picture = Picture(62 + longest * ROW, "Weights of tokens under attention pooling", description)
    for panel, (tokens, weights) in enumerate(sentences):
        left, mean = 16 + panel * PANEL + WORDS, BARS / len(tokens) / largest
        picture.text(left, 26, "weights; line: those of the mean", "muted")
        for row, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
            top = 40 + row * ROW
            picture.text(left - 8, top + 15, token, "ink end")
            picture.rect(left, top + 3, BARS * weight / largest, ROW - 7, "real")
            picture.text(left + BARS + 8, top + 15, percent(weight), "muted")
        picture.path(f"M{left + mean:.1f} 38v{len(tokens) * ROW + 4}", "of-ink")
    return picture.svg()

// Pooling of one sequence by scores, as attnpool_ref.attend does it, and with the usual mistakes in the mask.
//
// Runs in a page and in node. check(cases) compares it with numbers of attnpool_ref (of
// tools/site/site_interactive.py): tests/docs/test_interactive.py calls it in node. In a browser, open
// interactive/index.html?check of the site: the page compares itself and writes the result into
// document.documentElement.dataset.check ("pass: ..." or "fail: ..."); or evaluate window.attnpoolCheck(cases).
"use strict";

const attnpool = (() => {
  const MISTAKES = ["none", "times 0", "minus 1e4", "minus 1e9, float16"];

  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

  // Largest real score; NaN if one is NaN, -Infinity if there is none.
  const largest = (scores, mask) => Math.max(...scores.filter((_, j) => mask[j]));

  function softmax(scores, mask) {
    const top = largest(scores, mask);
    const powers = scores.map((score, j) => (mask[j] ? Math.exp(score - (top === -Infinity ? 0 : top)) : 0));
    const total = sum(powers);
    return powers.map((power, j) => (mask[j] ? power / (total === 0 ? 1 : total) : 0));
  }

  // Scores minus the largest, at least -1, and the same in descending order; null without a real score.
  function belowLargest(scores, mask) {
    const top = largest(scores, mask);
    if (top === -Infinity) return null;
    const below = scores.map((score, j) =>
      Math.max((mask[j] ? score : -Infinity) - (top === Infinity ? NaN : top), -1),
    );
    return { below, ordered: [...below].sort((a, b) => b - a) };
  }

  function sparsemax(scores, mask) {
    const found = belowLargest(scores, mask);
    if (found === null) return scores.map(() => 0);
    let total = 0;
    const threshold = Math.max(
      ...found.ordered.map((score, j) => {
        total += score;
        return (total - 1) / (j + 1);
      }),
    );
    return found.below.map((score, j) => (mask[j] ? Math.max(score - threshold, 0) : 0));
  }

  function entmax15(scores, mask) {
    const found = belowLargest(
      scores.map((score) => score / 2),
      mask,
    );
    if (found === null) return scores.map(() => 0);
    let [total, squares, support] = [0, 0, 0];
    const thresholds = found.ordered.map((score, j) => {
      const count = j + 1;
      total += score;
      squares += score * score;
      if (squares - 2 * score * total + count * score * score < 1) support += 1;
      const mean = total / count;
      return mean - Math.sqrt(Math.max(1 - (squares - total * mean), 0) / count);
    });
    const threshold = thresholds[Math.max(support, 1) - 1];
    return found.below.map((score, j) => (mask[j] ? Math.max(score - threshold, 0) ** 2 : 0));
  }

  function sigmoid(scores, mask) {
    return scores.map((score, j) => {
      if (!mask[j]) return 0;
      if (score === Infinity) return NaN;
      return score < 0 ? Math.exp(score) / (1 + Math.exp(score)) : 1 / (1 + Math.exp(-score));
    });
  }

  function hardmax(scores, mask) {
    const top = largest(scores, mask);
    if (Number.isNaN(top) || top === Infinity) return scores.map((_, j) => (mask[j] ? NaN : 0));
    const first = scores.findIndex((score, j) => mask[j] && score === top && top > -Infinity);
    return scores.map((_, j) => (j === first ? 1 : 0));
  }

  const NORMALIZERS = { softmax, sparsemax, entmax15, sigmoid, hardmax };

  const averaged = (weights, x) => x[0].map((_, k) => sum(weights.map((weight, j) => weight * x[j][k])));

  // With the mask, as attnpool does it: padding is replaced before any arithmetic.
  function right({ scores, x, mask, normalizer }) {
    const weights = NORMALIZERS[normalizer](scores, mask);
    return {
      weights,
      pooled: averaged(
        weights,
        x.map((token, j) => token.map((value) => (mask[j] ? value : 0))),
      ),
    };
  }

  // Scores after a mistake in the mask.
  function mistakenScores(scores, mask, mistake) {
    if (mistake === "times 0") return scores.map((score, j) => score * mask[j]);
    const penalty = mistake === "minus 1e4" ? -1e4 : -Infinity; // -1e9 in float16 is -Infinity, and 0 times that is NaN
    return scores.map((score, j) => score + (1 - mask[j]) * penalty);
  }

  // With a mistake: the normalizer sees no mask, and every position is multiplied by its weight.
  function wrong({ scores, x, mask, normalizer, mistake }) {
    if (mistake === "none") return right({ scores, x, mask, normalizer });
    const mistaken = mistakenScores(scores, mask.map(Number), mistake);
    const lost = normalizer !== "sigmoid" && mistaken.every((score) => score === -Infinity); // -inf minus -inf is NaN
    const weights = lost
      ? mistaken.map(() => NaN)
      : NORMALIZERS[normalizer](
          mistaken,
          mistaken.map(() => true),
        );
    return { weights, pooled: averaged(weights, x) };
  }

  // The scores of a case as JSON has them: "NaN", "inf", "-inf" are strings.
  const SPECIAL = { NaN: NaN, inf: Infinity, "-inf": -Infinity };
  const parsed = (value) =>
    Array.isArray(value) ? value.map(parsed) : typeof value === "string" ? SPECIAL[value] : value;

  // Difference of two numbers; 0 where both are NaN or the same infinity, Infinity where only one is.
  function difference(a, b) {
    if (Object.is(a, b) || a === b) return 0;
    const apart = Math.abs(a - b);
    return Number.isNaN(apart) ? Infinity : apart;
  }

  // Computes every case and compares each number: { count, numbers, worst, failures }; a failure names what differs.
  function check({ tolerance, cases }) {
    const found = { count: cases.length, numbers: 0, worst: 0, failures: [] };
    for (const one of cases) {
      const given = { ...one, scores: parsed(one.scores), x: parsed(one.x) };
      for (const [way, computed] of [
        ["right", right(given)],
        ["wrong", wrong(given)],
      ]) {
        for (const part of ["weights", "pooled"]) {
          const expected = parsed(one[way][part]);
          const apart = expected.map((number, j) => difference(computed[part][j], number));
          if (computed[part].length !== expected.length) apart.push(Infinity);
          found.numbers += expected.length;
          found.worst = Math.max(found.worst, ...apart);
          if (apart.some((number) => !(number <= tolerance)))
            found.failures.push(`${one.name}: ${way}, ${part}: ${computed[part]}`);
        }
      }
    }
    return found;
  }

  return { NORMALIZERS: Object.keys(NORMALIZERS), MISTAKES, right, wrong, check };
})();

if (typeof module !== "undefined") module.exports = attnpool;
else window.attnpoolCheck = attnpool.check;

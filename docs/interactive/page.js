// Draws index.html: reads the controls, computes with pooling.js, and shows wrong beside right.
"use strict";

(() => {
  const WORDS = ["not", "a", "good", "film"];
  const TOKENS = [
    [0, 0, 2],
    [0, 0, 0],
    [2.828, 2, 0],
    [0.707, 0.5, 0],
  ]; // score, x, y: those of site_interactive.py
  const PADDING = {
    zeros: [0, 0, 0],
    "left over": [1.5, -2, -1],
    NaN: [NaN, NaN, NaN],
    infinity: [Infinity, Infinity, Infinity],
  };
  const MISTAKES = {
    none: ["none", "No mistake: both are right."],
    "times 0": ["scores × mask", "Scores of padding become 0, and exp(0) is 1."],
    "minus 1e4": [
      "−1e4 at padding",
      "scores + (1 − mask) × −1e4: right until no token is real, or padding holds NaN or infinity.",
    ],
    "minus 1e9, float16": [
      "−1e9, float16",
      "scores + (1 − mask) × −1e9: in float16 that is −∞, and 0 × −∞ is NaN at every real token.",
    ],
  };

  const at = (id) => document.getElementById(id);

  function choices(id, names, first) {
    for (const name of names) at(id).add(new Option(MISTAKES[name]?.[0] ?? name, name, name === first, name === first));
  }

  function inputs() {
    WORDS.forEach((word, j) => {
      const row = at("tokens").insertRow();
      row.insertCell().outerHTML = `<th scope="row">${word}</th>`;
      ["score", "praise", "negation"].forEach((name, k) => {
        const input = document.createElement("input");
        Object.assign(input, { type: "number", step: "0.1", defaultValue: TOKENS[j][k], id: `token-${j}-${k}` });
        input.setAttribute("aria-label", `${name} of ${word}`);
        row.insertCell().append(input);
      });
    });
  }

  // An empty field counts as 0.
  const numberOf = (id) => Number(at(id).value) || 0;

  function state() {
    const count = numberOf("count");
    const length = numberOf("length");
    const positions = Array.from({ length }, (_, j) =>
      j < count ? [0, 1, 2].map((k) => numberOf(`token-${j}-${k}`)) : PADDING[at("padding").value],
    );
    return {
      scores: positions.map(([score]) => score),
      x: positions.map(([, ...point]) => point),
      mask: positions.map((_, j) => j < count),
      normalizer: at("normalizer").value,
      mistake: at("mistake").value,
    };
  }

  function element(parent, name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  const shown = (number) =>
    Number.isFinite(number)
      ? number
          .toFixed(2)
          .replace(/^-0\.00$/, "0.00")
          .replace("-", "−")
      : Number.isNaN(number)
        ? "NaN"
        : number > 0
          ? "∞"
          : "−∞";

  const lost = ({ weights }, mask) => weights.reduce((total, weight, j) => total + (mask[j] ? 0 : weight), 0);

  function bars(id, found, { mask }) {
    const [svg, left, width, height, top] = [at(id), 34, 266, 246, 14];
    svg.replaceChildren();
    svg.setAttribute("viewBox", "0 0 310 296");
    for (const tick of [0, 0.5, 1]) {
      element(svg, "path", { class: "line", d: `M${left} ${top + height * (1 - tick)}h${width}` });
      element(
        svg,
        "text",
        { class: "muted", x: left - 6, y: top + height * (1 - tick) + 4, "text-anchor": "end" },
        String(tick),
      );
    }
    const step = width / mask.length;
    found.weights.forEach((weight, j) => {
      const [x, base] = [left + j * step + 1, top + height];
      if (!mask[j]) element(svg, "rect", { class: "hatch", x, y: base + 2, width: step - 2, height: 8 });
      if (Number.isNaN(weight))
        element(
          svg,
          "text",
          {
            x: x + step / 2 - 1,
            y: base - 6,
            "text-anchor": "start",
            transform: `rotate(-90 ${x + step / 2 + 3} ${base - 6})`,
          },
          "NaN",
        );
      else if (weight)
        element(svg, "rect", {
          class: mask[j] ? "real" : "leaking",
          x,
          y: base - height * weight,
          width: step - 2,
          height: height * weight,
        });
    });
    element(
      svg,
      "text",
      { class: "muted", x: left + width / 2, y: 291, "text-anchor": "middle" },
      "position; height: weight",
    );
    svg.setAttribute("aria-label", `weights ${found.weights.map(shown).join(", ")}`);
  }

  function says(id, found, mask) {
    const leak = lost(found, mask);
    const broken = !(leak === 0) || found.pooled.some((value) => !Number.isFinite(value));
    at(id).className = broken ? "bad" : "";
    const share = Number.isNaN(leak) ? "weight on padding: NaN" : `weight on padding: ${leak.toFixed(2)}`;
    at(id).textContent = `(${found.pooled.map(shown).join(", ")}); ${share}`;
  }

  function plane(given, wrong, right) {
    const [svg, size] = [at("plane"), 250];
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${size + 60} ${size + 46}`);
    const points = given.x.filter((_, j) => given.mask[j]).concat([wrong.pooled, right.pooled]);
    const most = Math.ceil(1.3 * Math.max(2, ...points.flat().filter(Number.isFinite).map(Math.abs)));
    const place = ([x, y]) => [40 + (size * (x + most)) / (2 * most), 10 + (size * (most - y)) / (2 * most)];
    const [middleX, middleY] = place([0, 0]);
    element(svg, "path", {
      class: "line",
      d: `M40 ${middleY}h${size}M${middleX} 10v${size}M40 10h${size}v${size}h-${size}z`,
    });
    for (const tick of [-most, 0, most]) {
      element(
        svg,
        "text",
        { class: "muted", x: place([tick, 0])[0], y: size + 26, "text-anchor": "middle" },
        String(tick).replace("-", "−"),
      );
      element(
        svg,
        "text",
        { class: "muted", x: 36, y: place([0, tick])[1] + 4, "text-anchor": "end" },
        String(tick).replace("-", "−"),
      );
    }
    element(svg, "text", { class: "muted", x: 40 + size / 2, y: size + 41, "text-anchor": "middle" }, "x: praise");
    element(svg, "text", { class: "muted", x: 46, y: 24 }, "y: negation");
    given.x.forEach((point, j) => {
      if (!given.mask[j]) return;
      const [x, y] = place(point);
      element(svg, "circle", { class: "token", cx: x, cy: y, r: 5 });
      element(svg, "text", { class: "muted", x: x + 8, y: y - 6 }, WORDS[j]);
    });
    const [x, y] = place(right.pooled);
    element(svg, "circle", { class: "real", cx: x, cy: y, r: 7 });
    const finite = wrong.pooled.every(Number.isFinite);
    if (finite) {
      const [wrongX, wrongY] = place(wrong.pooled);
      element(svg, "path", { class: "cross", d: `M${wrongX - 6} ${wrongY - 6}l12 12m0 -12l-12 12` });
    } else element(svg, "text", { x: 46, y: size + 2 }, "✕ is nowhere: NaN or ∞");
    svg.setAttribute(
      "aria-label",
      `with attnpool (${right.pooled.map(shown)}), with the mistake (${wrong.pooled.map(shown)})`,
    );
  }

  function draw() {
    const given = state();
    const [wrong, right] = [attnpool.wrong(given), attnpool.right(given)];
    at("explained").textContent = MISTAKES[given.mistake][1];
    at("length-shown").value = given.mask.length;
    at("count-shown").value = numberOf("count");
    [...at("tokens").rows].forEach((row, j) => row.classList.toggle("unused", !given.mask[j]));
    bars("wrong-bars", wrong, given);
    bars("right-bars", right, given);
    says("wrong-says", wrong, given.mask);
    says("right-says", right, given.mask);
    plane(given, wrong, right);
  }

  async function checked() {
    const { count, worst, failures } = attnpool.check(await (await fetch("cases.json")).json());
    const says = failures.length ? `fail: ${failures[0]}` : `pass: ${count} cases, largest difference ${worst}`;
    at("check").textContent = document.documentElement.dataset.check = says;
  }

  // Dark or light as the site's page around this one, which a switch changes; alone, as the system.
  function colored() {
    const site = window.frameElement?.ownerDocument.documentElement; // null on other hosts, and for files
    const dark = site ? site.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.classList.toggle("dark", dark);
    document.documentElement.classList.toggle("light", !dark);
    return site;
  }

  choices("mistake", attnpool.MISTAKES, "times 0");
  choices("normalizer", attnpool.NORMALIZERS, "softmax");
  choices("padding", Object.keys(PADDING), "left over");
  inputs();
  at("controls").addEventListener("input", draw);
  at("controls").addEventListener("reset", () => setTimeout(draw)); // after the fields have their first values
  at("home").hidden = location.protocol === "file:"; // the site is not there
  document.documentElement.classList.toggle("framed", window.top !== window);
  const site = colored();
  if (site) new MutationObserver(colored).observe(site, { attributeFilter: ["data-theme"] });
  draw();
  if (new URLSearchParams(location.search).has("check")) checked();
})();

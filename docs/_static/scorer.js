// Order, number and excerpts of the results of a search; Sphinx copies this file into language_data.js (html_search_scorer).
"use strict";

const FOLDERS = { guides: 20, reference: 0, notebooks: 0, decisions: 0, project: 0 };

var Scorer = {
  // Of equal results, guides come first, then pages of the first level, then reference pages. A part of an index entry
  // counts more than a word of a text, and less than the whole entry.
  score: ([docname, , , , score, , kind]) =>
    (kind === "index" && score < 100 ? Math.min(score, 30) : score) + (FOLDERS[docname.split("/")[0]] ?? 10),
  objNameMatch: 100, // the name of a function; as much as an index entry
  objPartialMatch: 25, // more than a word of a guide: who types the first letters of a function finds it
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

queueMicrotask(() => {
  // The ten best pages, each once. A function that has the name of its page is shown as the page.
  const found = Search._performSearch;
  Search._performSearch = (...query) => {
    const seen = new Set();
    return found(...query)
      .reverse()
      .filter(([page]) => !seen.has(page) && seen.add(page))
      .slice(0, 10)
      .map(([page, name, ...rest]) => {
        const last = name.split(".").pop();
        return page.endsWith(`/${last}`) ? [page, last, "", null, ...rest.slice(2)] : [page, name, ...rest];
      })
      .reverse();
  };

  // Excerpts have no formulas, which are LaTeX there, and no list of contents.
  const toText = Search.htmlToText;
  Search.htmlToText = (page, anchor) => {
    const parsed = new DOMParser().parseFromString(page, "text/html");
    parsed.querySelectorAll(".bd-header-article, #jb-print-docs-body").forEach((one) => one.remove());
    parsed.querySelectorAll(".math").forEach((one) => one.replaceWith(" \u2026 "));
    return toText(parsed.documentElement.outerHTML, anchor);
  };
});

/* The order of search results: what tells how to do something comes before records of decisions. */
const SECTIONS = { guides: 6, start: 6, benchmarks: 4, extending: 3, reference: 2, results: 0, decisions: -12 };

// eslint-disable-next-line no-var, no-unused-vars -- Sphinx looks for a global of this name
var Scorer = {
  // result: document, title, anchor, description, score, file name
  score: (result) => result[4] + (SECTIONS[result[0].split("/")[0]] ?? 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

/**
 * What people say about runs, on the owner's page: strengths or ratings with their intervals, pairs, metrics, agreement.
 *
 * @typedef {{value: number | null, low?: number | null, high?: number | null}} Value
 */
import { intervalChart } from "./charts.js";
import { el, percent } from "./dom.js";
import { number, table } from "./owner_tables.js";

/** Metrics that are listed; `maskwise review results --all` lists all. */
const METRICS = 12;

/** @param {any} session @param {any} results as GET /results returns them */
export function judgmentSections(session, results) {
  if (!results.judgments) return [el("section", { class: "box" }, el("h2", {}, "Runs"), el("p", {}, "No judgment yet."))];
  const comparing = results.mode === "compare";
  return [
    tiles(results),
    comparing ? strengthSection(results) : ratingSection(session, results),
    ...(comparing ? [pairSection(results)] : []),
    metricSection(results),
    agreementSection(session, results),
  ];
}

function tiles(results) {
  const facts = [
    [results.judgments.toLocaleString(), "judgments"],
    [results.questions.toLocaleString(), "questions judged"],
    [results.seconds_median === null ? "–" : `${results.seconds_median.toFixed(1)} s`, "per judgment (median)"],
    [results.hours.toFixed(1), "hours of work"],
  ];
  if (results.left) facts.push([percent(results.left.value), "of the decided comparisons go to the left side"]);
  return el("ul", { class: "tiles" }, facts.map(([value, text]) => el("li", {}, el("b", {}, value), el("span", {}, text))));
}

function strengthSection(results) {
  const known = results.runs.filter((run) => run.strength).sort((a, b) => b.strength.value - a.strength.value);
  const chart = known.length ? intervalChart(known.map((run) => ({ name: run.name, ...run.strength })), "Bradley-Terry strength", number) : null;
  const rows = results.runs.map((run) => [run.name, interval(run.strength, number), interval(run.win_rate, percent), run.wins, run.losses, run.ties, run.bad, run.identical]);
  return el("section", { class: "box" }, el("h2", {}, "Runs"), el("p", {}, "Bradley-Terry strength in log odds, mean 0, with 95 % intervals over images. Ties and “both bad” count half. Equal predictions are not asked about."),
    chart, table(["Run", "Strength", "Win rate", "Wins", "Losses", "Ties", "Both bad", "Equal predictions"], rows));
}

function pairSection(results) {
  const rows = results.pairs.map((pair) => [`${pair.a} over ${pair.b}`, interval(pair.rate, percent), pair.wins, pair.losses, pair.ties, pair.bad]);
  return el("section", { class: "box" }, el("h2", {}, "Pairs"), table(["Pair", "Preferred", "Wins", "Losses", "Ties", "Both bad"], rows));
}

function ratingSection(session, results) {
  const criteria = [...session.criteria, { code: "all", title: "All" }].filter(({ code }) => results.runs.some((run) => run.ratings[code]));
  const overall = results.runs.filter((run) => run.ratings.all).sort((a, b) => b.ratings.all.value - a.ratings.all.value);
  const rows = results.runs.map((run) => [run.name, ...criteria.map(({ code }) => interval(run.ratings[code], number))]);
  return el("section", { class: "box" }, el("h2", {}, "Runs"), el("p", {}, "Mean ratings from 1 to 5, with 95 % intervals over images."),
    intervalChart(overall.map((run) => ({ name: run.name, ...run.ratings.all })), "Mean rating", number), table(["Run", ...criteria.map(({ title }) => title)], rows));
}

function metricSection(results) {
  const rows = results.metrics.slice(0, METRICS).map((line) => [`${line.protocol} ${line.metric}`, interval(line.agreement, percent), number(line.correlation), line.judgments]);
  return el("section", { class: "box" }, el("h2", {}, "Which metric agrees with people?"),
    el("p", {}, "Of the judgments that prefer a run, those in which the metric prefers it, too; Spearman’s correlation of metric and judgment."),
    rows.length ? table(["Metric", "Agrees", "Correlation", "Judgments"], rows) : el("p", {}, "No judgment prefers a run yet."));
}

function agreementSection(session, results) {
  const { agreement } = results;
  const pairs = agreement.pairs.map((pair) => [`${pair.a} and ${pair.b}`, pair.items, percent(pair.equal / pair.items), number(pair.kappa)]);
  const alphas = session.criteria.filter(({ code }) => code in results.alpha).map(({ code, title }) => [title, number(results.alpha[code])]);
  const reasons = session.criteria.filter(({ code }) => results.criteria[code]).map(({ code, title }) => `${title} ${results.criteria[code]}`);
  const compared = [el("p", {}, `Equal verdicts: ${percent(agreement.items ? agreement.equal / agreement.items : null)}, Krippendorff’s alpha ${number(agreement.alpha)}.`), table(["Reviewers", "Items", "Equal verdicts", "Cohen's kappa"], pairs)];
  const rated = table(["Criterion", "Krippendorff's alpha"], alphas);
  return el("section", { class: "box" }, el("h2", {}, "Agreement of people"),
    el("p", {}, agreement.items ? `${agreement.items.toLocaleString()} items were judged twice.` : "No item was judged twice yet."),
    agreement.items ? (results.mode === "compare" ? compared : rated) : null,
    reasons.length ? el("p", {}, `What decided comparisons: ${reasons.join(", ")}.`) : null);
}

/** @param {Value | null | undefined} value @param {(value: number) => string} show */
function interval(value, show) {
  if (!value || value.value === null || value.value === undefined) return "–";
  const ends = value.low === null || value.low === undefined ? "" : ` [${show(value.low)}, ${show(value.high)}]`;
  return `${show(value.value)}${ends}`;
}

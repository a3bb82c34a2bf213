/** The owner's page: progress, throughput, agreement, reviewers and reject reasons; refreshed while it is open. */
import { columnChart, rowChart } from "./charts.js";
import { byId, el, percent } from "./dom.js";
import { judgmentSections } from "./judgment_sections.js";
import { number, table } from "./owner_tables.js";
import { call, openReview } from "./review_api.js";

const KINDS = [["accepted", "Accepted"], ["fixed", "Fixed"], ["rejected", "Rejected"], ["disputed", "In dispute"], ["open", "Open"]];
const JUDGED_KINDS = [["judged", "Judged"], ["open", "Open"]];
/** Statistics read every decision, so they are not asked for more often. */
const REFRESH_MS = 15000;
/** Columns that fit beside the reasons. */
const HOURS = 48;

async function start() {
  const { session } = await openReview();
  let invited = null;
  const show = async () => {
    const stats = await call("GET", "/stats");
    const results = session.mode === "check" ? null : await call("GET", "/results");
    const invite = async (name, role) => {
      invited = await call("POST", "/reviewers", { name, role });
      await show();
    };
    const shown = results ? judgedSections(session, stats, results) : sections(session, stats);
    byId("overview").replaceChildren(...shown, reviewersSection(session, stats.reviewers), invitationSection(session, invited, invite));
    byId("updated").textContent = `Updated ${new Date().toLocaleTimeString()}`;
  };
  await show();
  setInterval(() => {
    if (!document.activeElement?.matches("input, select")) show().catch(() => (byId("updated").textContent = "No connection"));
  }, REFRESH_MS);
}

function sections(session, stats) {
  return [
    el("div", {}, el("h1", {}, session.project.name), el("p", { class: "soft" }, `${session.project.samples.toLocaleString()} samples, ${percent(stats.double_share)} reviewed twice`)),
    tiles(stats),
    progressSection(stats.progress, KINDS),
    el("div", { class: "pair" }, throughputSection(stats), reasonsSection(stats)),
    agreementSection(stats.agreement),
  ];
}

/** Where predictions are judged: what people say about the runs, by name. Reviewers do not get this page. */
function judgedSections(session, stats, results) {
  return [
    el("div", {}, el("h1", {}, session.project.name), el("p", { class: "soft" }, `${results.runs.length} runs, ${session.project.samples.toLocaleString()} questions, ${percent(stats.double_share)} judged twice`)),
    progressSection(stats.progress, JUDGED_KINDS),
    ...judgmentSections(session, results),
    throughputSection(stats),
  ];
}

function tiles({ progress, agreement, throughput }) {
  const done = progress.items - progress.open - progress.disputed;
  const last = throughput.at(-1)?.decisions ?? 0;
  const facts = [
    [percent(progress.items ? done / progress.items : 0), "of the samples are settled"],
    [progress.decisions.toLocaleString(), "decisions"],
    [last.toLocaleString(), "decisions in the latest hour of work"],
    [number(agreement.alpha), "Krippendorff's alpha of the verdicts"],
    [number(agreement.mask_iou), "mask IoU between reviewers"],
  ];
  return el("ul", { class: "tiles" }, facts.map(([value, text]) => el("li", {}, el("b", {}, value), el("span", {}, text))));
}

function progressSection(counts, kinds) {
  const total = Math.max(1, counts.items);
  const parts = kinds.map(([kind]) => {
    const part = el("i", { class: `kind-${kind}`, title: `${kind}: ${counts[kind]}` });
    part.style.width = `${(100 * (counts[kind] ?? 0)) / total}%`;
    return part;
  });
  const legend = kinds.map(([kind, name]) => el("li", {}, el("span", { class: `swatch kind-${kind}` }), `${name} ${(counts[kind] ?? 0).toLocaleString()}`));
  return el("section", { class: "box" }, el("h2", {}, "Progress"), el("div", { class: "stack", role: "img", "aria-label": kinds.map(([kind, name]) => `${name} ${counts[kind]}`).join(", ") }, parts), el("ul", { class: "legend" }, legend));
}

function throughputSection(stats) {
  const columns = stats.throughput.slice(-HOURS).map(({ hour, decisions }) => ({ name: new Date(hour).toLocaleString([], { day: "numeric", month: "short", hour: "2-digit" }), value: decisions }));
  return el("section", { class: "box" }, el("h2", {}, "Decisions per hour"), columns.length ? columnChart(columns, "Decisions per hour") : el("p", {}, "No decision yet."));
}

function reasonsSection(stats) {
  const rows = stats.reasons.filter(({ count }) => count).sort((a, b) => b.count - a.count).map(({ title, count }) => ({ name: title, value: count }));
  return el("section", { class: "box" }, el("h2", {}, "Reject reasons"), rows.length ? rowChart(rows, "Reject reasons") : el("p", {}, "Nothing is rejected yet."));
}

function agreementSection(agreement) {
  const note = agreement.items
    ? `${agreement.items.toLocaleString()} samples have two reviews; the verdicts are equal for ${percent(agreement.equal / agreement.items)}.`
    : "No sample has two reviews yet.";
  const rows = agreement.pairs.map((pair) => [`${pair.a} and ${pair.b}`, pair.items, percent(pair.items ? pair.equal / pair.items : null), number(pair.kappa), number(pair.mask_iou), pair.masks]);
  return el("section", { class: "box" }, el("h2", {}, "Agreement"), el("p", {}, note),
    rows.length ? table(["Reviewers", "Samples", "Equal verdicts", "Cohen's kappa", "Mask IoU", "Masks"], rows) : null);
}

function reviewersSection(session, reviewers) {
  const checking = session.mode === "check";
  const rows = reviewers.map((person) => [person.name, person.role, person.decisions, ...(checking ? [person.accept, person.fix, person.reject] : []), person.skip, person.undone, person.seconds_median === null ? "–" : `${person.seconds_median.toFixed(1)} s`,
    person.controls.seen ? `${percent(person.controls.accuracy)} of ${person.controls.seen}` : "–"]);
  return el("section", { class: "box" }, el("h2", {}, "Reviewers"),
    table(["Name", "Role", "Decisions", ...(checking ? ["Accept", "Fix", "Reject"] : []), "Skip", "Undone", "Median time", "Control items right"], rows));
}

function invitationSection(session, invited, invite) {
  const roles = session.mode === "check" ? ["reviewer", "adjudicator", "owner"] : ["reviewer", "owner"];
  const name = el("input", { type: "text", id: "invite-name", required: true, maxLength: 60, pattern: "\\S.*" });
  const role = el("select", { id: "invite-role" }, roles.map((value) => el("option", { value }, value)));
  const problem = el("p", { class: "bad", role: "alert" });
  const form = el("form", { class: "invite", onsubmit: (event) => {
    event.preventDefault();
    invite(name.value.trim(), role.value).catch((error) => (problem.textContent = error.message));
  } }, el("label", { for: "invite-name" }, "Name", name), el("label", { for: "invite-role" }, "Role", role), el("button", { type: "submit" }, "Make a personal link"));
  const link = invited && el("p", { class: "link" }, `Link of ${invited.name}, shown once: `, el("code", {}, `${location.origin}/review#token=${invited.token}`));
  return el("section", { class: "box" }, el("h2", {}, "Add a reviewer"), el("p", {}, "The link signs its owner in. A new link for a known name replaces the old person."), form, problem, link);
}

start().catch((error) => {
  byId("overview").replaceChildren(el("section", { class: "box" }, el("h1", {}, error.status === 403 ? "For the owner" : "The overview cannot be opened"),
    el("p", {}, error.status === 401 ? "Open the personal link of the owner first." : error.message)));
});

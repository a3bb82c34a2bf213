/** The browse page: samples of a dataset, filtered and sorted, with the predictions of runs beside them. */
import { getImage, getJson, openSession } from "./api.js";
import { announce, byId, el, percent } from "./dom.js";
import { openDetail } from "./sample_detail.js";
import { drawPanel, groundTruthRegions, predictedRegions } from "./sample_panels.js";
import { useSignIn } from "./sign_in.js";

/** Samples per page: whole rows of two, three, four or six cards. */
const PAGE = 24;
const SORTS = [["order", "Order of the dataset"], ["score", "Lowest score first"], ["-score", "Highest score first"]];
const state = { datasets: [], offset: 0, total: 0, slices: {}, samples: [], loading: 0 };

const dataset = () => state.datasets.find(({ key }) => key === byId("dataset").value);
const run = () => dataset().runs.find(({ key }) => key === byId("run").value) ?? null;
const layers = () =>
  Object.fromEntries([...byId("layers").querySelectorAll("input")].map((input) => [input.value, input.checked]));

async function start() {
  useSignIn();
  await openSession();
  state.datasets = await getJson("/v1/datasets");
  byId("nothing").hidden = state.datasets.length > 0;
  byId("filters").hidden = byId("paging").hidden = state.datasets.length === 0;
  if (!state.datasets.length) return;
  byId("dataset").replaceChildren(...state.datasets.map(({ key, name, samples }) => el("option", { value: key }, `${name} (${samples.toLocaleString()} samples)`)));
  byId("sort").replaceChildren(...SORTS.map(([value, text]) => el("option", { value }, text)));
  readAddress();
  showDataset();
  await load();
}

/** Filters that the address names, so that a page can be sent to a colleague. */
function readAddress() {
  const given = new URLSearchParams(location.search);
  if (given.has("dataset")) byId("dataset").value = given.get("dataset");
  if (!byId("dataset").value) byId("dataset").selectedIndex = 0;
  byId("text").value = given.get("text") ?? "";
}

function showDataset() {
  const { runs, slices } = dataset();
  byId("run-label").hidden = byId("protocol-label").hidden = !runs.length;
  byId("run").replaceChildren(...runs.map(({ key, title }) => el("option", { value: key }, title)), el("option", { value: "" }, "None"));
  for (const option of byId("sort").options) option.disabled = option.value !== "order" && !runs.length;
  if (!runs.length) byId("sort").value = "order";
  state.slices = {};
  byId("slices").replaceChildren(...Object.entries(slices).map(([name, values]) => sliceChoice(name, values)));
  byId("more").hidden = !Object.keys(slices).length;
  showRun();
}

function sliceChoice(name, values) {
  const select = el("select", { onchange: () => {
    if (select.value) state.slices[name] = select.value;
    else delete state.slices[name];
    reload();
  } }, el("option", { value: "" }, "any"), values.map((value) => el("option", { value }, value)));
  return el("label", {}, name.replaceAll("_", " "), select);
}

function showRun() {
  const chosen = run();
  byId("protocol-label").hidden = !chosen;
  const protocols = chosen ? Object.entries(chosen.protocols) : [];
  byId("protocol").replaceChildren(...protocols.map(([name, value]) =>
    el("option", { value: name, selected: name === chosen.main_protocol }, value === null ? name : `${name} (gIoU ${percent(value)})`)));
  byId("notices").hidden = !chosen?.notices.length;
  byId("notices").textContent = chosen?.notices.join(" ") ?? "";
}

function queryString() {
  const query = new URLSearchParams({ offset: state.offset, limit: PAGE, sort: byId("sort").value, text: byId("text").value.trim() });
  const chosen = run();
  if (chosen) {
    query.set("run", chosen.key);
    query.set("protocol", byId("protocol").value);
  } else query.set("sort", "order");
  for (const [name, value] of Object.entries(state.slices)) query.append("slice", `${name}=${value}`);
  return query;
}

function reload() {
  state.offset = 0;
  return load();
}

async function load() {
  const turn = ++state.loading;
  const key = dataset().key;
  const page = await getJson(`/v1/datasets/${key}/samples?${queryString()}`);
  if (turn !== state.loading) return;
  Object.assign(state, { total: page.total, samples: page.samples });
  const count = Object.keys(state.slices).length;
  byId("slice-count").textContent = count ? `(${count})` : "";
  const last = Math.min(state.offset + PAGE, page.total);
  byId("shown").textContent = page.total
    ? `${(state.offset + 1).toLocaleString()}–${last.toLocaleString()} of ${page.total.toLocaleString()} samples`
    : "No sample fits these filters.";
  byId("page").textContent = `Page ${Math.floor(state.offset / PAGE) + 1} of ${Math.max(1, Math.ceil(page.total / PAGE))}`;
  byId("previous").disabled = state.offset === 0;
  byId("next").disabled = last >= page.total;
  byId("samples").style.setProperty("--card-width", run() ? "420px" : "290px");
  byId("samples").replaceChildren(...page.samples.map((sample, index) => card(key, sample, index)));
  announce(byId("shown").textContent);
}

function card(key, sample, index) {
  const chosen = run();
  const figures = [figure("Ground truth"), chosen && figure(chosen.title)].filter(Boolean);
  const element = el("li", {}, el("button", { type: "button", class: "card", onclick: () => show(index) },
    el("div", { class: "panels" }, figures),
    el("h3", {}, sample.question),
    el("footer", {}, chosen && score(sample.scores[chosen.key]), el("span", { class: "tag" }, sample.mask_type),
      el("span", {}, `${sample.targets} target${sample.targets === 1 ? "" : "s"}`), el("span", {}, sample.id))));
  whenSeen(element, () => fillCard(key, sample, figures));
  return element;
}

const figure = (title) => el("figure", {}, el("canvas", { width: 480, height: 360, "aria-hidden": "true" }), el("figcaption", {}, title));

function score(value) {
  const fill = el("i");
  fill.style.width = `${100 * (value ?? 0)}%`;
  return el("span", {}, el("span", { class: "meter", "aria-hidden": "true" }, fill), el("span", { class: "score" }, value === null ? "not scored" : `gIoU ${percent(value)}`));
}

async function fillCard(key, sample, figures) {
  const [image, content] = await Promise.all([
    getImage(`/v1/datasets/${key}/images/${sample.image}?thumbnail=true`),
    getJson(`/v1/datasets/${key}/samples/${sample.row}`),
  ]);
  const predicted = content.predictions.find((prediction) => prediction.run === byId("run").value);
  const sides = [groundTruthRegions(content.sample), predicted && predictedRegions(predicted)];
  figures.forEach((element, side) => {
    element.draw = () => drawPanel(element.querySelector("canvas"), image, content.image, sides[side] ?? [], layers());
    element.draw();
  });
}

/** Call a function once, when an element comes into view. */
function whenSeen(element, call) {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    call();
  }, { rootMargin: "300px" });
  observer.observe(element);
}

/** Enlarge a sample of this page; the dialog asks for its neighbours by this function. */
async function show(index) {
  const sample = state.samples[index];
  if (!sample) return false;
  await openDetail(dataset().key, sample.row, { layers, step: (by) => show(index + by) });
  return true;
}

function listen() {
  let typing = 0;
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("text").addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(reload, 250);
  });
  byId("dataset").addEventListener("change", () => {
    showDataset();
    reload();
  });
  byId("run").addEventListener("change", () => {
    showRun();
    reload();
  });
  for (const id of ["protocol", "sort"]) byId(id).addEventListener("change", reload);
  byId("layers").addEventListener("change", () => {
    for (const element of document.querySelectorAll("#samples figure")) element.draw?.();
  });
  byId("previous").addEventListener("click", () => turnPage(-PAGE));
  byId("next").addEventListener("click", () => turnPage(PAGE));
}

function turnPage(by) {
  state.offset = Math.max(0, state.offset + by);
  load();
  scrollTo({ top: 0 });
}

listen();
start().catch((error) => {
  byId("notices").hidden = false;
  byId("notices").textContent = error.message;
});

/** One sample, enlarged: ground truth and the prediction of every run side by side; zoom and position are shared. */
import { answerElements } from "./answer_text.js";
import { getImage, getJson } from "./api.js";
import { CanvasView } from "./canvas_view.js";
import { byId, el, percent, swatch } from "./dom.js";
import { drawRegions } from "./mask_layer.js";
import { colorOf } from "./palette.js";
import { groundTruthRegions, predictedRegions } from "./sample_panels.js";
import { viewKeys } from "./view_keys.js";

/** Show a sample. step: shows a neighbour; layers: the layers that are on. */
export async function openDetail(key, row, { layers, step }) {
  const content = await getJson(`/v1/datasets/${key}/samples/${row}`);
  const image = await getImage(`/v1/datasets/${key}/images/${content.image.row}`);
  const dialog = byId("detail");
  const sides = [groundTruthSide(content.sample), ...content.predictions.map(predictionSide)];
  dialog.replaceChildren(head(content.sample, dialog, step), el("div", { class: "sides" }, sides.map(({ element }) => element)));
  if (!dialog.open) dialog.showModal();
  const views = sides.map(({ canvas, regions }) => new CanvasView(canvas, (context, scale) => drawRegions(context, regions, layers(), scale)));
  for (const view of views) {
    shareMoves(view, views);
    viewKeys(view.canvas, view);
    view.show(image, content.image);
  }
  dialog.onkeydown = (event) => {
    const by = { j: 1, k: -1, n: 1, p: -1 }[event.key];
    if (by) step(by);
  };
}

/** Zooming or moving one image does the same to the others. */
function shareMoves(view, views) {
  const redraw = view.redraw.bind(view);
  view.redraw = () => {
    redraw();
    for (const other of views) {
      if (other === view || !view.canvas.matches(":hover, :focus")) continue;
      other.place = { ...view.place };
      other.fitted = view.fitted;
      CanvasView.prototype.redraw.call(other);
    }
  };
}

function head(sample, dialog, step) {
  const tags = Object.entries(sample.tags ?? {}).map(([name, value]) => el("span", { class: "tag" }, `${name.replaceAll("_", " ")}: ${value}`));
  return el("header", {},
    el("div", {}, el("h2", { id: "detail-question" }, sample.question),
      el("div", { class: "scores" }, el("span", { class: "tag good" }, sample.mask_type ?? "visible"), tags, el("small", {}, sample.id))),
    el("div", {},
      el("button", { type: "button", onclick: () => step(-1), title: "K" }, "Previous"), " ",
      el("button", { type: "button", onclick: () => step(1), title: "J" }, "Next"), " ",
      el("button", { type: "button", onclick: () => dialog.close(), autofocus: true }, "Close")));
}

function groundTruthSide(sample) {
  const regions = groundTruthRegions(sample);
  return side("Ground truth", [], regions, sample.answer, regions.map(() => null), regions.length ? null : "No target is in the image.");
}

function predictionSide(content) {
  const regions = predictedRegions(content);
  const { prediction } = content;
  const scores = Object.entries(content.scores).map(([name, value]) =>
    el("span", { class: "tag" }, value === null ? `${name}: ${content.status[name] ?? "no prediction"}` : `${name} ${percent(value)}`));
  const type = prediction?.mask_type ? [el("span", { class: "tag good" }, prediction.mask_type)] : [];
  const note = !prediction ? "No prediction for this sample." : prediction.error ?? (prediction.no_target ? "The model says that no target is in the image." : null);
  return side(content.title, [...type, ...scores], regions, prediction?.answer, content.iou, note);
}

function side(title, tags, regions, answer, overlaps, note) {
  const canvas = el("canvas", { tabindex: 0, "aria-label": `${title}: image with ${regions.length} masks` });
  const legend = el("ul", { class: "legend" }, regions.map((region, index) =>
    el("li", {}, swatch(colorOf(region.color)), region.name, overlaps[index] === null ? null : el("small", {}, `IoU ${percent(overlaps[index])}`))));
  const words = answer ? el("p", {}, answerElements(answer, regions.map((region) => region.color))) : null;
  const element = el("section", { class: "side", "aria-label": title },
    el("h3", {}, title), canvas, el("div", { class: "words" }, tags.length ? el("div", { class: "scores" }, tags) : null, words, note && el("p", { class: "soft" }, note), legend));
  return { element, canvas, regions };
}

/**
 * One question with its answer in the thread of the ask page.
 *
 * @typedef {{activate: Function, redraw: Function, point: Function, setLayers: Function, download: Function}} Page
 */
import { answerElements } from "./answer_text.js";
import { cueElements } from "./cue_text.js";
import { el, percent, seconds, swatch } from "./dom.js";
import { drawPng, saveBlob, saveJson, toCoco, toRle } from "./downloads.js";
import { DrawnRegion } from "./mask_layer.js";
import { colorOf } from "./palette.js";

const LAYERS = {
  visible: { visible: true, amodal: false, occluded: false },
  amodal: { visible: true, amodal: true, occluded: true },
  both: { visible: true, amodal: true, occluded: true },
};

export class AnswerEntry {
  /** @param {string} question @param {Page} page */
  constructor(question, page) {
    this.question = question;
    this.page = page;
    this.response = null;
    /** @type {DrawnRegion[]} */
    this.regions = [];
    this.said = el("p", { class: "said" }, el("span", { class: "spinner", "aria-label": "waiting for the answer" }));
    this.asked = el("button", { type: "button", class: "asked", onclick: () => page.activate(this) }, question);
    this.element = el("li", { class: "entry" }, this.asked, this.said);
  }

  /** What a screen reader says. */
  get spoken() {
    const { prediction } = this.response.answer;
    return `${prediction.answer?.text ?? "No answer in words."} ${this.regions.length} masks, ${prediction.mask_type ?? "no mask type"}.`;
  }

  /** Show an answer. @param {any} response */
  fill(response) {
    this.response = response;
    this.asked.replaceChildren(...cueElements(this.question, response.cues));
    const { prediction } = response.answer;
    this.regions = (prediction.regions ?? []).map((region, index) => new DrawnRegion(region, index));
    (prediction.regions ?? []).forEach((region, index) =>
      Object.defineProperty(region, "drawn", { value: this.regions[index], enumerable: false }));
    this.shown = prediction.mask_type ?? (this.has("visible") ? "visible" : "amodal");
    this.said.replaceChildren(...this.#answer(prediction));
    this.element.append(...[this.#facts(), this.#masks(), this.#downloads()].filter(Boolean));
  }

  /** Show why there is no answer. @param {string} message */
  fail(message) {
    this.said.replaceChildren(el("span", { class: "failed", role: "alert" }, message));
  }

  /** @param {boolean} active */
  setActive(active) {
    this.element.classList.toggle("active", active);
    if (active) this.element.setAttribute("aria-current", "true");
    else this.element.removeAttribute("aria-current");
  }

  /** Whether any region has a mask of a kind. @param {"visible" | "amodal" | "occluded"} kind */
  has(kind) {
    return this.regions.some((region) =>
      (kind === "occluded" ? region.rle.visible && region.rle.amodal : region.rle[kind]) !== null);
  }

  /** The layers of the mask type that is shown. */
  layers() {
    const wanted = LAYERS[this.shown];
    return Object.fromEntries(Object.entries(wanted).map(([kind, on]) => [kind, on && this.has(kind)]));
  }

  #answer(prediction) {
    if (prediction.error) return [el("span", { class: "failed" }, prediction.error)];
    if (!prediction.answer) return [el("span", { class: "soft" }, prediction.no_target ? "Nothing in this image fits." : "No answer in words.")];
    const colors = this.regions.map((region) => region.color);
    return answerElements(prediction.answer, colors, {
      enter: (regions) => this.page.point(this.regions[regions[0]]),
      leave: () => this.page.point(null),
    });
  }

  #facts() {
    const { prediction, mask_type_probability: probability, encoding_reused: reused } = this.response.answer;
    const time = el("span", { class: "soft time", title: reused ? "The image was encoded for an earlier question." : "The image was encoded for this question." },
      `${seconds(this.response.seconds)}${reused ? ", image encoding reused" : ""}`);
    const type = prediction.mask_type;
    if (!type && !this.regions.length) return el("div", { class: "facts" }, time);
    return el("div", { class: "facts" }, this.#typeSwitch(type, probability), time);
  }

  /** Two buttons: the mask type the model chose, with its probability, and the other one. */
  #typeSwitch(chosen, probability) {
    const buttons = ["visible", "amodal"].map((kind) => {
      const note = kind !== chosen ? "" : probability === null ? " · chosen" : ` · ${percent(probability)}`;
      return el("button", {
        type: "button",
        disabled: !this.has(kind),
        title: kind === chosen ? "The mask type the model chose for this question" : "Show the other mask type",
        "data-kind": kind,
        onclick: () => this.#show(kind, buttons),
      }, kind[0].toUpperCase() + kind.slice(1) + note);
    });
    this.#press(buttons);
    return el("span", { class: "types", role: "group", "aria-label": "Mask type" }, buttons);
  }

  #show(kind, buttons) {
    this.shown = kind;
    this.#press(buttons);
    this.page.setLayers(this.layers());
  }

  #press(buttons) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.kind === this.shown || this.shown === "both"));
  }

  #masks() {
    const rates = this.response.answer.occlusion_rates;
    const predicted = this.response.answer.prediction.regions ?? [];
    return el("ul", { class: "masks", "aria-label": "Masks" }, this.regions.map((region, index) => {
      const box = el("input", { type: "checkbox", checked: true, onchange: () => {
        region.hidden = !box.checked;
        this.page.redraw();
      } });
      const rate = rates[index];
      const note = [rate === null ? null : rate < 0.005 ? "not occluded" : `${percent(rate)} occluded`, `score ${(predicted[index].score ?? 1).toFixed(2)}`];
      return el("li", { onpointerenter: () => this.page.point(region), onpointerleave: () => this.page.point(null) },
        el("label", {}, box, swatch(colorOf(region.color)), el("span", {}, region.name), el("span", { class: "soft" }, note.filter(Boolean).join(" · "))));
    }));
  }

  #downloads() {
    if (!this.regions.length) return null;
    const base = () => this.page.download().name.replace(/\.[a-z]+$/i, "").replace(/[^\w.-]+/g, "_") || "answer";
    const save = {
      PNG: async () => {
        const { image, layers } = this.page.download();
        saveBlob(await drawPng(image, this.response.image, this.regions, layers), `${base()}.png`);
      },
      "COCO JSON": () => saveJson(toCoco(this.response, this.page.download().name), `${base()}.coco.json`),
      RLE: () => saveJson(toRle(this.response), `${base()}.rle.json`),
    };
    return el("div", { class: "downloads" }, el("span", { class: "soft" }, "Download"),
      Object.entries(save).map(([name, action]) => el("button", { type: "button", onclick: action }, name)));
  }
}

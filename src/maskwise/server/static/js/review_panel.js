/**
 * The sample beside the image: question, answer, mask type and targets, each changed in place.
 *
 * @typedef {import("./edit_state.js").EditState} EditState
 * @typedef {{state: () => EditState, active: () => number, pick: (index: number) => void, changed: () => void,
 *   repair: (index: number) => void, point: (index: number | null) => void, apply: (opinion: any) => void,
 *   adding: () => boolean, startAdding: () => void, saveAddition: () => void, cancelAdding: () => void, emptyMask: () => any, reasonTitle: (code: string) => string}} Page
 */
import { answerElements } from "./answer_text.js";
import { area } from "./bitmap.js";
import { cueElements } from "./cue_text.js";
import { el, percent, swatch } from "./dom.js";
import { targetOf } from "./edit_state.js";
import { drawnRegion } from "./item_queue.js";
import { colorOf } from "./palette.js";
import { makeUuid } from "./uuid.js";

const TYPES = ["visible", "amodal", "both"];

export class ReviewPanel {
  /** @param {HTMLElement} element @param {Page} page */
  constructor(element, page) {
    this.element = element;
    this.page = page;
    this.editing = null;
  }

  /** Show the state of the item. */
  render() {
    const state = this.page.state();
    this.element.replaceChildren(...[
      this.#notices(state), this.#question(state), this.#answer(state), this.#maskType(state), this.#targets(state), this.#meta(state),
    ].filter(Boolean));
    this.element.querySelector("textarea, .targets input")?.focus();
  }

  /** Change a text in place. @param {"question" | "answer" | string | null} field or the id of a target, for its name */
  edit(field) {
    this.editing = field;
    this.render();
  }

  /** The next mask type. */
  cycleType() {
    const state = this.page.state();
    state.change({ mask_type: TYPES[(TYPES.indexOf(state.content.mask_type) + 1) % TYPES.length] });
    this.page.changed();
  }

  /** What is being made, where a question is added. */
  #addition() {
    return el("div", { class: "addition", role: "status" }, el("b", {}, "New question about this image"),
      el("span", {}, "Choose its targets among the regions, or draw new ones. Somebody else will check it."),
      el("div", { class: "buttons" },
        el("button", { type: "button", id: "save-addition", class: "primary", onclick: () => this.page.saveAddition() }, "Save ", el("kbd", {}, "F")),
        el("button", { type: "button", id: "cancel-addition", onclick: () => this.page.cancelAdding() }, "Discard ", el("kbd", {}, "Esc"))));
  }

  #notices(state) {
    if (this.page.adding()) return this.#addition();
    const outside = state.content.targets.flatMap((target, index) => {
      const pixels = drawnRegion(target, index).bitmap("outside");
      return pixels ? [this.#problem(target, index, area(pixels))] : [];
    });
    const opinions = state.item.opinions?.length ? [this.#opinions(state)] : [];
    return outside.length || opinions.length ? el("div", { class: "opinions" }, outside, opinions) : null;
  }

  #problem(target, index, pixels) {
    return el("div", { class: "problem", role: "status" },
      el("span", {}, `Visible outside amodal: ${pixels.toLocaleString()} px of ${target.name || "this target"}`),
      el("button", { type: "button", onclick: () => this.page.repair(index) }, "Repair ", el("kbd", {}, "D")));
  }

  #opinions(state) {
    return el("section", {}, el("h2", {}, "Two reviewers disagree"), el("ul", { class: "opinions" }, state.item.opinions.map((opinion) =>
      el("li", {}, el("div", { class: "buttons" }, el("span", { class: "tag" }, opinion.label), el("b", {}, opinion.verdict),
        opinion.edit ? el("button", { type: "button", onclick: () => this.page.apply(opinion) }, `Show edits of ${opinion.label}`) : null),
      opinion.reason ? el("span", {}, this.page.reasonTitle(opinion.reason)) : null,
      opinion.note ? el("span", { class: "soft" }, opinion.note) : null))));
  }

  #question(state) {
    const { question } = state.content;
    // The marked words are those of the question as it came.
    const cues = question === state.original.question ? state.item.cues : [];
    const commit = (text) => text.trim() && text !== question && state.change({ question: text.trim() });
    return el("section", { class: question === state.original.question ? "" : "changed" }, this.#title("Question", "question", "Q"),
      this.editing === "question" ? this.#textarea("Question", question, commit) : el("p", { class: "question-text", ondblclick: () => this.edit("question") }, cueElements(question, cues)));
  }

  #answer(state) {
    const { answer } = state.content;
    const changed = JSON.stringify(answer) !== JSON.stringify(state.original.answer);
    const commit = (text) => text !== (answer?.text ?? "") && state.changeAnswer(text);
    const words = answer
      ? answerElements(answer, state.content.targets.map((_, index) => index), { enter: ([first]) => this.page.point(first), leave: () => this.page.point(null) })
      : [el("span", { class: "soft" }, "No answer in words.")];
    return el("section", { class: changed ? "changed" : "" }, this.#title("Answer", "answer", "W"),
      this.editing === "answer"
        ? [this.#textarea("Answer", answer?.text ?? "", commit, (field, target) => this.#link(state, field, target)),
          el("p", { class: "edit-hint" }, "Select words and press Alt+1, Alt+2, … to link them to a target.")]
        : el("p", { class: "answer-text", ondblclick: () => this.edit("answer") }, words));
  }

  /** Link the selected words of a text field to a target. */
  #link(state, field, target) {
    const { selectionStart: from, selectionEnd: to, value } = field;
    if (from === to || target >= state.content.targets.length) return;
    if (value !== state.content.answer?.text) state.changeAnswer(value);
    const count = (end) => Array.from(value.slice(0, end)).length;
    state.linkPhrase(count(from), count(to), target);
    this.editing = null;
    this.page.changed();
  }

  #title(text, field, key) {
    return el("h2", {}, text, el("button", { type: "button", onclick: () => this.edit(this.editing === field ? null : field), "aria-label": `Edit ${text.toLowerCase()}` }, "Edit ", el("kbd", {}, key)));
  }

  /** A text field that commits when it loses the focus or Enter is pressed, and forgets on Escape. */
  #textarea(label, text, commit, link = null) {
    let open = true;
    const close = (keep) => {
      if (!open) return;
      open = false;
      this.editing = null;
      if (keep) commit(field.value);
      this.page.changed();
    };
    const field = el("textarea", { rows: 3, value: text, "aria-label": label, onblur: () => close(true) });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) close(true);
      else if (event.key === "Escape") close(false);
      else if (link && event.altKey && /^Digit[1-9]$/.test(event.code)) {
        open = false;
        link(field, Number(event.code.slice(5)) - 1);
      } else return;
      event.preventDefault();
    });
    return field;
  }

  #maskType(state) {
    const choose = (type) => {
      state.change({ mask_type: type });
      this.page.changed();
    };
    return el("section", { class: state.content.mask_type === state.original.mask_type ? "" : "changed" }, el("h2", {}, "Mask type asked for"),
      el("span", { class: "types", role: "group", "aria-label": "Mask type" }, TYPES.map((type) =>
        el("button", { type: "button", "aria-pressed": String(type === state.content.mask_type), onclick: () => choose(type) }, type))), " ", el("kbd", {}, "T"));
  }

  #targets(state) {
    const edit = state.edit();
    const list = el("ol", { class: "targets" }, state.content.targets.map((target, index) => this.#target(state, target, index)));
    const none = state.content.targets.length ? null : el("p", { class: "soft" }, "No target: nothing in the image is asked for.");
    return el("section", { class: edit?.targets ? "changed" : "" }, el("h2", {}, `Targets (${state.content.targets.length})`), none, list, this.#add(state));
  }

  #target(state, target, index) {
    const rename = (name) => {
      this.editing = null;
      if (name.trim() && name.trim() !== target.name) state.changeTarget(index, { name: name.trim() });
      this.page.changed();
    };
    const region = drawnRegion(target, index);
    const name = this.editing === target.id ? this.#nameField(target, rename) : [el("b", {}, target.name || "unnamed"), el("small", {}, describeMasks(region))];
    const pick = el(this.editing === target.id ? "span" : "button", { class: "pick", type: "button", onclick: () => this.page.pick(index), ondblclick: () => this.edit(target.id), "aria-pressed": String(index === this.page.active()) },
      index < 9 ? el("kbd", {}, String(index + 1)) : null, swatch(colorOf(index)), name);
    const tools = [
      ["↑", `Move ${target.name} up`, () => state.moveTarget(index, -1)],
      ["✎", `Rename ${target.name}`, () => (this.editing = target.id)],
      ["✕", `Remove ${target.name} from the targets`, () => state.removeTarget(index)],
    ];
    return el("li", { class: index === this.page.active() ? "active" : "", onpointerenter: () => this.page.point(index), onpointerleave: () => this.page.point(null) }, pick,
      tools.filter(([sign]) => sign !== "↑" || index).map(([sign, label, run]) => el("button", { type: "button", class: "small", title: label, "aria-label": label, onclick: () => {
        run();
        this.page.changed();
      } }, sign)));
  }

  #nameField(target, rename) {
    let open = true;
    const close = (name) => {
      if (open) rename(name);
      open = false;
    };
    const field = el("input", { type: "text", value: target.name, "aria-label": "Name of the target", onblur: () => close(field.value) });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") close(field.value);
      else if (event.key === "Escape") close(target.name);
    });
    return field;
  }

  #add(state) {
    const used = new Set(state.content.targets.map((target) => target.id));
    const free = [...state.item.targets, ...(state.item.regions ?? [])].filter((region) => !used.has(region.id));
    const select = el("select", { "aria-label": "Add a region of the image to the targets", onchange: () => {
      state.addTarget(targetOf(free[select.selectedIndex - 1]));
      this.page.changed();
    } }, el("option", { value: "" }, free.length ? "Add a region of the image …" : "No other region in this image"), free.map((region) => el("option", {}, region.name)));
    select.disabled = !free.length;
    const create = () => {
      const target = { id: `new-${makeUuid().slice(0, 8)}`, name: "", visible: this.page.emptyMask(), amodal: null };
      state.addTarget(target);
      this.editing = target.id;
      this.page.pick(state.content.targets.length - 1);
      this.page.changed();
    };
    return el("div", { class: "add" }, select, el("button", { type: "button", onclick: create }, "New region"));
  }

  #meta(state) {
    if (this.page.adding()) return null;
    const add = el("button", { type: "button", id: "add-question", onclick: () => this.page.startAdding() }, "Add a question about this image ", el("kbd", {}, "N"));
    const flags = (state.item.flags ?? []).map((flag) => el("span", { class: "tag bad" }, flag.replaceAll("-", " ")));
    const tags = Object.entries(state.item.tags ?? {}).map(([name, value]) => el("span", { class: "tag" }, `${name.replaceAll("_", " ")}: ${value}`));
    const doubts = (state.item.doubts ?? []).map((doubt) => el("p", { class: "doubt" }, doubt));
    return el("div", { class: "meta" }, add, flags, doubts, el("span", {}, `Sample ${state.item.sample}`), tags);
  }
}

function describeMasks(region) {
  const [amodal, occluded] = [region.bitmap("amodal"), region.bitmap("occluded")];
  if (amodal && occluded && area(amodal)) return area(occluded) ? `${percent(area(occluded) / area(amodal))} occluded` : "not occluded";
  return amodal ? "amodal only" : "visible only";
}

/** The page on which people judge predictions: which of two is better, or how good one is. Whose they are stays hidden. */
import { answerElements } from "./answer_text.js";
import { CanvasView } from "./canvas_view.js";
import { DecisionPage, openPage } from "./decision_page.js";
import { byId, el, swatch } from "./dom.js";
import { drawnRegion } from "./item_queue.js";
import { drawRegions } from "./mask_layer.js";
import { colorOf } from "./palette.js";

/** Verdicts of a comparison: label, key and what screen readers hear. */
const VERDICTS = {
  left: ["Left is better", "1", "Left."],
  tie: ["Equally good", "T", "A tie."],
  right: ["Right is better", "2", "Right."],
  bad: ["Both are bad", "B", "Both bad."],
};
/** Keys of the criteria, near each other for the left hand. */
const CRITERION_KEYS = ["q", "w", "e", "r", "d", "f"];
const TYPES = { visible: "Answers with the visible part", amodal: "Answers with the whole object", both: "Answers with both masks" };
const SIDES = ["Left", "Right"];

class JudgePage extends DecisionPage {
  constructor(session) {
    super(session, byId("candidates"));
    this.comparing = session.mode === "compare";
    this.pointed = null;
    this.candidates = (this.comparing ? SIDES : [""]).map((side, index) => this.#makeCandidate(side, index));
    this.views = this.candidates.map(({ view }) => view);
    byId("judge").classList.toggle("rating", !this.comparing);
    byId("candidates").append(...this.candidates.map(({ element }) => element));
    byId("criteria").append(...(this.comparing ? this.#chips() : this.#scales()));
    byId("decide").append(...this.#buttons());
    byId("note").addEventListener("change", () => this.#changed());
  }

  // -- what is shown

  #makeCandidate(side, index) {
    const canvas = el("canvas", { tabIndex: 0, "aria-label": side ? `The image with the masks of the ${side.toLowerCase()} prediction` : "The image with the masks of the prediction" });
    const words = el("div", { class: "words" });
    const view = new CanvasView(canvas, (context, scale) => this.#draw(index, context, scale));
    const element = el("section", { class: "candidate", "aria-label": side || "Prediction" }, side ? el("h2", {}, side) : null, canvas, words);
    return { element, words, view };
  }

  showItem(item) {
    const draft = this.drafts.find(item.item) ?? item.draft ?? {};
    this.ratings = { ...draft.ratings };
    this.criteria = new Set(draft.criteria ?? []);
    this.active = 0;
    byId("note").value = draft.note ?? "";
    byId("sample").replaceChildren(el("h2", {}, "Question"), el("p", { class: "question-text" }, item.question));
    item.candidates.forEach((candidate, index) => this.#showWords(candidate, index));
    this.#showCriteria();
  }

  showImage(image, item) {
    for (const view of this.views) view.show(image, item.image);
    if (!image) for (const { words } of this.candidates) words.replaceChildren();
  }

  describe(item) {
    const said = item.candidates.map((candidate, index) => `${this.comparing ? SIDES[index] : "Prediction"}: ${describeCandidate(candidate)}`);
    return `Question: ${item.question} ${said.join(" ")}`;
  }

  #showWords(candidate, index) {
    const colors = candidate.regions.map((_, at) => at);
    const point = (regions) => {
      this.pointed = regions && { index, regions };
      this.redraw();
    };
    const answer = candidate.answer
      ? el("p", { class: "answer-text" }, answerElements(candidate.answer, colors, { enter: point, leave: () => point(null) }))
      : el("p", { class: "soft" }, candidate.missing ? "No prediction" : "No answer in words");
    const masks = candidate.regions.map((region, at) => el("li", {}, swatch(colorOf(at)), region.name || `mask ${at + 1}`));
    const facts = [
      candidate.no_target ? "Says that nothing in the image is meant" : null,
      TYPES[candidate.mask_type] ?? null,
      candidate.missing || candidate.regions.length || candidate.no_target ? null : "No mask",
    ].filter(Boolean);
    this.candidates[index].words.replaceChildren(answer, el("ul", { class: "masks" }, masks), facts.length ? el("p", { class: "soft facts" }, facts.join(" · ")) : "");
  }

  #draw(index, context, scale) {
    const candidate = this.item?.candidates[index];
    if (!candidate || this.hideAll) return;
    const regions = candidate.regions.map(drawnRegion);
    const pointed = this.pointed?.index === index ? regions[this.pointed.regions[0]] : null;
    drawRegions(context, regions, this.layers, scale, pointed ?? null);
  }

  // -- criteria

  /** What decided a comparison. */
  #chips() {
    const chips = this.session.criteria.map(({ code, title, question }, index) =>
      el("label", { title: question }, el("input", { type: "checkbox", value: code, onchange: () => this.toggleCriterion(code) }), el("span", {}, title, " ", el("kbd", {}, CRITERION_KEYS[index].toUpperCase()))));
    return [el("span", { class: "soft" }, "What decides it?"), el("div", { class: "chips choice" }, chips)];
  }

  /** The scale of each criterion. */
  #scales() {
    return this.session.criteria.map(({ code, title, question }, index) => {
      const steps = this.session.rating_names.map((name, step) =>
        el("button", { type: "button", "data-rating": step + 1, title: name, "aria-label": `${title}: ${step + 1}, ${name}`, onclick: () => this.rate(index, this.ratings[code] === step + 1 ? null : step + 1) }, String(step + 1), el("small", {}, name)));
      return el("div", { class: "scale", "data-criterion": code, role: "group", "aria-label": title, onpointerdown: () => this.choose(index) },
        el("div", {}, el("b", {}, title), el("small", {}, question)), el("div", { class: "steps" }, steps));
    });
  }

  toggleCriterion(code) {
    if (!this.item) return;
    if (!this.criteria.delete(code)) this.criteria.add(code);
    this.#changed();
  }

  /** Choose the criterion that digits rate. */
  choose(index) {
    this.active = Math.max(0, Math.min(this.session.criteria.length - 1, index));
    this.#showCriteria();
  }

  /** Rate a criterion, or take the rating back (null), and go to the next one. */
  rate(index, rating) {
    if (!this.item) return;
    const { code } = this.session.criteria[index];
    if (rating === null) delete this.ratings[code];
    else this.ratings[code] = rating;
    this.active = Math.min(this.session.criteria.length - 1, index + 1);
    this.#changed();
  }

  #changed() {
    if (!this.item) return;
    this.#showCriteria();
    this.drafts.save(this.item.item, this.#content());
  }

  #content() {
    const note = byId("note").value.trim();
    return this.comparing ? { note, criteria: [...this.criteria] } : { note, ratings: this.ratings };
  }

  #showCriteria() {
    for (const input of byId("criteria").querySelectorAll("input")) input.checked = this.criteria.has(input.value);
    byId("criteria").querySelectorAll(".scale").forEach((scale, index) => {
      const rating = this.ratings[scale.dataset.criterion];
      scale.classList.toggle("active", index === this.active);
      if (index === this.active) scale.scrollIntoView({ block: "nearest" });
      for (const button of scale.querySelectorAll("button")) button.setAttribute("aria-pressed", String(Number(button.dataset.rating) === rating));
    });
  }

  // -- the decision

  decide(verdict) {
    if (!this.item) return;
    document.activeElement?.blur?.();
    if (verdict === "skip") return this.submit({ verdict }, "Skipped.");
    if (verdict === "rated" && !Object.keys(this.ratings).length) return this.say("Nothing is rated yet: press 1 to 5, or S to skip.");
    this.submit({ verdict, ...this.#content() }, verdict === "rated" ? "Saved." : VERDICTS[verdict][2]);
  }

  #buttons() {
    const button = (id, label, key) => el("button", { type: "button", id, disabled: true }, el("span", {}, label), el("kbd", {}, key));
    const verdicts = this.comparing
      ? Object.entries(VERDICTS).map(([verdict, [label, key]]) => button(verdict, label, key))
      : [button("rated", "Save", "Enter")];
    return [...verdicts, button("skip", "Skip", "S"), button("undo", "Undo", "U")];
  }

  bindings() {
    const bind = (group, keys, label, run) => ({ group, keys, label, run });
    const common = [
      bind("Decide", ["s"], "Skip: later, or somebody else", () => this.decide("skip")),
      bind("Decide", ["u", "Ctrl+z"], "Undo the latest decision", () => this.undo()),
    ];
    if (this.comparing) {
      const arrows = { left: ["ArrowLeft"], right: ["ArrowRight"] };
      const verdicts = Object.entries(VERDICTS).map(([verdict, [label, key]]) => bind("Decide", [key.toLowerCase(), ...(arrows[verdict] ?? [])], label, () => this.decide(verdict)));
      const criteria = this.session.criteria.map(({ code, title }, index) => bind("What decides it", [CRITERION_KEYS[index]], title, () => this.toggleCriterion(code)));
      return [...verdicts, ...common, ...criteria];
    }
    const steps = this.session.rating_names.map((_, step) => String(step + 1));
    return [
      bind("Rate", steps, "Rate the marked criterion", (event) => this.rate(this.active, Number(event.key))),
      bind("Rate", ["n"], "Not applicable", () => this.rate(this.active, null)),
      bind("Rate", ["ArrowDown", "j"], "Next criterion", () => this.choose(this.active + 1)),
      bind("Rate", ["ArrowUp", "k"], "Criterion before", () => this.choose(this.active - 1)),
      bind("Decide", ["Enter"], "Save the ratings", () => this.decide("rated")),
      ...common,
    ];
  }

  clicks() {
    const ids = this.comparing ? Object.keys(VERDICTS) : ["rated"];
    return Object.fromEntries([...ids, "skip"].map((verdict) => [verdict, () => this.decide(verdict)]));
  }
}

function describeCandidate(candidate) {
  if (candidate.missing) return "no prediction.";
  const masks = `${candidate.regions.length} ${candidate.regions.length === 1 ? "mask" : "masks"}.`;
  return candidate.answer ? `${candidate.answer.text} ${masks}` : masks;
}

openPage((session) => new JudgePage(session));

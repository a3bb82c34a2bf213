/** The review page: one sample at a time, decided by single keys; edits and decisions are never lost. */
import { ApiError } from "./api.js";
import { emptyBitmap, unite } from "./bitmap.js";
import { CanvasView } from "./canvas_view.js";
import { DecisionPage, openPage } from "./decision_page.js";
import { byId, el } from "./dom.js";
import { KeptEdits } from "./drafts.js";
import { applyEdit, EditState } from "./edit_state.js";
import { drawnRegion } from "./item_queue.js";
import { MaskEditor, TOOLS } from "./mask_editor.js";
import { drawOutside, drawRegions } from "./mask_layer.js";
import { colorOf } from "./palette.js";
import { askReason } from "./reject_dialog.js";
import { call, isOffline } from "./review_api.js";
import { ReviewPanel } from "./review_panel.js";
import { encodeRle } from "./rle.js";
import { makeUuid } from "./uuid.js";

const TOOL_KEYS = { brush: "B", eraser: "X", polygon: "P", fill: "G", refine: "C" };
const SAID = { accept: "Accepted.", fix: "Fix saved.", reject: "Rejected.", skip: "Skipped." };

class ReviewPage extends DecisionPage {
  constructor(session) {
    super(session, byId("canvas"));
    this.active = 0;
    this.pointed = null;
    this.kind = "visible";
    /** The question that is being added, and the one that was added last. */
    this.adding = null;
    this.lastAdded = null;
    this.additions = new KeptEdits(`maskwise-review-addition-${session.project.hash}-${session.reviewer}`);
    this.view = new CanvasView(byId("canvas"), (context, scale) => this.#draw(context, scale));
    this.views = [this.view];
    this.editor = new MaskEditor(this.view, {
      bitmap: () => this.#editedBitmap(),
      color: () => colorOf(this.active),
      commit: (bitmap) => this.#commitMask(encodeRle(bitmap)),
      say: (text) => this.say(text),
      refine: (clicks) => this.#refine(clicks),
      redraw: () => this.view.redraw(),
    });
    this.panel = new ReviewPanel(byId("sample"), {
      state: () => this.state,
      active: () => this.active,
      pick: (index) => this.pick(index),
      changed: () => this.changed(),
      repair: (index) => this.repair(index),
      point: (index) => this.#point(index),
      apply: (opinion) => this.#applyOpinion(opinion),
      adding: () => this.adding !== null,
      startAdding: () => this.startAdding(),
      saveAddition: () => this.saveAddition(),
      cancelAdding: () => this.cancelAdding(),
      reasonTitle: (code) => session.reasons.find((reason) => reason.code === code)?.title ?? code,
      emptyMask: () => encodeRle(emptyBitmap(this.item.image.width, this.item.image.height)),
    });
  }

  get state() {
    return this.adding ?? this.queue.state(this.item);
  }

  showItem(item) {
    this.adding = null;
    this.editor.choose(null);
    this.#showTools();
    this.active = 0;
    this.kind = item.mask_type === "amodal" ? "amodal" : "visible";
    this.panel.editing = null;
    this.panel.render();
    this.#showFix();
  }

  showImage(image, item) {
    if (!image) this.editor.choose(null);
    this.#showTools();
    this.view.show(image, item.image);
  }

  describe(item) {
    const targets = this.state.content.targets.length;
    return `Question: ${item.question} Mask type ${item.mask_type}, ${targets} ${targets === 1 ? "target" : "targets"}.`;
  }

  /** After a change of the sample: show it and keep it. */
  changed() {
    const { targets } = this.state.content;
    this.active = Math.min(this.active, Math.max(0, targets.length - 1));
    this.panel.render();
    this.#showFix();
    this.view.redraw();
    if (this.adding) return this.additions.save(this.item.item, { ...this.adding.content, id: this.adding.id });
    const edit = this.state.edit();
    if (edit) this.drafts.save(this.item.item, { verdict: "fix", edit });
    else if (this.drafts.find(this.item.item) || this.item.draft) this.drafts.discard(this.item.item);
  }

  /** Decide and go on at once; the decision is sent in the background. */
  decide(verdict, { reason = null, note = "" } = {}) {
    if (!this.item) return;
    document.activeElement?.blur?.();
    if (this.adding) return verdict === "fix" ? this.saveAddition() : this.say("You are adding a question: F saves it, Esc discards it.");
    const edit = this.state.edit();
    if (verdict === "accept" && edit) return this.say("You changed this sample. F saves the fix; Ctrl+Z takes a change back.");
    if (verdict === "fix" && !edit) return this.say("Nothing is changed yet. Edit the question (Q), the answer (W), the type (T) or a mask (B), then press F.");
    const decision = { verdict, note };
    if (reason) decision.reason = reason;
    if (verdict === "fix") decision.edit = edit;
    this.lastAdded = null;
    this.submit(decision, SAID[verdict]);
  }

  /** Begin a new question about this image, or go on with one that was begun. */
  startAdding() {
    if (!this.item || this.adding) return;
    const { item } = this;
    const blank = { ...item, question: "", answer: null, mask_type: "visible", targets: [], regions: [...item.targets, ...item.regions], opinions: [] };
    const begun = this.additions.find(item.item);
    this.adding = new EditState(blank, begun && { edit: begun });
    this.adding.id = begun?.id ?? null;
    this.active = 0;
    this.editor.choose(null);
    this.#showTools();
    this.#showFix();
    this.view.redraw();
    this.panel.edit("question");
  }

  cancelAdding() {
    this.additions.forget(this.item.item);
    this.#endAdding("Discarded.");
  }

  #endAdding(said) {
    this.showItem(this.item);
    this.view.redraw();
    this.say(said);
  }

  /** Send the new question. It stays as it is where that fails. */
  async saveAddition() {
    document.activeElement?.blur?.();
    const { item, adding } = this;
    const { question, answer, mask_type: type, targets } = adding.content;
    if (!question.trim()) return this.say("The new question has no words yet (Q).");
    try {
      // The same id until the server has answered, also after a reload: a repeated request adds nothing twice.
      adding.id ??= makeUuid();
      this.additions.save(item.item, { ...adding.content, id: adding.id });
      const added = await call("POST", "/additions", { id: adding.id, item: item.item, question, answer, mask_type: type, targets });
      this.additions.forget(item.item);
      this.lastAdded = added.item;
      if (this.adding === adding) this.#endAdding("Added. Somebody else will check it; U takes it back.");
    } catch (error) {
      if (!isOffline(error)) adding.id = null;
      this.say(isOffline(error) ? "There is no connection. The question is kept here; save it again later." : error.message);
    }
  }

  /** Take back what was added last, otherwise the latest decision. */
  async undo() {
    if (this.adding) return this.cancelAdding();
    if (this.lastAdded === null) return super.undo();
    try {
      await call("DELETE", `/additions/${this.lastAdded}`);
      this.say("The added question was taken back.");
    } catch (error) {
      this.say(error.message);
    }
    this.lastAdded = null;
  }

  async reject() {
    if (!this.item) return;
    if (this.adding) return this.decide("reject");
    const chosen = await askReason(this.session.reasons);
    if (chosen) this.decide("reject", chosen);
  }

  /** Undo an edit of this sample; without one, the latest decision. */
  undoEdit() {
    if (this.item && this.state.undo()) this.changed();
    else if (!this.adding) this.undo();
  }

  /** Choose the target that the tools change. */
  pick(index) {
    if (!this.item || index >= this.state.content.targets.length) return;
    this.active = index;
    this.editor.clear();
    this.panel.render();
    this.#showTools();
    this.view.redraw();
  }

  chooseTool(tool) {
    if (!this.item || !this.state.content.targets.length) return this.say("There is no target to paint. Add a region first.");
    if (tool === "refine" && !this.session.refine) return this.say("Click-to-refine needs a promptable model, which this server does not have.");
    this.editor.choose(this.editor.tool === tool ? null : tool);
    this.#showTools();
    if (this.editor.tool) byId("canvas").focus();
  }

  /** Switch between the visible and the amodal mask. */
  switchKind() {
    this.kind = this.kind === "visible" ? "amodal" : "visible";
    this.layers[this.kind] = true;
    this.editor.clear();
    this.#showTools();
    this.showLayers();
  }

  /** Visible outside amodal: what is seen belongs to the object, so the amodal mask grows. */
  repair(index = null) {
    const broken = (this.state?.content.targets ?? []).findIndex((target, at) => drawnRegion(target, at).bitmap("outside"));
    const at = index ?? broken;
    if (at < 0) return this.say("Every visible mask lies inside its amodal mask.");
    const region = drawnRegion(this.state.content.targets[at], at);
    this.state.changeTarget(at, { amodal: encodeRle(unite(region.bitmap("amodal"), region.bitmap("visible"))) });
    this.changed();
    this.say("Repaired: the amodal mask now contains the visible one.");
  }

  #draw(context, scale) {
    if (!this.item || this.hideAll) return;
    const regions = this.state.content.targets.map(drawnRegion);
    const strong = this.pointed !== null ? regions[this.pointed] : this.editor.tool ? regions[this.active] : null;
    drawRegions(context, regions, this.layers, scale, strong ?? null);
    drawOutside(context, regions);
    this.editor.draw(context, scale);
  }

  #editedBitmap() {
    const { width, height } = this.item.image;
    return drawnRegion(this.state.content.targets[this.active], this.active).bitmap(this.kind) ?? emptyBitmap(width, height);
  }

  #commitMask(rle) {
    this.state.changeTarget(this.active, { [this.kind]: rle });
    this.changed();
  }

  async #refine(clicks) {
    const item = this.item;
    try {
      const mask = this.state.content.targets[this.active][this.kind];
      const refined = await call("POST", "/refine", { item: item.item, mask, points: clicks });
      if (item === this.item) this.#commitMask(refined.mask);
    } catch (error) {
      if (error instanceof ApiError && error.status === 501) {
        this.session.refine = false;
        this.editor.choose(null);
        this.#showTools();
      }
      this.say(error.message);
    }
  }

  #applyOpinion(opinion) {
    this.state.change(applyEdit(this.item, this.state.original, opinion.edit));
    this.changed();
  }

  #point(index) {
    this.pointed = index;
    this.view.redraw();
  }

  #showFix() {
    document.body.classList.toggle("adding", this.adding !== null);
    byId("fix").classList.toggle("ready", Boolean(this.item && this.state.edit()));
  }

  #showTools() {
    for (const button of byId("tools").children) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === this.editor.tool));
      if (button.dataset.tool === "refine") button.disabled = !this.session.refine;
    }
    byId("tool-options").hidden = !this.editor.tool;
    byId("kind").replaceChildren(`Paints ${this.kind}`, " ", el("kbd", {}, "K"));
    byId("size").textContent = `${this.editor.size} px`;
  }

  /** Brush size. @param {number} factor */
  resizeBrush(factor) {
    this.editor.resize(factor);
    byId("size").textContent = `${this.editor.size} px`;
  }

  takesKey(event) {
    return this.editor.key(event);
  }

  bindings() {
    const bind = (group, keys, label, run) => ({ group, keys, label, run });
    const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(String);
    return [
      bind("Decide", ["a"], "Accept", () => this.decide("accept")),
      bind("Decide", ["f"], "Save the edits as a fix", () => this.decide("fix")),
      bind("Decide", ["r"], "Reject, with a reason", () => this.reject()),
      bind("Decide", ["s"], "Skip: later, or somebody else", () => this.decide("skip")),
      bind("Decide", ["u"], "Undo the latest decision", () => this.undo()),
      bind("Look", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "Move the image", (event) => movePage(this, event)),
      bind("Edit", ["q"], "Question", () => this.item && this.panel.edit("question")),
      bind("Edit", ["w"], "Answer", () => this.item && this.panel.edit("answer")),
      bind("Edit", ["t"], "Next mask type", () => this.item && this.panel.cycleType()),
      bind("Edit", digits, "Choose a target", (event) => this.pick(Number(event.key) - 1)),
      bind("Edit", ["d"], "Repair visible outside amodal", () => this.item && this.repair()),
      bind("Edit", ["n"], "Add a question about this image", () => this.startAdding()),
      bind("Edit", ["Ctrl+z"], "Undo an edit", () => this.undoEdit()),
      ...TOOLS.map((tool) => bind("Masks", [TOOL_KEYS[tool].toLowerCase()], TOOL_LABELS[tool], () => this.chooseTool(tool))),
      bind("Masks", ["["], "Smaller brush", () => this.resizeBrush(1 / 1.2)),
      bind("Masks", ["]"], "Larger brush", () => this.resizeBrush(1.2)),
      bind("Masks", ["k"], "Paint the other mask: visible or amodal", () => this.switchKind()),
      bind("Masks", ["Escape"], "Put the tool away; discard a question that is being added", () => this.#escape()),
    ];
  }

  #escape() {
    if (this.editor.tool) this.chooseTool(this.editor.tool);
    else if (this.adding) this.cancelAdding();
  }

  clicks() {
    return {
      accept: () => this.decide("accept"),
      fix: () => this.decide("fix"),
      reject: () => this.reject(),
      skip: () => this.decide("skip"),
      kind: () => this.switchKind(),
      "zoom-in": () => this.view.zoom(1.4),
      "zoom-out": () => this.view.zoom(1 / 1.4),
      "zoom-fit": () => this.view.fit(),
    };
  }
}

const TOOL_LABELS = {
  brush: "Brush (arrows and space work, too)",
  eraser: "Eraser",
  polygon: "Polygon: click corners, Enter closes, Shift removes",
  fill: "Fill a hole; Shift removes a piece",
  refine: "Click to refine; Shift for background",
};

/** Screen pixels that an arrow key moves the image. */
const STEP = 60;

function movePage(page, event) {
  const [right, down] = { ArrowLeft: [STEP, 0], ArrowRight: [-STEP, 0], ArrowUp: [0, STEP], ArrowDown: [0, -STEP] }[event.key];
  page.view.pan(right, down);
}

function addTools(page) {
  byId("tools").append(...TOOLS.map((tool) => el("button", { type: "button", "data-tool": tool, "data-short": tool[0].toUpperCase() + tool.slice(1), title: tool === "refine" && !page.session.refine ? "Needs a promptable model, which this server does not have" : TOOL_LABELS[tool], onclick: () => page.chooseTool(tool), "aria-pressed": "false" },
    el("span", {}, tool[0].toUpperCase() + tool.slice(1)), el("kbd", {}, TOOL_KEYS[tool]))));
}

openPage((session) => {
  const page = new ReviewPage(session);
  addTools(page);
  return page;
});

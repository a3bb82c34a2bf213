/** The review page: one sample at a time, decided by single keys; edits and decisions are never lost. */
import { ApiError } from "./api.js";
import { emptyBitmap, unite } from "./bitmap.js";
import { CanvasView } from "./canvas_view.js";
import { announce, byId, el } from "./dom.js";
import { Drafts } from "./drafts.js";
import { applyEdit } from "./edit_state.js";
import { drawnRegion, ItemQueue } from "./item_queue.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { MaskEditor, TOOLS } from "./mask_editor.js";
import { drawOutside, drawRegions } from "./mask_layer.js";
import { Outbox } from "./outbox.js";
import { colorOf } from "./palette.js";
import { askReason } from "./reject_dialog.js";
import { call, isOffline, openReview } from "./review_api.js";
import { ReviewPanel } from "./review_panel.js";
import { encodeRle } from "./rle.js";
import { makeUuid } from "./uuid.js";

/** Items leased at a time: the one on the screen and four that are prepared. */
const HELD = 5;
const TOOL_KEYS = { brush: "B", eraser: "X", polygon: "P", fill: "G", refine: "C" };

class ReviewPage {
  constructor(session) {
    this.session = session;
    const key = `${session.project.hash}-${session.reviewer}`;
    this.layers = { visible: true, amodal: true, occluded: true };
    this.hideAll = false;
    this.active = 0;
    this.pointed = null;
    this.kind = "visible";
    this.decided = new Map();
    this.progress = { decided: 0, open: 0 };
    this.drafts = new Drafts(key, (state) => this.#showStatus(state));
    this.queue = new ItemQueue(key, this.drafts);
    this.outbox = new Outbox(key, {
      sent: (decision, response) => this.#sent(response),
      refused: (decision, error) => this.#refused(decision, error),
      changed: () => {
        this.#showStatus();
        this.#showProgress();
      },
    });
    this.view = new CanvasView(byId("canvas"), (context, scale) => this.#draw(context, scale));
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
      reasonTitle: (code) => session.reasons.find((reason) => reason.code === code)?.title ?? code,
      emptyMask: () => encodeRle(emptyBitmap(this.item.image.width, this.item.image.height)),
    });
  }

  get item() {
    return this.queue.first;
  }

  get state() {
    return this.queue.state(this.item);
  }

  /** Begin: send what an earlier visit left, then ask for items. */
  async start() {
    this.queue.restore();
    if (this.item) await this.show();
    this.outbox.flush();
    await this.fetchItems();
    setInterval(() => this.#renewLeases(), (this.session.lease_seconds * 1000) / 3);
  }

  async fetchItems() {
    try {
      const first = this.item?.item;
      const response = await call("POST", "/queue", { count: HELD });
      const held = new Set(response.items.map((item) => item.item));
      for (const item of [...this.queue.items]) if (!held.has(item.item) && item.item !== first) this.queue.remove(item.item);
      this.#take(response);
      if (this.item?.item !== first || first === undefined) await this.show();
    } catch (error) {
      if (!this.item) this.#showNothing(isOffline(error) ? "There is no connection. The page tries again." : error.message);
      if (isOffline(error)) setTimeout(() => this.fetchItems(), 3000);
    }
  }

  #take({ items, progress }) {
    this.queue.add(items ?? [], (item) => this.outbox.has(item) || this.decided.get(item) === "sent");
    if (progress) this.progress = progress;
    this.#showProgress();
  }

  /** Show the first item of the queue. */
  async show() {
    const started = performance.now();
    const item = this.item;
    this.editor.choose(null);
    this.#showTools();
    for (const button of byId("decide").children) button.disabled = !item && button.id !== "undo";
    if (!item) return this.#showNothing();
    this.active = 0;
    this.begun = performance.now();
    this.kind = item.mask_type === "amodal" ? "amodal" : "visible";
    this.panel.editing = null;
    this.panel.render();
    this.#showFix();
    try {
      const image = await this.queue.image(item);
      if (item !== this.item) return;
      this.view.show(image, item.image);
      byId("canvas").dataset.item = item.item;
      performance.measure("next-sample", { start: started, end: performance.now() });
    } catch (error) {
      this.view.show(null, item.image);
      this.say(error.message);
    }
    const targets = this.state.content.targets.length;
    announce(`Question: ${item.question} Mask type ${item.mask_type}, ${targets} ${targets === 1 ? "target" : "targets"}.`);
  }

  /** After a change of the sample: show it and keep it. */
  changed() {
    const { targets } = this.state.content;
    this.active = Math.min(this.active, Math.max(0, targets.length - 1));
    this.panel.render();
    this.#showFix();
    this.view.redraw();
    const edit = this.state.edit();
    if (edit) this.drafts.save(this.item.item, { verdict: "fix", edit });
    else if (this.drafts.find(this.item.item) || this.item.draft) this.drafts.discard(this.item.item);
  }

  /** Decide and go on at once; the decision is sent in the background. */
  decide(verdict, { reason = null, note = "" } = {}) {
    if (!this.item) return;
    document.activeElement?.blur?.();
    const edit = this.state.edit();
    if (verdict === "accept" && edit) return this.say("You changed this sample. F saves the fix; Ctrl+Z takes a change back.");
    if (verdict === "fix" && !edit) return this.say("Nothing is changed yet. Edit the question (Q), the answer (W), the type (T) or a mask (B), then press F.");
    const item = this.item;
    const decision = { id: makeUuid(), item: item.item, verdict, note, seconds: Math.min(86400, (performance.now() - this.begun) / 1000), next: HELD };
    if (reason) decision.reason = reason;
    if (verdict === "fix") decision.edit = edit;
    this.decided.set(item.item, "sent");
    this.lastDecided = { item, decision };
    this.drafts.forget(item.item);
    this.queue.remove(item.item);
    announce({ accept: "Accepted.", fix: "Fix saved.", reject: "Rejected.", skip: "Skipped." }[verdict]);
    this.outbox.add(decision);
    this.show();
  }

  async reject() {
    if (!this.item) return;
    const chosen = await askReason(this.session.reasons);
    if (chosen) this.decide("reject", chosen);
  }

  /** Take back the latest decision, again and again. */
  async undo() {
    const unsent = this.lastDecided && this.outbox.decisions.at(-1)?.id === this.lastDecided.decision.id ? this.outbox.takeBack() : null;
    if (unsent) {
      const { item, decision } = this.lastDecided;
      this.lastDecided = null;
      return this.#putBack({ ...item, draft: decision.edit ? { edit: decision.edit } : null });
    }
    try {
      await this.outbox.flush();
      const { item, progress } = await call("POST", "/undo", { id: makeUuid() });
      this.progress = progress;
      await this.#putBack(item);
    } catch (error) {
      this.say(isOffline(error) ? "Undo needs a connection." : error.message);
    }
  }

  async #putBack(item) {
    this.decided.delete(item.item);
    this.queue.putFirst(item);
    this.#showProgress();
    await this.show();
    this.say("Undone. Decide again.");
  }

  /** Undo an edit of this sample; without one, the latest decision. */
  undoEdit() {
    if (this.item && this.state.undo()) this.changed();
    else this.undo();
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
    this.#showLayers();
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

  toggleLayer(kind) {
    this.layers[kind] = !this.layers[kind];
    this.#showLayers();
  }

  hide(hidden) {
    this.hideAll = hidden;
    this.view.redraw();
  }

  /** Say something above the image for a few seconds. */
  say(text) {
    byId("message").textContent = text;
    byId("message").hidden = false;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => (byId("message").hidden = true), 5000);
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

  #sent(response) {
    this.#take(response);
    if (!this.shownItem()) this.show();
  }

  /** Whether an item is on the screen. */
  shownItem() {
    return byId("canvas").dataset.item !== "" && byId("canvas").dataset.item !== undefined;
  }

  #refused(decision, error) {
    this.decided.delete(decision.item);
    this.say(`A decision was not taken: ${error.message}`);
    this.fetchItems();
  }

  async #renewLeases() {
    const renew = this.queue.items.map((item) => item.item);
    if (!renew.length) return this.fetchItems();
    try {
      const { lost } = await call("POST", "/leases", { renew });
      for (const item of lost) if (item !== this.item?.item) this.queue.remove(item);
    } catch {
      // The next renewal, or the decision itself, will tell.
    }
  }

  #showNothing(problem = null) {
    const owner = this.session.role === "owner";
    // The reply to a decision brings the next samples.
    const text = problem ?? (this.outbox.decisions.length ? "Your decisions are being saved; the next samples come then." : null);
    byId("canvas").dataset.item = "";
    this.view.show(null, { width: 1, height: 1 });
    byId("sample").replaceChildren(el("div", { class: "done" }, el("h1", {}, text ? "Waiting" : owner ? "No sample is in dispute" : "All done"),
      el("p", { class: "soft" }, text ?? (owner ? "The owner decides only where reviewers disagree." : "Nothing is left for you at the moment.")),
      owner ? el("p", {}, el("a", { href: "/review/owner" }, "Open the overview")) : null,
      el("p", {}, el("button", { type: "button", onclick: () => this.fetchItems() }, "Look again"))));
  }

  /** What the server has counted, and the decisions on their way to it; a skip decides nothing. */
  #showProgress() {
    const waiting = this.outbox.decisions.filter((decision) => decision.verdict !== "skip").length;
    const decided = this.progress.decided + waiting;
    const open = Math.max(0, this.progress.open - waiting);
    byId("progress").textContent = `${decided.toLocaleString()} decided · ${open.toLocaleString()} open`;
    byId("bar").style.width = `${(100 * decided) / Math.max(1, decided + open)}%`;
  }

  #showStatus(draft = "saved") {
    const waiting = this.outbox?.decisions.length ?? 0;
    const offline = this.outbox?.offline;
    const status = byId("status");
    status.className = `status ${waiting && offline ? "waiting" : waiting || draft === "saving" ? "saving" : draft === "local" ? "waiting" : ""}`;
    if (waiting && offline) status.textContent = `Offline: ${waiting} decision${waiting === 1 ? "" : "s"} kept here`;
    else if (draft === "local") status.textContent = "Edits kept in this browser";
    else status.textContent = waiting || draft === "saving" ? "Saving …" : "All saved";
  }

  #showFix() {
    byId("fix").classList.toggle("ready", Boolean(this.item && this.state.edit()));
  }

  #showLayers() {
    for (const input of byId("layers").querySelectorAll("input")) input.checked = this.layers[input.value];
    this.view.redraw();
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
}

function makeBindings(page, help) {
  const bind = (group, keys, label, run, release) => ({ group, keys, label, run, release });
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(String);
  return [
    bind("Decide", ["a"], "Accept", () => page.decide("accept")),
    bind("Decide", ["f"], "Save the edits as a fix", () => page.decide("fix")),
    bind("Decide", ["r"], "Reject, with a reason", () => page.reject()),
    bind("Decide", ["s"], "Skip: later, or somebody else", () => page.decide("skip")),
    bind("Decide", ["u"], "Undo the latest decision", () => page.undo()),
    bind("Look", ["h", " "], "Hide all masks while held", () => page.hide(true), () => page.hide(false)),
    bind("Look", ["v"], "Visible masks on or off", () => page.toggleLayer("visible")),
    bind("Look", ["m"], "Amodal masks on or off", () => page.toggleLayer("amodal")),
    bind("Look", ["o"], "Occluded parts on or off", () => page.toggleLayer("occluded")),
    bind("Look", ["+", "="], "Zoom in", () => page.view.zoom(1.25)),
    bind("Look", ["-"], "Zoom out", () => page.view.zoom(0.8)),
    bind("Look", ["0"], "Fit the image", () => page.view.fit()),
    bind("Look", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "Move the image", (event) => movePage(page, event)),
    bind("Edit", ["q"], "Question", () => page.item && page.panel.edit("question")),
    bind("Edit", ["w"], "Answer", () => page.item && page.panel.edit("answer")),
    bind("Edit", ["t"], "Next mask type", () => page.item && page.panel.cycleType()),
    bind("Edit", digits, "Choose a target", (event) => page.pick(Number(event.key) - 1)),
    bind("Edit", ["d"], "Repair visible outside amodal", () => page.item && page.repair()),
    bind("Edit", ["Ctrl+z"], "Undo an edit", () => page.undoEdit()),
    ...TOOLS.map((tool) => bind("Masks", [TOOL_KEYS[tool].toLowerCase()], TOOL_LABELS[tool], () => page.chooseTool(tool))),
    bind("Masks", ["["], "Smaller brush", () => page.resizeBrush(1 / 1.2)),
    bind("Masks", ["]"], "Larger brush", () => page.resizeBrush(1.2)),
    bind("Masks", ["k"], "Paint the other mask: visible or amodal", () => page.switchKind()),
    bind("Masks", ["Escape"], "Put the tool away", () => page.chooseTool(page.editor.tool)),
    bind("Help", ["?"], "This list", () => help().showModal()),
  ];
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

function addButtons(page, showHelp) {
  byId("tools").append(...TOOLS.map((tool) => el("button", { type: "button", "data-tool": tool, "data-short": tool[0].toUpperCase() + tool.slice(1), title: tool === "refine" && !page.session.refine ? "Needs a promptable model, which this server does not have" : TOOL_LABELS[tool], onclick: () => page.chooseTool(tool), "aria-pressed": "false" },
    el("span", {}, tool[0].toUpperCase() + tool.slice(1)), el("kbd", {}, TOOL_KEYS[tool]))));
  const clicks = {
    accept: () => page.decide("accept"),
    fix: () => page.decide("fix"),
    reject: () => page.reject(),
    skip: () => page.decide("skip"),
    undo: () => page.undo(),
    kind: () => page.switchKind(),
    "zoom-in": () => page.view.zoom(1.4),
    "zoom-out": () => page.view.zoom(1 / 1.4),
    "zoom-fit": () => page.view.fit(),
    help: showHelp,
  };
  for (const [id, run] of Object.entries(clicks)) byId(id).addEventListener("click", run);
  byId("layers").addEventListener("change", (event) => page.toggleLayer(event.target.value));
}

async function start() {
  if ("serviceWorker" in navigator) navigator.serviceWorker.register("/review-worker.js", { scope: "/review" }).catch(() => {});
  const { session, byLink } = await openReview();
  if (byLink && session.role === "owner") return location.replace("/review/owner");
  const page = new ReviewPage(session);
  byId("project").textContent = session.project.name;
  byId("reviewer").textContent = session.reviewer;
  byId("owner-link").hidden = session.role !== "owner";
  let dialog = null;
  const help = () => (dialog ??= helpDialog(bindings));
  const bindings = makeBindings(page, help);
  addButtons(page, () => help().showModal());
  listenToKeys(bindings, (event) => page.editor.key(event));
  await page.start();
}

start().catch((error) => {
  const unknown = error instanceof ApiError && error.status === 401;
  byId("sample").replaceChildren(el("div", { class: "done" }, el("h1", {}, unknown ? "Open your personal link" : "The review cannot be opened"),
    el("p", { class: "soft" }, unknown ? "The link that the owner of this review sent you signs you in." : error.message)));
});

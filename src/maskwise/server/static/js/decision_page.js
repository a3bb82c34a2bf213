/**
 * A page on which one item after another is decided. Decisions are shown at once and sent in the background; they, and
 * the items that the page holds, survive a reload. A page of its own kind says how an item is shown.
 */
import { ApiError } from "./api.js";
import { announce, byId, el } from "./dom.js";
import { Drafts } from "./drafts.js";
import { ItemQueue } from "./item_queue.js";
import { helpDialog, listenToKeys } from "./keys.js";
import { Outbox } from "./outbox.js";
import { call, isOffline, openReview } from "./review_api.js";
import { makeUuid } from "./uuid.js";

/** Items leased at a time: the one on the screen and four that are prepared. */
const HELD = 5;
/** The end of the path of the page for judging. */
const JUDGE = "/judge";

export class DecisionPage {
  /** @param {any} session @param {HTMLElement} place whose data-item names the item on the screen */
  constructor(session, place) {
    this.session = session;
    this.place = place;
    /** @type {import("./canvas_view.js").CanvasView[]} */
    this.views = [];
    this.layers = { visible: true, amodal: true, occluded: true };
    this.hideAll = false;
    const key = `${session.project.hash}-${session.reviewer}`;
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
  }

  get item() {
    return this.queue.first;
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

  /** Show the first item of the queue, by the `showItem` of the page. */
  async show() {
    const started = performance.now();
    const item = this.item;
    for (const button of byId("decide").children) button.disabled = !item && button.id !== "undo";
    if (!item) return this.#showNothing();
    this.begun = performance.now();
    this.showItem(item);
    try {
      const image = await this.queue.image(item);
      if (item !== this.item) return;
      this.showImage(image, item);
      this.place.dataset.item = item.item;
      performance.measure("next-sample", { start: started, end: performance.now() });
    } catch (error) {
      this.showImage(null, item);
      this.say(error.message);
    }
    announce(this.describe(item));
  }

  /** Decide about the item and go on at once. @param {any} verdict with what belongs to it @param {string} said to screen readers */
  submit(verdict, said) {
    const item = this.item;
    const decision = { id: makeUuid(), item: item.item, seconds: Math.min(86400, (performance.now() - this.begun) / 1000), next: HELD, ...verdict };
    this.decided.set(item.item, "sent");
    this.lastDecided = { item, decision };
    this.drafts.forget(item.item);
    this.queue.remove(item.item);
    announce(said);
    this.outbox.add(decision);
    this.show();
  }

  /** Take back the latest decision, again and again. */
  async undo() {
    const unsent = this.lastDecided && this.outbox.decisions.at(-1)?.id === this.lastDecided.decision.id ? this.outbox.takeBack() : null;
    if (unsent) {
      const { item, decision } = this.lastDecided;
      const { edit, ratings, criteria, note } = decision;
      this.lastDecided = null;
      return this.#putBack({ ...item, draft: { edit, ratings, criteria, note } });
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

  /** Say something above the image for a few seconds. */
  say(text) {
    byId("message").textContent = text;
    byId("message").hidden = false;
    clearTimeout(this.saying);
    this.saying = setTimeout(() => (byId("message").hidden = true), 5000);
  }

  toggleLayer(kind) {
    this.layers[kind] = !this.layers[kind];
    this.showLayers();
  }

  showLayers() {
    for (const input of byId("layers").querySelectorAll("input")) input.checked = this.layers[input.value];
    this.redraw();
  }

  hide(hidden) {
    this.hideAll = hidden;
    this.redraw();
  }

  redraw() {
    for (const view of this.views) view.redraw();
  }

  #sent(response) {
    this.#take(response);
    if (!this.place.dataset.item) this.show();
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
    // The reply to a decision brings the next samples.
    const text = problem ?? (this.outbox.decisions.length ? "Your decisions are being saved; the next samples come then." : null);
    const adjudicates = this.session.role === "owner" && this.session.mode === "check";
    const [title, reason] = adjudicates
      ? ["No sample is in dispute", "The owner decides only where reviewers disagree."]
      : ["All done", "Nothing is left for you at the moment."];
    this.place.dataset.item = "";
    this.showImage(null, { image: { width: 1, height: 1 } });
    byId("sample").replaceChildren(el("div", { class: "done" }, el("h1", {}, text ? "Waiting" : title),
      el("p", { class: "soft" }, text ?? reason),
      this.session.role === "owner" ? el("p", {}, el("a", { href: "/review/owner" }, "Open the overview")) : null,
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
}

/**
 * Sign in and open the page of this review, which is another one where predictions are judged.
 * @param {(session: any) => DecisionPage & {bindings: () => import("./keys.js").Binding[], clicks: () => Record<string, () => void>, takesKey?: (event: KeyboardEvent) => boolean}} make
 */
export async function openPage(make) {
  try {
    if ("serviceWorker" in navigator) navigator.serviceWorker.register("/review-worker.js", { scope: "/review" }).catch(() => {});
    const { session, byLink } = await openReview();
    if (byLink && session.role === "owner") return location.replace("/review/owner");
    const judging = session.mode !== "check";
    if (judging !== location.pathname.endsWith(JUDGE)) return location.replace(judging ? `/review${JUDGE}` : "/review");
    const page = make(session);
    byId("project").textContent = session.project.name;
    byId("reviewer").textContent = session.reviewer;
    byId("owner-link").hidden = session.role !== "owner";
    let dialog = null;
    const showHelp = () => (dialog ??= helpDialog(bindings)).showModal();
    const bindings = [...page.bindings(), ...lookBindings(page), { group: "Help", keys: ["?"], label: "This list", run: showHelp }];
    const clicks = { ...page.clicks(), undo: () => page.undo(), help: showHelp };
    for (const [id, run] of Object.entries(clicks)) byId(id).addEventListener("click", run);
    byId("layers").addEventListener("change", (event) => page.toggleLayer(event.target.value));
    listenToKeys(bindings, (event) => page.takesKey?.(event) ?? false);
    await page.start();
  } catch (error) {
    const unknown = error instanceof ApiError && error.status === 401;
    byId("sample").replaceChildren(el("div", { class: "done" }, el("h1", {}, unknown ? "Open your personal link" : "The review cannot be opened"),
      el("p", { class: "soft" }, unknown ? "The link that the owner of this review sent you signs you in." : error.message)));
  }
}

function lookBindings(page) {
  const bind = (keys, label, run, release) => ({ group: "Look", keys, label, run, release });
  return [
    bind(["h", " "], "Hide all masks while held", () => page.hide(true), () => page.hide(false)),
    bind(["v"], "Visible masks on or off", () => page.toggleLayer("visible")),
    bind(["m"], "Amodal masks on or off", () => page.toggleLayer("amodal")),
    bind(["o"], "Occluded parts on or off", () => page.toggleLayer("occluded")),
    bind(["+", "="], "Zoom in", () => page.views.forEach((view) => view.zoom(1.25))),
    bind(["-"], "Zoom out", () => page.views.forEach((view) => view.zoom(0.8))),
    bind(["0"], "Fit the image", () => page.views.forEach((view) => view.fit())),
  ];
}

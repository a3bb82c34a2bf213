/** Edits that are not decided yet: kept in the browser at once and on the server shortly after. */
import { call, isOffline } from "./review_api.js";

/** A pause in typing or painting. */
const DELAY_MS = 700;

/** What belongs to an item, kept in the browser. */
export class KeptEdits {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
  }

  find(item) {
    return JSON.parse(localStorage.getItem(`${this.key}-${item}`) ?? "null");
  }

  save(item, content) {
    try {
      localStorage.setItem(`${this.key}-${item}`, JSON.stringify(content));
    } catch {
      // The browser's store is full: it stays on the page, and the server has the drafts of decisions.
    }
  }

  forget(item) {
    localStorage.removeItem(`${this.key}-${item}`);
  }
}

export class Drafts extends KeptEdits {
  /** @param {string} key of the project and reviewer @param {(state: "saving" | "saved" | "local") => void} changed */
  constructor(key, changed) {
    super(`maskwise-review-draft-${key}`);
    this.changed = changed;
    this.timers = new Map();
  }

  /** Keep a draft, and send it when nothing changes for a moment. */
  save(item, draft) {
    super.save(item, draft);
    clearTimeout(this.timers.get(item));
    this.changed("saving");
    this.timers.set(item, setTimeout(() => this.#send(item, draft), DELAY_MS));
  }

  /** Forget the draft of an item that is decided; the server does so by itself. */
  forget(item) {
    clearTimeout(this.timers.get(item));
    this.timers.delete(item);
    super.forget(item);
  }

  /** Discard a draft everywhere. */
  async discard(item) {
    this.forget(item);
    try {
      await call("DELETE", `/items/${item}/draft`);
      this.changed("saved");
    } catch {
      this.changed("local");
    }
  }

  async #send(item, draft) {
    const sent = this.timers.get(item);
    try {
      await call("PUT", `/items/${item}/draft`, draft);
      this.changed("saved");
    } catch (error) {
      // A draft that was forgotten or replaced meanwhile is of no interest any more.
      if (this.timers.get(item) !== sent) return;
      this.changed("local");
      if (isOffline(error)) this.timers.set(item, setTimeout(() => this.#send(item, draft), 5 * DELAY_MS));
    }
  }
}

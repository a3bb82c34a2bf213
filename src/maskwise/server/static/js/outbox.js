/**
 * Decisions on their way to the server. They are kept in the browser until the server has confirmed them, so neither a
 * lost connection nor a closed tab loses one; each has a UUID, so sending it twice decides once. Each is stored by
 * itself, so that two tabs of one reviewer do not overwrite each other's.
 *
 * @typedef {{id: string, item: number, verdict: string}} Decision
 */
import { call, isOffline } from "./review_api.js";

/** Waiting times after each failure in a row: short for a hiccup, gentle to a server that is down. */
const RETRY_MS = [500, 1000, 2000, 4000, 8000];

export class Outbox {
  /**
   * @param {string} key of the project and reviewer
   * @param {{sent: (decision: Decision, response: any) => void, refused: (decision: Decision, error: Error) => void, changed: () => void}} page
   */
  constructor(key, page) {
    this.key = `maskwise-review-outbox-${key}`;
    this.page = page;
    this.failures = 0;
    this.sending = null;
    /** @type {Decision[]} */
    this.decisions = this.#stored();
    addEventListener("online", () => this.flush());
  }

  /** Whether the last attempt found no connection. */
  get offline() {
    return this.failures > 0;
  }

  /** @param {number} item */
  has(item) {
    return this.decisions.some((decision) => decision.item === item);
  }

  /** @param {Decision} decision */
  add(decision) {
    this.decisions.push(decision);
    try {
      localStorage.setItem(`${this.key}-${decision.id}`, JSON.stringify({ at: Date.now(), decision }));
    } catch {
      // The browser's store is full: the decision stays in memory until it is sent.
    }
    this.page.changed();
    this.flush();
  }

  /** Take back the latest decision that was not sent yet. @returns {Decision | null} */
  takeBack() {
    const last = this.decisions.at(-1);
    if (!last || last.id === this.sending) return null;
    this.#forget(last);
    return last;
  }

  /** Send everything, in order. @returns {Promise<void>} */
  flush() {
    clearTimeout(this.timer);
    if (this.sending) return this.flushed;
    this.flushed = this.#send();
    return this.flushed;
  }

  async #send() {
    while (this.decisions.length) {
      const decision = this.decisions[0];
      this.sending = decision.id;
      try {
        const response = await call("POST", "/decisions", decision);
        this.#done(decision);
        this.page.sent(decision, response);
      } catch (error) {
        if (isOffline(error)) return this.#later();
        this.#done(decision);
        this.page.refused(decision, error);
      }
    }
    this.page.changed();
  }

  #done(decision) {
    this.failures = 0;
    this.sending = null;
    this.#forget(decision);
  }

  #later() {
    this.sending = null;
    this.timer = setTimeout(() => this.flush(), RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]);
    this.failures++;
    this.page.changed();
  }

  #forget(decision) {
    this.decisions = this.decisions.filter((kept) => kept.id !== decision.id);
    localStorage.removeItem(`${this.key}-${decision.id}`);
    this.page.changed();
  }

  /** What earlier visits left, oldest first. @returns {Decision[]} */
  #stored() {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(`${this.key}-`));
    const entries = keys.map((key) => JSON.parse(localStorage.getItem(key)));
    return entries.sort((a, b) => a.at - b.at).map(({ decision }) => decision);
  }
}

/**
 * Decisions on their way to the server. They are kept in the browser until the server has confirmed them, so neither a
 * lost connection nor a closed tab loses one; each has a UUID, so sending it twice decides once.
 *
 * @typedef {{id: string, item: number, verdict: string}} Decision
 */
import { call, isOffline } from "./review_api.js";

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
    this.decisions = JSON.parse(localStorage.getItem(this.key) ?? "[]");
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
    this.#store();
    this.flush();
  }

  /** Take back the latest decision that was not sent yet. @returns {Decision | null} */
  takeBack() {
    const last = this.decisions.at(-1);
    if (!last || last.id === this.sending) return null;
    this.decisions.pop();
    this.#store();
    return last;
  }

  /** Send everything, in order. */
  async flush() {
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
    this.decisions = this.decisions.filter((one) => one.id !== decision.id);
    this.#store();
  }

  #later() {
    this.sending = null;
    this.timer = setTimeout(() => this.flush(), RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]);
    this.failures++;
    this.page.changed();
  }

  #store() {
    localStorage.setItem(this.key, JSON.stringify(this.decisions));
    this.page.changed();
  }
}

/** Choose why a sample is rejected: one key per reason. */
import { el } from "./dom.js";

const KEYS = "1234567890bcdefghijklmnopqrstuvwxyz";
const LAST = "other";

/** Reasons of people come first and end with LAST; those of the builder's filters follow. @param {{code: string, title: string}[]} reasons @returns {Promise<{reason: string, note: string} | null>} */
export function askReason(reasons) {
  return new Promise((resolve) => {
    let chosen = null;
    const note = el("input", { type: "text", id: "reject-note", maxLength: 2000 });
    const choose = (reason) => {
      chosen = { reason: reason.code, note: note.value.trim() };
      dialog.close();
    };
    const own = reasons.findIndex((reason) => reason.code === LAST) + 1 || reasons.length;
    const button = (reason, index) =>
      el("li", {}, el("button", { type: "button", "data-reason": reason.code, onclick: () => choose(reason) },
        index < own && KEYS[index] ? el("kbd", {}, KEYS[index].toUpperCase()) : null, reason.title));
    const more = reasons.length > own
      ? el("details", {}, el("summary", {}, `Reasons of the filters (${reasons.length - own})`), el("ul", { class: "reasons" }, reasons.slice(own).map((reason) => button(reason, own))))
      : null;
    const dialog = el("dialog", { class: "reject-dialog", "aria-labelledby": "reject-title" },
      el("h2", { id: "reject-title" }, "Why is this sample rejected?"),
      el("ul", { class: "reasons" }, reasons.slice(0, own).map(button)), more,
      el("label", { for: "reject-note" }, "Note (optional)"), note,
      el("div", { class: "buttons" }, el("button", { type: "button", onclick: () => dialog.close() }, "Cancel ", el("kbd", {}, "Esc"))));
    dialog.addEventListener("keydown", (event) => {
      if (event.target === note || event.ctrlKey || event.metaKey || event.altKey) return;
      const reason = reasons.slice(0, own)[KEYS.indexOf(event.key.toLowerCase())];
      if (!reason || event.key.length !== 1) return;
      event.preventDefault();
      // The dialog is closed when the page hears of the key, which must not act twice.
      event.stopPropagation();
      choose(reason);
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(chosen);
    });
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("button").focus();
  });
}

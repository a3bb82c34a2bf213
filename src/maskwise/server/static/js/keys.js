/**
 * Keys and what they do: one table for the page and for its help.
 *
 * @typedef {{keys: string[], label: string, group: string, run: (event: KeyboardEvent) => void, release?: () => void}} Binding
 */
import { el } from "./dom.js";

const NAMES = { " ": "Space", Escape: "Esc", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", "Ctrl+z": "Ctrl+Z" };
/** More keys than this are shown as a range, as 1 – 9. */
const MANY = 4;

/** What help shows for the keys of a binding: all of a few, first and last of many. */
const shownKeys = (keys) => (keys.length > MANY ? [keys[0], "–", keys.at(-1)] : keys);

/** Whether keys belong to what has the focus: a text field, a list. */
const isTyping = (target) => target.matches?.("input:not([type=checkbox]):not([type=radio]), textarea, select") ?? false;

/** Listen to keys. @param {Binding[]} bindings @param {(event: KeyboardEvent) => boolean} first gets keys before the table */
export function listenToKeys(bindings, first) {
  addEventListener("keydown", (event) => {
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    if (!event.ctrlKey && !event.metaKey && !event.altKey && first(event)) {
      event.preventDefault();
      return;
    }
    const name = (event.ctrlKey || event.metaKey ? "Ctrl+" : "") + (event.key.length === 1 ? event.key.toLowerCase() : event.key);
    const chosen = bindings.find((binding) => binding.keys.includes(name));
    if (!chosen || event.altKey) return;
    // A focused button keeps the keys that press it.
    if (event.target.matches?.("button, a, summary") && (event.key === " " || event.key === "Enter")) return;
    event.preventDefault();
    // Keys that act while they are held repeat; their action does not.
    if (!event.repeat || !chosen.release) chosen.run(event);
  });
  addEventListener("keyup", (event) => bindings.find((binding) => binding.release && binding.keys.includes(event.key.toLowerCase()))?.release());
  addEventListener("blur", () => bindings.forEach((binding) => binding.release?.()));
}

/** A dialog that lists the keys. @param {Binding[]} bindings */
export function helpDialog(bindings) {
  const groups = [...new Set(bindings.map((binding) => binding.group))];
  const dialog = el("dialog", { class: "help", "aria-labelledby": "help-title" },
    el("h2", { id: "help-title" }, "Keys"),
    el("div", { class: "help-groups" }, groups.map((group) => el("section", {}, el("h3", {}, group),
      el("dl", {}, bindings.filter((binding) => binding.group === group).map((binding) => [
        el("dt", {}, shownKeys(binding.keys).map((key) => (key === "–" ? " – " : el("kbd", {}, NAMES[key] ?? key.toUpperCase())))),
        el("dd", {}, binding.label),
      ]).flat())))),
    el("div", { class: "buttons" }, el("button", { type: "button", class: "primary", autofocus: true, onclick: () => dialog.close() }, "Close")));
  document.body.append(dialog);
  return dialog;
}

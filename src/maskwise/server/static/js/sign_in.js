/** A dialog that asks for the token of a server that others can reach. */
import { onTokenNeeded } from "./api.js";
import { el } from "./dom.js";

let waiting = null;

/** Ask for the token whenever the server wants one. */
export const useSignIn = () => onTokenNeeded(() => (waiting ??= askToken().finally(() => (waiting = null))));

function askToken() {
  return new Promise((resolve) => {
    const input = el("input", { type: "password", id: "token", autocomplete: "current-password", required: true });
    const dialog = el("dialog", { class: "sign-in", "aria-labelledby": "sign-in-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "sign-in-title" }, "Sign in"),
        el("p", {}, "This server needs a token. The person who started it has it; a personal link contains it."),
        el("label", { for: "token" }, "Token"),
        input,
        el("div", { class: "buttons" }, el("button", { class: "primary", type: "submit" }, "Sign in"))));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(input.value.trim() || null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

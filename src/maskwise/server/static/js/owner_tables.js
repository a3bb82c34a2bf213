/** Tables and numbers of the owner's page. */
import { el } from "./dom.js";

/** Two decimals, or a dash. */
export const number = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));

/** @param {string[]} heads @param {(string | number)[][]} rows */
export function table(heads, rows) {
  return el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((cells) => el("tr", {}, cells.map((cell) => el("td", {}, typeof cell === "number" ? cell.toLocaleString() : cell)))))));
}

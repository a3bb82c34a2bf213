/**
 * Questions with the words marked that decide about the mask type.
 *
 * @typedef {{start: number, end: number, text: string, kind: string, polarity: string}} Cue  positions in characters, not UTF-16 units
 */
import { el } from "./dom.js";

const MEANINGS = {
  amodal: "asks for the amodal mask",
  visible: "asks for the visible mask",
  none: "does not ask for the hidden part",
};

/** A question as elements. @param {string} question @param {Cue[]} cues in the order of the question, without overlap */
export function cueElements(question, cues) {
  const characters = Array.from(question);
  const elements = [];
  let end = 0;
  for (const cue of cues) {
    elements.push(characters.slice(end, cue.start).join(""));
    elements.push(el("span", { class: `cue ${cue.polarity}`, title: `${cue.kind}: ${MEANINGS[cue.polarity]}` }, characters.slice(cue.start, cue.end).join("")));
    end = cue.end;
  }
  elements.push(characters.slice(end).join(""));
  return elements;
}

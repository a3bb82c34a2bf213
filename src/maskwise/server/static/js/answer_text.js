/**
 * Answers in words, each phrase in the color of its mask.
 *
 * @typedef {{start: number, stop: number, regions: number[]}} Phrase  positions in characters, not UTF-16 units
 */
import { el } from "./dom.js";
import { colorOf } from "./palette.js";

/**
 * The parts of an answer. Of overlapping phrases the first one counts.
 * @param {{text: string, phrases?: Phrase[]}} answer @returns {{text: string, regions: number[]}[]}
 */
export function splitAnswer(answer) {
  const characters = Array.from(answer.text);
  const parts = [];
  let end = 0;
  for (const phrase of [...(answer.phrases ?? [])].sort((a, b) => a.start - b.start)) {
    if (phrase.start < end || !phrase.regions.length) continue;
    parts.push({ text: characters.slice(end, phrase.start).join(""), regions: [] });
    parts.push({ text: characters.slice(phrase.start, phrase.stop).join(""), regions: phrase.regions });
    end = phrase.stop;
  }
  parts.push({ text: characters.slice(end).join(""), regions: [] });
  return parts.filter((part) => part.text);
}

/**
 * An answer as elements. colors: color of each region. enter, leave: called with the regions of a phrase.
 */
export function answerElements(answer, colors, { enter = () => {}, leave = () => {} } = {}) {
  return splitAnswer(answer).map(({ text, regions }) => {
    if (!regions.length) return el("span", {}, text);
    const mark = el("mark", {
      onpointerenter: () => enter(regions),
      onpointerleave: () => leave(regions),
      title: regions.length > 1 ? `${regions.length} masks` : "",
    }, text);
    mark.style.setProperty("--c", colorOf(colors[regions[0]] ?? regions[0]));
    return mark;
  });
}

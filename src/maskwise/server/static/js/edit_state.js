/**
 * The edits of one item: a list of states, the last one shown. States are never changed, so undo removes the last.
 *
 * @typedef {import("./rle.js").Rle} Rle
 * @typedef {{id: string, name: string, visible: Rle | null, amodal: Rle | null}} Target
 * @typedef {{text: string, phrases: {start: number, stop: number, regions: number[]}[]}} Answer
 * @typedef {{question: string, answer: Answer | null, mask_type: string, targets: Target[]}} Content
 */

const sameMask = (a, b) => (a?.counts ?? null) === (b?.counts ?? null);

export class EditState {
  /** @param {any} item as the server sends it @param {any} draft edits to begin with */
  constructor(item, draft = null) {
    this.item = item;
    this.original = contentOf(item);
    /** @type {Content[]} */
    this.states = [this.original];
    const begun = draft?.edit ? applyEdit(item, this.original, draft.edit) : null;
    if (begun && makeEdit(this.original, begun)) this.states.push(begun);
  }

  /** @returns {Content} */
  get content() {
    return this.states.at(-1);
  }

  /** @param {Partial<Content>} changes */
  change(changes) {
    this.states.push({ ...this.content, ...changes });
  }

  /** Take back the last change. @returns {boolean} whether there was one */
  undo() {
    if (this.states.length < 2) return false;
    this.states.pop();
    return true;
  }

  /** What a decision sends, null if nothing differs. */
  edit() {
    return makeEdit(this.original, this.content);
  }

  /** @param {number} index @param {Partial<Target>} changes */
  changeTarget(index, changes) {
    this.change({ targets: this.content.targets.map((target, at) => (at === index ? { ...target, ...changes } : target)) });
  }

  /** Remove a target; phrases that refer to it lose it. @param {number} index */
  removeTarget(index) {
    const { answer, targets } = this.content;
    this.change({ targets: targets.filter((_, at) => at !== index), answer: answer && renumber(answer, (at) => (at === index ? null : at > index ? at - 1 : at)) });
  }

  /** @param {Target} target */
  addTarget(target) {
    this.change({ targets: [...this.content.targets, target] });
  }

  /** Move a target to an earlier or later place. @param {number} index @param {number} by */
  moveTarget(index, by) {
    const targets = [...this.content.targets];
    const other = index + by;
    if (other < 0 || other >= targets.length) return;
    [targets[index], targets[other]] = [targets[other], targets[index]];
    const { answer } = this.content;
    this.change({ targets, answer: answer && renumber(answer, (at) => (at === index ? other : at === other ? index : at)) });
  }

  /** New words of the answer; phrases are found again in them, in order. @param {string} text */
  changeAnswer(text) {
    const { answer } = this.content;
    if (!text.trim()) this.change({ answer: null });
    else this.change({ answer: { text, phrases: relocatePhrases(answer, text) } });
  }

  /** Let characters [start, stop) of the answer refer to a target. */
  linkPhrase(start, stop, target) {
    const { answer } = this.content;
    const others = answer.phrases.filter((phrase) => phrase.stop <= start || phrase.start >= stop);
    const same = answer.phrases.find((phrase) => phrase.start === start && phrase.stop === stop);
    const regions = same ? [...new Set([...same.regions, target])] : [target];
    const phrases = [...others, { start, stop, regions }].sort((a, b) => a.start - b.start);
    this.change({ answer: { ...answer, phrases } });
  }
}

/** @returns {Content} */
function contentOf(item) {
  return {
    question: item.question,
    answer: item.answer ? { text: item.answer.text, phrases: item.answer.phrases ?? [] } : null,
    mask_type: item.mask_type,
    targets: item.targets.map(targetOf),
  };
}

/** @returns {Target} */
export const targetOf = ({ id, name, visible, amodal }) => ({ id, name, visible: visible ?? null, amodal: amodal ?? null });

/** The content after an edit in the form that the server keeps. */
export function applyEdit(item, content, edit) {
  const known = new Map([...item.targets, ...(item.regions ?? [])].map((region) => [region.id, targetOf(region)]));
  const targets = edit.targets?.map((target) => ({ name: "", visible: null, amodal: null, ...known.get(target.id), ...target }));
  return {
    question: edit.question ?? content.question,
    answer: edit.answer === undefined ? content.answer : edit.answer && { text: edit.answer.text, phrases: edit.answer.phrases ?? [] },
    mask_type: edit.mask_type ?? content.mask_type,
    targets: targets ?? content.targets,
  };
}

function makeEdit(before, after) {
  const edit = {};
  if (after.question !== before.question) edit.question = after.question;
  if (JSON.stringify(after.answer) !== JSON.stringify(before.answer)) edit.answer = after.answer;
  if (after.mask_type !== before.mask_type) edit.mask_type = after.mask_type;
  if (!sameTargets(before.targets, after.targets)) edit.targets = after.targets.map((target) => targetEdit(before.targets, target));
  return Object.keys(edit).length ? edit : null;
}

const sameTarget = (a, b) => a.id === b.id && a.name === b.name && sameMask(a.visible, b.visible) && sameMask(a.amodal, b.amodal);

const sameTargets = (a, b) => a.length === b.length && a.every((target, at) => sameTarget(target, b[at]));

/** Only what changed, so that a decision stays small. */
function targetEdit(before, target) {
  const known = before.find(({ id }) => id === target.id);
  if (!known) return target;
  const edit = { id: target.id };
  if (known.name !== target.name) edit.name = target.name;
  for (const kind of ["visible", "amodal"]) if (!sameMask(known[kind], target[kind])) edit[kind] = target[kind];
  return edit;
}

function renumber(answer, number) {
  const phrases = answer.phrases
    .map((phrase) => ({ ...phrase, regions: phrase.regions.map(number).filter((at) => at !== null) }))
    .filter((phrase) => phrase.regions.length);
  return { ...answer, phrases };
}

function relocatePhrases(answer, text) {
  if (!answer) return [];
  const [old, now] = [Array.from(answer.text), Array.from(text)];
  let from = 0;
  return answer.phrases.flatMap((phrase) => {
    const words = old.slice(phrase.start, phrase.stop).join("");
    const start = indexOf(now, words, from);
    if (start < 0) return [];
    from = start + Array.from(words).length;
    return [{ start, stop: from, regions: phrase.regions }];
  });
}

/** Position of words in characters, from a position on. */
function indexOf(characters, words, from) {
  const rest = characters.slice(from).join("");
  const units = rest.indexOf(words);
  return units < 0 ? -1 : from + Array.from(rest.slice(0, units)).length;
}

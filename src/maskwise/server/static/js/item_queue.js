/**
 * The items that this reviewer holds, the one that is shown first. Images and outlines of the next ones are prepared
 * while the reviewer looks at the first. A copy in the browser lets a page that is reloaded offline continue.
 */
import { EditState } from "./edit_state.js";
import { DrawnRegion } from "./mask_layer.js";
import { loadImage } from "./review_api.js";

/** Items whose image and outlines are ready: people decide faster than an image loads. */
const PRELOADED = 4;
const regions = new WeakMap();

/** The region of a target. It is made once per target, as targets are never changed. */
export function drawnRegion(target, color) {
  const known = regions.get(target);
  if (known?.color === color) return known;
  const made = new DrawnRegion(target, color);
  regions.set(target, made);
  return made;
}

export class ItemQueue {
  /** @param {string} key of the project and reviewer @param {import("./drafts.js").Drafts} drafts */
  constructor(key, drafts) {
    this.key = `maskwise-review-items-${key}`;
    this.drafts = drafts;
    this.items = [];
    this.images = new Map();
    this.states = new Map();
  }

  get first() {
    return this.items[0] ?? null;
  }

  /** Items of an earlier visit. */
  restore() {
    this.items = JSON.parse(localStorage.getItem(this.key) ?? "[]");
    this.#prepare();
  }

  /** Add items that are not known yet. @param {any[]} items @param {(item: number) => boolean} decided */
  add(items, decided) {
    const known = new Set(this.items.map((kept) => kept.item));
    this.items.push(...items.filter((added) => !known.has(added.item) && !decided(added.item)));
    this.#changed();
  }

  /** @param {any} item */
  putFirst(item) {
    this.items = [item, ...this.items.filter((kept) => kept.item !== item.item)];
    this.states.delete(item.item);
    this.#changed();
  }

  /** @param {number} item */
  remove(item) {
    this.items = this.items.filter((kept) => kept.item !== item);
    this.states.delete(item);
    this.#changed();
  }

  /** The edits of an item, begun from its draft. @returns {EditState} */
  state(item) {
    if (!this.states.has(item.item)) this.states.set(item.item, new EditState(item, this.drafts.find(item.item) ?? item.draft));
    return this.states.get(item.item);
  }

  /** @returns {Promise<ImageBitmap>} */
  image(item) {
    const { url } = item.image;
    if (!this.images.has(url)) {
      const loading = loadImage(url);
      loading.catch(() => this.images.delete(url));
      this.images.set(url, loading);
    }
    return this.images.get(url);
  }

  #changed() {
    try {
      localStorage.setItem(this.key, JSON.stringify(this.items));
    } catch {
      localStorage.removeItem(this.key);
    }
    this.#prepare();
  }

  #prepare() {
    const next = this.items.slice(0, PRELOADED);
    for (const item of next) this.image(item).catch(() => {});
    const wanted = new Set(next.map((item) => item.image.url));
    for (const url of this.images.keys()) if (!wanted.has(url)) this.images.delete(url);
    setTimeout(() => next.forEach((item) => this.#trace(item)), 0);
  }

  #trace(item) {
    this.state(item).content.targets.forEach((target, index) => {
      const region = drawnRegion(target, index);
      for (const kind of ["visible", "amodal", "occluded", "outside"]) region.path(kind);
    });
  }
}

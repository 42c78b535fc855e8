// @ts-check
// JSON as a tree that unfolds. Children are made when they are shown.
import { button, copyButton, h, visible } from './dom.js';

const MAX_CHILDREN = 200;
const MAX_STRING = 2000;

/**
 * @param {any} value
 * @param {{ open?: number, copy?: boolean }} [options] how many levels are open
 * @returns {HTMLElement}
 */
export function jsonTree(value, { open = 1, copy = true } = {}) {
  const tree = h('div', { class: 'json' }, node(value, null, open));
  if (copy) tree.prepend(h('div', { class: 'corner' }, copyButton(() => JSON.stringify(value, null, 2))));
  return tree;
}

/**
 * The definition of something as the server has sent it.
 * @param {any} value
 */
export function definition(value) {
  return h('details', { class: 'schema' }, h('summary', {}, 'Definition'), jsonTree(value, { open: 2 }));
}

/**
 * @param {any} value
 * @param {string | number | null} key
 * @param {number} open
 * @returns {HTMLElement}
 */
function node(value, key, open) {
  const label = key === null ? null : h('span', { class: typeof key === 'number' ? 'index' : 'key' }, `${visible(key)}: `);
  if (value === null || typeof value !== 'object') return h('div', { class: 'leaf' }, label, leaf(value));
  const entries = Array.isArray(value) ? value.map((it, index) => [index, it]) : Object.entries(value);
  const [left, right] = Array.isArray(value) ? '[]' : '{}';
  if (!entries.length) return h('div', { class: 'leaf' }, label, `${left}${right}`);
  const unit = Array.isArray(value) ? 'item' : 'key';
  const count = h('span', { class: 'count' }, `${entries.length} ${unit}${entries.length === 1 ? '' : 's'}`);
  const children = h('div', { class: 'children' });
  const details = h('details', {}, h('summary', {}, label, left, h('span', { class: 'rest' }, count, right)), children);
  const show = (from = 0) => {
    const part = entries.slice(from, from + MAX_CHILDREN);
    children.append(...part.map(([key, it]) => node(it, key, open - 1)));
    const rest = entries.length - from - part.length;
    if (rest > 0) {
      const more = button(`${rest} more`, () => {
        more.remove();
        show(from + MAX_CHILDREN);
      }, { class: 'quiet' });
      children.append(more);
    }
  };
  details.addEventListener('toggle', () => { if (details.open && !children.hasChildNodes()) show(); });
  if (open > 0) {
    details.open = true;
    show();
  }
  return details;
}

/** @param {any} value */
function leaf(value) {
  if (typeof value !== 'string') return h('span', { class: 'literal' }, String(value));
  const quoted = JSON.stringify(value);
  const text = h('span', { class: 'string', dir: 'auto' }, visible(quoted.slice(0, MAX_STRING)));
  if (quoted.length > MAX_STRING) {
    const more = button(`… ${(quoted.length - MAX_STRING).toLocaleString()} more characters`, () => { text.textContent = visible(quoted); }, { class: 'quiet' });
    text.append(more);
  }
  return text;
}

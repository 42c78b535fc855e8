// @ts-check
// Elements, which are made from the code of the page only: text of servers never becomes markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

const DANGEROUS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;

/**
 * Makes invisible characters visible: they could hide instructions, or show a name as another one.
 * @param {unknown} text
 */
export function visible(text) {
  // The text of an object is what its own members make of it.
  const shown = text !== null && typeof text === 'object' ? JSON.stringify(text) : String(text ?? '');
  return shown.replace(/\r\n/g, '\n').replace(DANGEROUS, (it) => `\\u{${(it.codePointAt(0) ?? 0).toString(16)}}`);
}

/**
 * Makes an element. Properties that begin with `on` are listeners, the others are attributes.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...Child} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked' || key === 'disabled') /** @type {any} */ (element)[key] = value;
    else if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  add(element, ...children);
  return element;
}

/**
 * Appends children; those that are nothing are left out.
 * @param {Element} element
 * @param {...Child} children
 */
export function add(element, ...children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === '') continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, ...children);
}

/**
 * The outcome of a function, or the reason why it cannot be shown: servers send values of any kind.
 * @param {() => any} make
 */
export function attempted(make) {
  try {
    return make();
  } catch (error) {
    return h('p', { class: 'empty problem' }, `This cannot be shown: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * A shape of an SVG picture.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/**
 * A button.
 * @param {string} label
 * @param {(event: Event) => void} act
 * @param {Record<string, any>} [properties]
 */
export function button(label, act, properties = {}) {
  return h('button', { type: 'button', onclick: act, ...properties }, label);
}

/**
 * A small label.
 * @param {string} text
 * @param {string} [kind]
 * @param {string} [title]
 */
export function chip(text, kind = '', title) {
  return h('span', { class: `chip ${kind}`, title }, text);
}

let copies = 0;

/**
 * A button that copies a text.
 * @param {() => string} text
 * @param {string} [label]
 */
export function copyButton(text, label = 'Copy') {
  const made = button(label, async () => {
    await navigator.clipboard.writeText(text());
    const copy = copies += 1;
    made.textContent = 'Copied';
    made.dataset.copy = String(copy);
    setTimeout(() => { if (made.dataset.copy === String(copy)) made.textContent = label; }, 1500);
  }, { class: 'quiet' });
  return made;
}

/**
 * A link to a web page, whose whole address is shown. Other schemes are text.
 * @param {string} address
 */
export function webLink(address) {
  const text = visible(address);
  let url;
  try {
    url = new URL(address);
  } catch {
    return h('code', {}, text);
  }
  if (!['https:', 'http:'].includes(url.protocol)) return h('code', {}, text);
  return h('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, text);
}

/**
 * A text of a server, with its line breaks. A long one is folded.
 * @param {unknown} text
 * @param {{ lines?: number, code?: boolean, max?: number }} [options]
 */
export function prose(text, { lines = 0, code = false, max = 50_000 } = {}) {
  const all = visible(text);
  const shown = all.length > max ? `${all.slice(0, max)}…` : all;
  const body = h(code ? 'pre' : 'div', { class: code ? 'code' : 'prose', dir: 'auto' }, shown);
  if (all.length > max) {
    body.append(button(`show all ${all.length.toLocaleString()} characters`, () => { body.textContent = all; }, { class: 'quiet' }));
  }
  if (!lines || all.split('\n').length <= lines && all.length < lines * 100) return body;
  body.classList.add('folded');
  const more = button('more', () => {
    const folded = body.classList.toggle('folded');
    more.textContent = folded ? 'more' : 'less';
    more.setAttribute('aria-expanded', String(!folded));
  }, { class: 'quiet', 'aria-expanded': 'false' });
  return h('div', {}, body, more);
}

/**
 * The reason why a server cannot be used.
 * @param {string} reason
 */
export function failure(reason) {
  return h('div', { class: 'failure', role: 'alert' }, h('strong', {}, 'Could not use the server'), prose(reason));
}

/** The number of rows that a long list shows. */
export const MAX_ROWS = 500;

/**
 * Shows the newest rows of a long list. It stays at its end for a reader who is there.
 * @template T
 * @param {HTMLElement} list
 * @param {T[]} all
 * @param {(it: T) => HTMLElement} row
 * @param {string} none the text if there are none
 */
export function showNewest(list, all, row, none) {
  const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 40;
  list.replaceChildren(...all.slice(-MAX_ROWS).map((it) => row(it)));
  if (!all.length) list.append(h('li', { class: 'empty' }, none));
  if (isAtEnd) list.scrollTop = list.scrollHeight;
}

/**
 * Calls a function once before the next frame, however often it is asked for.
 * @param {() => void} act
 */
export function eachFrame(act) {
  let waits = false;
  return () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => {
      waits = false;
      act();
    });
  };
}

/**
 * Moves the focus with the arrow keys among the buttons of an element.
 * @param {HTMLElement} element
 * @param {string} selector
 */
export function arrows(element, selector) {
  element.addEventListener('keydown', (event) => {
    const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
    const step = /** @type {Record<string, number>} */ (steps)[event.key];
    const all = /** @type {HTMLElement[]} */ ([...element.querySelectorAll(selector)]);
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0) return;
    const next = event.key === 'Home' ? 0 : event.key === 'End' ? all.length - 1 : step === undefined ? -1 : at + step;
    if (next < 0 || next >= all.length) return;
    event.preventDefault();
    all[next]?.focus();
  });
}

/** @param {number} micros */
export function duration(micros) {
  if (micros < 1000) return `${micros} µs`;
  if (micros < 100_000) return `${(micros / 1000).toFixed(1)} ms`;
  if (micros < 10_000_000) return `${Math.round(micros / 1000)} ms`;
  return `${(micros / 1_000_000).toFixed(1)} s`;
}

/** @param {number} bytes */
export function size(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1 << 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / (1 << 20)).toFixed(1)} MiB`;
}

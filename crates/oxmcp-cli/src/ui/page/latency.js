// @ts-check
// The latencies of requests: a plot over time, and a table by method.
import { chip, duration, eachFrame, fill, h, svg, visible } from './dom.js';
import { Section } from './section.js';
import { store } from './store.js';

/** @typedef {import('./store.js').Server} Server */

const [WIDTH, HEIGHT] = [900, 300];
const MARGIN = { left: 58, right: 12, top: 12, bottom: 28 };
const COLORS = 8;

class Latency extends Section {
  connectedCallback() {
    const plot = h('div', { class: 'plot' });
    const table = h('div', {});
    const show = eachFrame(() => {
      const all = this.server.latencies;
      if (!all.length) {
        fill(plot, h('p', { class: 'empty' }, 'No request was answered yet.'));
        return;
      }
      const methods = [...new Set(all.map((it) => it.method))].sort();
      fill(plot, picture(all, methods));
      fill(table, summary(all, methods));
    });
    this.replaceChildren(h('div', { class: 'page wide' }, h('h2', {}, 'Latency'), h('p', { class: 'hint' }, 'The time from each request of oxmcp to its answer, on a logarithmic scale. Crosses are errors.'), plot, table));
    this.hear('latencies', show);
    show();
  }
}

/**
 * @param {Server['latencies']} all
 * @param {string[]} methods
 */
function picture(all, methods) {
  const [first, last] = [all[0]?.at ?? 0, Math.max(...all.map((it) => it.at))];
  const [low, high] = [Math.min(...all.map((it) => it.micros)), Math.max(...all.map((it) => it.micros))];
  const [bottom, top] = [Math.floor(Math.log10(Math.max(low, 1))), Math.max(Math.ceil(Math.log10(Math.max(high, 10))), 1)];
  const x = (/** @type {number} */ at) => MARGIN.left + (last === first ? 0.5 : (at - first) / (last - first)) * (WIDTH - MARGIN.left - MARGIN.right);
  const y = (/** @type {number} */ micros) => HEIGHT - MARGIN.bottom - (Math.log10(Math.max(micros, 1)) - bottom) / Math.max(top - bottom, 1) * (HEIGHT - MARGIN.top - MARGIN.bottom);
  const lines = [];
  for (let power = bottom; power <= top; power += 1) {
    const at = y(10 ** power);
    lines.push(svg('line', { class: 'grid', x1: MARGIN.left, x2: WIDTH - MARGIN.right, y1: at, y2: at }));
    lines.push(svg('text', { class: 'tick', x: MARGIN.left - 8, y: at + 4, 'text-anchor': 'end' }, duration(10 ** power).replace('.0', '')));
  }
  for (const [at, anchor] of /** @type {[number, string][]} */ ([[first, 'start'], [last, 'end']])) {
    if (last !== first || anchor === 'start') lines.push(svg('text', { class: 'tick', x: x(at), y: HEIGHT - 8, 'text-anchor': anchor }, store.time(at).slice(0, 8)));
  }
  const marks = all.map((it) => {
    const kind = `mark color-${methods.indexOf(it.method) % COLORS}`;
    const [cx, cy] = [x(it.at), y(it.micros)];
    const title = svg('title', {}, `${visible(it.method)}: ${duration(it.micros)}`);
    if (it.isError) return svg('path', { class: `${kind} cross`, d: `M${cx - 4} ${cy - 4}l8 8m0 -8l-8 8` }, title);
    return svg('circle', { class: kind, cx, cy, r: 4 }, title);
  });
  return svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': `${all.length} latencies, from ${duration(low)} to ${duration(high)}` }, ...lines, ...marks);
}

/**
 * @param {Server['latencies']} all
 * @param {string[]} methods
 */
function summary(all, methods) {
  const row = (/** @type {string} */ method, /** @type {number} */ index) => {
    const own = all.filter((it) => it.method === method);
    const sorted = own.map((it) => it.micros).sort((a, b) => a - b);
    const at = (/** @type {number} */ part) => duration(sorted[Math.ceil(sorted.length * part) - 1] ?? 0);
    const errors = own.filter((it) => it.isError).length;
    return h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `swatch color-${index % COLORS}` }), visible(method)), h('td', {}, own.length), h('td', {}, at(0.5)), h('td', {}, at(0.95)), h('td', {}, at(1)), h('td', {}, errors ? chip(String(errors), 'bad') : ''));
  };
  return h('table', {}, h('thead', {}, h('tr', {}, ...['Method', 'Count', 'Median', '95 %', 'Longest', 'Errors'].map((it) => h('th', { scope: 'col' }, it)))), h('tbody', {}, ...methods.map(row)));
}

customElements.define('ox-latency', Latency);

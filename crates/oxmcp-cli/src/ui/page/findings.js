// @ts-check
// The findings of the check: what hosts and models will not like, and what oxmcp had to tolerate.
import { button, chip, fill, h, visible } from './dom.js';
import { Section } from './section.js';
import { store } from './store.js';

/**
 * The findings about a tool, a prompt or a resource, if there are any.
 * @param {import('./store.js').Server} server
 * @param {string} name
 */
export function findingsAbout(server, name) {
  const found = server.findingsAbout(name);
  return found.length ? findingList(found) : null;
}

/**
 * @param {any[]} findings
 * @param {(name: string) => void} [show]
 */
function findingList(findings, show) {
  const kinds = /** @type {Record<string, string>} */ ({ error: 'bad', warning: 'busy' });
  return h('ul', { class: 'findings' }, ...findings.map((it) => h('li', {},
    h('div', { class: 'row' }, chip(it.severity, kinds[it.severity]), h('code', {}, visible(it.id)),
      show && it.name && it.place.startsWith('tool') ? button(visible(it.place), () => show(it.name), { class: 'link' }) : h('span', {}, visible(it.place))),
    h('p', {}, visible(it.message)), it.remedy && h('p', { class: 'remedy' }, '→ ', visible(it.remedy)))));
}

class Findings extends Section {
  connectedCallback() {
    const { server } = this;
    const body = h('div', {});
    const check = async () => {
      fill(body, h('p', { class: 'empty' }, 'Checking…'));
      try {
        await store.check(server);
      } catch (error) {
        fill(body, h('p', { class: 'problem' }, /** @type {Error} */ (error).message));
      }
    };
    const show = () => {
      if (!server.findings) return;
      const { findings, tolerated } = server.findings;
      const open = (/** @type {string} */ name) => {
        server.section = 'tools';
        server.chosen.tools = name;
        server.changed('section');
      };
      fill(body, findings.length ? findingList(findings, open) : h('p', { class: 'empty' }, 'Nothing to complain about.'),
        tolerated.length ? h('section', {}, h('h3', {}, 'Deviations from the specification that were tolerated'), findingList(tolerated.map((/** @type {any} */ it) => ({
          id: it.name, severity: 'warning', place: it.method || 'messages', message: `${it.reason} (seen ${it.count} times)`, remedy: 'follow the specification: other hosts may reject this',
        })))) : null);
    };
    this.replaceChildren(h('div', { class: 'page' }, h('div', { class: 'row' }, h('h2', {}, 'Findings'), h('span', { class: 'space' }), button('Check again', check)),
      h('p', { class: 'hint' }, 'No tool is called for this. The command ', h('code', {}, 'oxmcp check'), ' also tries each revision.'), body));
    this.hear('findings', show);
    if (server.findings) show();
    else check();
  }
}

customElements.define('ox-findings', Findings);

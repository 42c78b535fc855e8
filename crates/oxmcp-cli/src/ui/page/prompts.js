// @ts-check
// The prompts of a server, and the completion of arguments.
import { chip, h, prose, visible } from './dom.js';
import { findingsAbout } from './findings.js';
import { definition } from './json.js';
import { runInto } from './results.js';
import { Section } from './section.js';
import { masterDetail, openResource } from './server.js';
import { store } from './store.js';

/** @typedef {import('./store.js').Server} Server */

let lists = 0;

/**
 * Fields for arguments that are texts, with completion by the server.
 * @param {Server} server
 * @param {any} reference
 * @param {{ name: string, description?: string, required?: boolean, title?: string }[]} all
 */
export function completedFields(server, reference, all) {
  /** @type {Map<string, HTMLInputElement>} */
  const inputs = new Map();
  const element = h('div', { class: 'fields' });
  for (const it of all) {
    const id = `completed-${lists += 1}`;
    const options = h('datalist', { id: `${id}-list` });
    const input = h('input', { id, list: `${id}-list`, autocomplete: 'off', 'data-argument': it.name, 'aria-describedby': it.description ? `${id}-hint` : null });
    let newest = 0;
    const complete = async () => {
      if (!server.has('completions')) return;
      const number = newest += 1;
      const resolved = Object.fromEntries([...inputs].filter(([name, other]) => name !== it.name && other.value).map(([name, other]) => [name, other.value]));
      const params = { ref: reference, argument: { name: it.name, value: input.value }, context: Object.keys(resolved).length ? { arguments: resolved } : undefined };
      try {
        const { values } = await store.run(server, { kind: 'complete', params }).done;
        if (number === newest) options.replaceChildren(...values.slice(0, 100).map((/** @type {any} */ value) => h('option', { value: String(value) })));
      } catch {
        // A server that completes nothing is no hindrance: the field takes any text.
      }
    };
    input.addEventListener('input', complete);
    input.addEventListener('focus', complete);
    inputs.set(it.name, input);
    const hint = it.description && prose(it.description, { lines: 3 });
    if (hint) {
      hint.id = `${id}-hint`;
      hint.classList.add('hint');
    }
    element.append(h('div', { class: 'field' }, h('label', { for: id }, h('code', {}, visible(it.name)), it.title && h('span', { class: 'title' }, visible(it.title)), it.required && h('span', { class: 'required' }, 'required')), hint, input, options));
  }
  if (!all.length) element.append(h('p', { class: 'hint' }, 'No arguments.'));
  return { element, read: () => Object.fromEntries([...inputs].filter(([, it]) => it.value !== '').map(([name, it]) => [name, it.value])) };
}

class Prompts extends Section {
  connectedCallback() {
    const { server } = this;
    const view = masterDetail(server, 'prompts', {
      entries: () => (server.lists.prompts ?? []).map((it) => ({ key: it.name, title: it.name, text: it.title ?? it.description })),
      find: (name) => server.lists.prompts?.find((it) => it.name === name),
      show: (prompt) => this.#prompt(prompt),
      empty: () => server.listErrors.prompts ? h('span', { class: 'problem' }, visible(server.listErrors.prompts)) : server.has('prompts') ? 'The server has no prompts.' : 'The server offers no prompts.',
    });
    this.replaceChildren(view.element);
    view.render();
    this.hear('prompts', () => view.render());
  }

  /** @param {any} prompt */
  #prompt(prompt) {
    const { server } = this;
    const results = h('div', { class: 'cards' });
    const fields = completedFields(server, { type: 'ref/prompt', name: prompt.name }, prompt.arguments ?? []);
    const problem = h('p', { class: 'problem', role: 'alert' });
    const form = h('form', {
      class: 'schema-form',
      'aria-label': `arguments of ${prompt.name}`,
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        const operation = { kind: 'prompt', name: prompt.name, arguments: fields.read() };
        runInto(server, operation, { cards: results, problem, read: (uri) => openResource(server, uri) });
      },
    }, fields.element, problem, h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Get prompt')));
    return h('div', { class: 'page' },
      h('h2', {}, h('code', {}, visible(prompt.name)), prompt.title && h('span', { class: 'title' }, visible(prompt.title))),
      server.has('completions') && h('div', { class: 'row' }, chip('arguments are completed by the server')),
      prompt.description && prose(prompt.description, { lines: 8 }), findingsAbout(server, prompt.name), form, results,
      definition(prompt));
  }
}

customElements.define('ox-prompts', Prompts);

// @ts-check
// The tools of a server: their forms, and the results of their calls.
import { chip, fill, h, prose, visible } from './dom.js';
import { findingsAbout } from './findings.js';
import { schemaForm } from './form.js';
import { definition } from './json.js';
import { resultCard, runInto } from './results.js';
import { Section } from './section.js';
import { masterDetail, openResource } from './server.js';
import { store } from './store.js';

const TASKS = 'io.modelcontextprotocol/tasks';

class Tools extends Section {
  /** @type {ReturnType<typeof masterDetail> | null} */
  #view = null;
  #about = { name: '', place: h('div', {}) };

  connectedCallback() {
    const { server } = this;
    const view = masterDetail(server, 'tools', {
      entries: () => (server.lists.tools ?? []).map((it) => ({
        key: it.name,
        title: it.name,
        text: it.title ?? it.annotations?.title ?? it.description,
        marks: [it.appUri && chip('app', 'accent'), it.isForApps && chip('for apps'), server.findingsAbout(it.name).length ? chip('!', 'bad', 'has findings') : null],
      })),
      find: (name) => server.lists.tools?.find((it) => it.name === name),
      show: (tool) => this.#tool(tool),
      empty: () => server.listErrors.tools ? h('span', { class: 'problem' }, visible(server.listErrors.tools)) : server.lists.tools ? 'The server has no tools.' : server.has('tools') ? 'Loading…' : 'The server offers no tools.',
    });
    this.replaceChildren(view.element);
    view.render();
    this.#view = view;
    // The findings are shown beside the tools, once these are known.
    const check = () => { if (!server.findings && server.lists.tools) store.check(server).catch(() => {}); };
    check();
    this.hear('tools', check);
    this.hear('tools findings', () => view.render());
    this.hear('findings', () => this.#findings());
  }

  /** Called when the section is shown again: another tool may have been chosen meanwhile. */
  shown() {
    this.#view?.render();
  }

  /** Shows the findings about the tool that is shown. */
  #findings() {
    fill(this.#about.place, findingsAbout(this.server, this.#about.name));
  }

  /** @param {any} tool */
  #tool(tool) {
    const { server } = this;
    const results = h('div', { class: 'cards', 'aria-label': 'results' });
    const read = (/** @type {string} */ uri) => openResource(server, uri);
    const own = [...server.jobs.values()].filter((it) => it.operation.kind === 'call' && it.operation.tool === tool.name);
    for (const job of own.slice(-5)) results.prepend(resultCard(server, job, { read }));

    const support = tool.execution?.taskSupport;
    const isOptional = support === 'optional' && server.has('tasks');
    const asTask = h('input', { type: 'checkbox' });
    const hasTasks = server.facts?.capabilities?.extensions?.[TASKS] !== undefined || support === 'required';
    const withApp = h('input', { type: 'checkbox', checked: true });
    const call = (/** @type {any} */ args) => {
      const isApp = Boolean(tool.appUri) && withApp.checked;
      server.chosen[`arguments:${tool.name}`] = JSON.stringify(args);
      const operation = { kind: 'call', tool: tool.name, arguments: args, asTask: hasTasks || asTask.checked, app: isApp };
      runInto(server, operation, { cards: results, problem: form.problem, read, max: 10 });
    };
    const hints = tool.annotations ?? {};
    const isDestructive = hints.destructiveHint === true && hints.readOnlyHint !== true;
    const last = server.chosen[`arguments:${tool.name}`];
    const form = schemaForm(tool.inputSchema, {
      submit: call,
      value: last ? JSON.parse(last) : undefined,
      label: `arguments of ${tool.name}`,
      actions: [
        h('button', { type: 'submit', class: 'primary' }, 'Call tool'),
        isOptional && h('label', { class: 'include' }, asTask, ' as a task'),
        tool.appUri && h('label', { class: 'include' }, withApp, ' with its app'),
      ].filter(Boolean),
    });
    this.#about = { name: tool.name, place: h('div', { class: 'about' }) };
    this.#findings();
    return h('div', { class: 'page' },
      h('h2', {}, h('code', {}, visible(tool.name)), tool.title && h('span', { class: 'title' }, visible(tool.title))),
      h('div', { class: 'row' },
        hints.readOnlyHint && chip('read-only', 'good'), isDestructive && chip('destructive', 'bad'), hints.idempotentHint && chip('idempotent'),
        hints.openWorldHint && chip('open world'), support && support !== 'forbidden' && chip(`task: ${visible(support)}`), tool.appUri && chip(`app ${visible(tool.appUri)}`, 'accent')),
      tool.description && prose(tool.description, { lines: 8 }),
      this.#about.place,
      form.element,
      results,
      definition(stripped(tool)));
  }
}

/** The tool as the server has sent it, without the members of the page. */
function stripped(/** @type {any} */ { appUri, isForApps, ...tool }) {
  return tool;
}

customElements.define('ox-tools', Tools);

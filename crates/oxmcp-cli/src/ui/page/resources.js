// @ts-check
// The resources of a server and its templates: read, previewed, and watched for changes.
import { button, chip, h, prose, size, visible } from './dom.js';
import { findingsAbout } from './findings.js';
import { definition } from './json.js';
import { completedFields } from './prompts.js';
import { runInto } from './results.js';
import { Section } from './section.js';
import { masterDetail } from './server.js';
import { store } from './store.js';

const MAX_TEMPLATE = 8192;

/**
 * The variables of a URI template.
 * @param {string} template
 */
const variablesOf = (template) => [...new Set([...template.matchAll(/\{[+#./;?&]?([^{}]+)\}/g)].flatMap(([, names]) => (names ?? '').split(',').map((it) => it.replace(/\*$|:\d+$/, ''))))];

/**
 * The URI of a template with the values of its variables.
 * @param {string} template
 * @param {Record<string, string>} values
 */
function expanded(template, values) {
  const forms = /** @type {Record<string, [string, string, boolean, boolean]>} first, separator, named, keeps reserved characters */ ({
    '': ['', ',', false, false], '+': ['', ',', false, true], '#': ['#', ',', false, true], '.': ['.', '.', false, false], '/': ['/', '/', false, false],
    ';': [';', ';', true, false], '?': ['?', '&', true, false], '&': ['&', '&', true, false],
  });
  return template.replace(/\{([+#./;?&]?)([^{}]+)\}/g, (_, operator, names) => {
    const [first, separator, isNamed, isKept] = forms[operator] ?? ['', ',', false, false];
    const escape = (/** @type {string} */ it) => (isKept ? encodeURI(it) : encodeURIComponent(it).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`));
    const parts = names.split(',').flatMap((/** @type {string} */ written) => {
      const [name = '', length] = written.replace(/\*$/, '').split(':');
      const value = values[name];
      if (value === undefined || value === '') return [];
      const shown = escape(length ? [...value].slice(0, Number(length)).join('') : value);
      return [isNamed ? `${name}=${shown}` : shown];
    });
    return parts.length ? first + parts.join(separator) : '';
  });
}

class Resources extends Section {
  connectedCallback() {
    const { server } = this;
    const linked = server.chosen.read;
    const known = (/** @type {string} */ uri) => server.lists.resources?.some((it) => it.uri === uri);
    const view = masterDetail(server, 'resources', {
      entries: () => [
        ...(linked && !known(linked) ? [{ key: `r:${linked}`, title: linked, text: 'linked' }] : []),
        ...(server.lists.templates ?? []).map((it) => ({ key: `t:${it.uriTemplate}`, title: it.uriTemplate, text: it.title ?? it.name, marks: [chip('template')] })),
        ...(server.lists.resources ?? []).map((it) => ({
          key: `r:${it.uri}`, title: it.uri, text: it.title ?? it.name, marks: [server.watched.has(it.uri) && chip('watched', 'accent'), server.updated.has(it.uri) && chip('changed', 'busy')],
        })),
      ],
      find: (key) => (key.startsWith('t:')
        ? server.lists.templates?.find((it) => it.uriTemplate === key.slice(2))
        : server.lists.resources?.find((it) => it.uri === key.slice(2)) ?? { uri: key.slice(2), name: '' }),
      show: (it, key) => (key.startsWith('t:') ? this.#template(it) : this.#resource(it, linked === it.uri)),
      empty: () => server.listErrors.resources ? h('span', { class: 'problem' }, visible(server.listErrors.resources)) : server.has('resources') ? 'The server has no resources.' : 'The server offers no resources.',
    });
    this.replaceChildren(view.element);
    view.render();
    delete server.chosen.read;
    this.hear('resources templates updated watched', () => view.render());
  }

  /**
   * A button that reads a resource, and the results.
   * @param {() => string} uri
   */
  #reader(uri) {
    const { server } = this;
    const results = h('div', { class: 'cards' });
    const problem = h('p', { class: 'problem', role: 'alert' });
    const read = (/** @type {string} */ which = uri()) => {
      server.updated.delete(which);
      runInto(server, { kind: 'read', uri: which }, { cards: results, problem, read, max: 5 });
    };
    return { read, results, problem };
  }

  /**
   * @param {any} resource
   * @param {boolean} isLinked
   */
  #resource(resource, isLinked) {
    const { server } = this;
    const { read, results, problem } = this.#reader(() => resource.uri);
    const canWatch = server.facts?.capabilities?.resources?.subscribe === true;
    const watch = button(server.watched.has(resource.uri) ? 'Unsubscribe' : 'Subscribe', async () => {
      const isWatched = server.watched.has(resource.uri);
      try {
        await store.run(server, { kind: isWatched ? 'unsubscribe' : 'subscribe', uri: resource.uri }).done;
        if (isWatched) server.watched.delete(resource.uri);
        else server.watched.add(resource.uri);
        watch.textContent = isWatched ? 'Subscribe' : 'Unsubscribe';
        server.changed('watched');
      } catch (error) {
        problem.textContent = /** @type {Error} */ (error).message;
      }
    });
    if (isLinked) read();
    return h('div', { class: 'page' },
      h('h2', {}, visible(resource.title ?? resource.name), h('code', { class: 'uri' }, visible(resource.uri))),
      h('div', { class: 'row' }, resource.mimeType && chip(visible(resource.mimeType)), resource.size !== undefined && chip(size(Number(resource.size)))),
      resource.description && prose(resource.description, { lines: 6 }), findingsAbout(server, resource.uri),
      h('div', { class: 'actions' }, button('Read', () => read(), { class: 'primary' }), canWatch && watch), problem, results,
      definition(resource));
  }

  /** @param {any} template */
  #template(template) {
    const { server } = this;
    if (template.uriTemplate.length > MAX_TEMPLATE) return h('p', { class: 'empty problem' }, `The template has more than ${MAX_TEMPLATE} characters.`);
    const variables = variablesOf(template.uriTemplate).map((name) => ({ name }));
    const fields = completedFields(server, { type: 'ref/resource', uri: template.uriTemplate }, variables);
    const uri = () => expanded(template.uriTemplate, fields.read());
    const { read, results, problem } = this.#reader(uri);
    const preview = h('code', { class: 'uri' }, visible(uri()));
    fields.element.addEventListener('input', () => { preview.textContent = visible(uri()); });
    const form = h('form', {
      class: 'schema-form',
      'aria-label': 'variables of the template',
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        read();
      },
    }, fields.element, h('p', { class: 'row' }, h('span', { class: 'muted' }, 'URI'), preview), h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, 'Read')));
    return h('div', { class: 'page' },
      h('h2', {}, visible(template.title ?? template.name), h('code', { class: 'uri' }, visible(template.uriTemplate))),
      h('div', { class: 'row' }, template.mimeType && chip(visible(template.mimeType))), template.description && prose(template.description, { lines: 6 }),
      form, problem, results, definition(template));
  }
}

customElements.define('ox-resources', Resources);

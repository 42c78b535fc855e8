// @ts-check
// The log of a server: its messages, its standard error, its changes, and the warnings of oxmcp.
import { button, copyButton, eachFrame, h, showNewest, visible } from './dom.js';
import { Section } from './section.js';
import { store } from './store.js';

const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];

class Logs extends Section {
  connectedCallback() {
    const { server } = this;
    const filter = h('input', { type: 'search', placeholder: 'Filter', 'aria-label': 'filter the log', autocomplete: 'off' });
    const level = h('select', { 'aria-label': 'level that the server sends' }, ...LEVELS.map((it) => h('option', {}, it)));
    level.value = server.chosen.level ?? 'info';
    const problem = h('span', { class: 'problem', role: 'alert' });
    level.addEventListener('change', () => {
      problem.textContent = '';
      server.chosen.level = level.value;
      store.run(server, { kind: 'level', level: level.value }).done.catch((error) => { problem.textContent = error.message; });
    });
    const rows = h('ol', { class: 'log', 'aria-label': 'log', tabindex: '0' });
    const matching = () => {
      const wanted = filter.value.trim().toLowerCase();
      return server.logs.filter((it) => !wanted || `${it.text} ${it.logger ?? ''} ${it.source ?? ''}`.toLowerCase().includes(wanted));
    };
    const render = eachFrame(() => {
      showNewest(rows, matching(), (it) => it.row ??= row(it), 'Nothing was logged.');
    });
    const all = copyButton(() => matching().map((it) => `${store.time(it.at)} ${it.level ?? it.source} ${it.text}`).join('\n'), 'Copy all');
    const clear = button('Clear', () => {
      server.logs = [];
      server.changed('logs');
    }, { class: 'quiet' });
    this.replaceChildren(h('div', { class: 'page wide' }, h('div', { class: 'row tools-row' }, filter, h('label', { class: 'inline' }, h('span', { class: 'muted' }, 'server sends from'), level), problem,
      h('span', { class: 'space' }), all, clear), rows));
    filter.addEventListener('input', render);
    this.hear('logs', render);
    render();
  }
}

/** @param {any} it */
function row(it) {
  const level = String(it.level ?? it.source ?? '').toLowerCase();
  let text = it.text;
  if (it.kind === 'log') {
    try {
      const value = JSON.parse(text);
      if (typeof value === 'string') text = value;
    } catch {
      // It was cut off.
    }
  }
  return h('li', { class: `level-${level.replace(/[^a-z]/g, '')}` }, h('time', {}, store.time(it.at)), h('span', { class: 'level' }, visible(level)),
    h('span', { class: 'logger' }, visible(it.logger ?? (it.kind === 'stderr' || it.kind === 'sdk' ? it.source : ''))), h('span', { class: 'text', dir: 'auto' }, visible(text)));
}

customElements.define('ox-logs', Logs);

// The cases. Each opens the page, and does with it what a person would do; nothing waits for a time.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SHOWN } from './page.mjs';

/** The page of npm's server, once it is connected. */
const everything = async (world, options) => (await world.open(['--', ...world.everything], options)).connected();

const example = async (world, name, options) => (await world.open(['--', world.example(name)], options)).connected();

async function formsAndResults(world) {
  const ui = await everything(world);
  await ui.choose('echo');
  await ui.type('message', 'Hello, tea');
  // Enter sends the form.
  await ui.page.keyboard.press('Enter');
  await ui.shows('.detail .result', /done.*Echo: Hello, tea/);
  await ui.choose('get-sum');
  await ui.type('a', 'two');
  await ui.type('b', '40');
  await ui.press('Call tool', '.detail');
  await ui.shows('.detail .problem', /a: expected a number/);
  await ui.type('a', '2');
  await ui.call();
  await ui.shows('.detail .result', /42/);
  // The same arguments as JSON, and back.
  await ui.press('Edit as JSON', '.detail');
  assert.deepEqual(JSON.parse(await ui.page.$eval('.detail textarea', (it) => it.value)), { a: 2, b: 40 });
  await ui.press('Edit as form', '.detail');
  assert.equal(await (await ui.field('b')).evaluate((it) => it.value), '40');
  await ui.choose('get-structured-content');
  await ui.select('location', 'New York');
  await ui.call();
  await ui.shows('.detail .result .json', /temperature/);
  await world.screenshot(ui, 'tools');
  await ui.choose('get-tiny-image');
  await ui.call();
  assert.ok(await ui.page.$eval('.detail .result img', (it) => it.complete && it.naturalWidth > 0));
  await ui.choose('get-resource-links');
  await ui.call();
  await ui.press('Read', '.detail .result');
  await ui.page.waitForSelector('ox-resources .result[data-phase=done]');
  await ui.section('tools');
  await ui.choose('get-annotated-message');
  await ui.select('messageType', 'error');
  await ui.call();
  await ui.shows('.detail .result .chip', /for user, assistant|priority 1/);
  await world.screenshot(ui, 'results');
  assert.deepEqual(ui.errors, []);
}

async function progressAndCancel(world) {
  const ui = await everything(world);
  await ui.choose('trigger-long-running-operation');
  await ui.type('duration', '2');
  await ui.type('steps', '4');
  await ui.press('Call tool', '.detail');
  await ui.shows('.detail .result .progress', /[1-3] of 4/);
  await ui.page.waitForSelector('.detail .result[data-phase=done]');
  await ui.type('duration', '600');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=running]');
  await ui.press('Cancel', '.detail .result');
  await ui.page.waitForSelector('.detail .result[data-phase=cancelled]');
  await ui.section('messages');
  await ui.shows('.messages', /notifications\/cancelled/);
  // It goes on while something else is shown.
  await ui.section('tools');
  await ui.press('Call tool', '.detail');
  await ui.section('activity');
  await ui.page.waitForSelector('.result[data-phase=running]');
  assert.equal(await ui.text('[data-section=activity] .count'), '1');
  await ui.press('Cancel', 'ox-activity');
  await ui.page.waitForFunction(() => !document.querySelector('ox-activity .result[data-phase=running]'));
  assert.deepEqual(ui.errors, []);
}

async function questionsOfAnOlderServer(world) {
  const ui = await everything(world);
  await ui.choose('trigger-elicitation-request');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions .question');
  const within = 'ox-questions form';
  await ui.type('name', 'Ferris', within);
  await world.screenshot(ui, 'question');
  await ui.press('Send', 'ox-questions');
  await ui.shows('.detail .result', /done.*Ferris/);
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions .question');
  await ui.press('Decline', 'ox-questions');
  await ui.shows('.detail .result', /declined/);
  await ui.choose('trigger-sampling-request');
  await ui.type('prompt', 'Say something');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions [data-of=sampling]');
  await ui.page.type('ox-questions textarea', 'Something, by hand');
  await ui.press('Send', 'ox-questions');
  await ui.shows('.detail .result', /done.*Something, by hand/);
  await ui.choose('trigger-url-elicitation');
  await ui.type('url', 'https://example.com/consent');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions [data-of=url]');
  await ui.shows('ox-questions', /example\.com/);
  await ui.press('Decline', 'ox-questions');
  await ui.page.waitForSelector('.detail .result:not([data-phase=running])');
  assert.deepEqual(ui.errors, []);
}

async function questionsOfANewerServer(world) {
  const ui = await example(world, 'notes');
  assert.equal(await ui.text(`${SHOWN} .server-head .chip.accent`), '2026-07-28');
  await ui.choose('delete');
  for (const [answer, phase, text] of [[true, 'done', /deleted/], [false, 'error', /nothing was deleted/]]) {
    await ui.press('Call tool', '.detail');
    await ui.page.waitForSelector('ox-questions input[type=checkbox]');
    if (answer) await ui.page.click('ox-questions input[type=checkbox]');
    // A double click answers once.
    const send = await ui.button('Send', 'ox-questions');
    await send.click({ count: 2 });
    await ui.page.waitForSelector(`.detail .result[data-phase=${phase}]`);
    await ui.shows('.detail .result', text);
  }
  // An argument that the server refuses: its words are shown.
  await ui.choose('search');
  await ui.type('query', 'tea');
  await ui.type('limit', '999');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=failed], .detail .result[data-phase=error]');
  await ui.shows('.detail .result', /999/);
  // A question whose call is cancelled is withdrawn.
  await ui.choose('delete');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions .question');
  await ui.press('Cancel', '.detail .result');
  await ui.page.waitForFunction(() => !document.querySelector('ox-questions .question'));
  assert.deepEqual(ui.errors, []);
}

async function everyRevision(world) {
  const ui = await example(world, 'notes');
  for (const revision of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28']) {
    await ui.press('Disconnect');
    await ui.revision(revision);
    await ui.press('Connect');
    await ui.connected();
    assert.equal(await ui.text(`${SHOWN} .server-head .chip.accent`), revision);
    await ui.choose('search');
    await ui.type('query', revision);
    await ui.call();
    await ui.shows('.detail .result', new RegExp(`${revision} 1`));
  }
  assert.deepEqual(ui.errors, []);
}

async function promptsAndCompletion(world) {
  const ui = await everything(world);
  await ui.section('prompts');
  await ui.choose('completable-prompt');
  await ui.type('department', 'Eng');
  await ui.page.waitForFunction(() => [...document.querySelectorAll('.detail datalist option')].some((it) => it.value === 'Engineering'));
  await ui.type('department', 'Engineering');
  await (await ui.field('name')).focus();
  await ui.page.waitForFunction(() => document.querySelectorAll('.detail datalist')[1].options.length > 0);
  const name = await ui.page.$$eval('.detail datalist', (all) => all[1].options[0].value);
  await ui.type('name', name);
  await ui.press('Get prompt', '.detail');
  await ui.shows('.detail .result', new RegExp(`user.*${name}`));
  await ui.choose('resource-prompt');
  await world.screenshot(ui, 'prompts');
  await ui.choose('args-prompt');
  await ui.press('Get prompt', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=failed]');
  await ui.shows('.detail .result .problem', /city/);
  assert.deepEqual(ui.errors, []);
}

async function resourcesAndSubscriptions(world) {
  const ui = await everything(world);
  await ui.section('resources');
  const first = await ui.page.waitForSelector('.entries [data-key^="r:"]');
  await first.click();
  await ui.press('Read', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=done]');
  await ui.press('Subscribe', '.detail');
  await ui.shows('.entries', /watched/);
  assert.ok(await first.evaluate((it) => it.isConnected && /watched/.test(it.textContent)), 'a button that changes is not replaced');
  await ui.section('tools');
  await ui.choose('toggle-subscriber-updates');
  await ui.call();
  await ui.section('resources');
  await ui.shows('.entries', /changed/);
  await ui.choose(`t:${await ui.page.$eval('.entries [data-key^="t:"]', (it) => it.dataset.key.slice(2))}`);
  const variable = await ui.page.$eval('.detail [data-argument]', (it) => it.dataset.argument);
  await ui.type(variable, '7');
  await ui.shows('.detail form', /URI.*\/7/);
  await ui.press('Read', '.detail form');
  await ui.page.waitForSelector('.detail .result[data-phase=done]');
  await world.screenshot(ui, 'resources');
  assert.deepEqual(ui.errors, []);
}

async function messagesOnTheWire(world) {
  const ui = await example(world, 'notes');
  await ui.choose('search');
  await ui.type('query', 'tea');
  await ui.call();
  await ui.section('messages');
  await ui.page.type('ox-messages input[type=search]', 'tools/call');
  await ui.page.waitForFunction(() => document.querySelectorAll('.messages .message').length === 2);
  await ui.shows('.message .latency', /(µs|ms|s)$/);
  await ui.press('Responses', 'ox-messages');
  await ui.page.waitForFunction(() => document.querySelectorAll('.messages .message').length === 1);
  await ui.page.click('.messages .message summary');
  await ui.shows('.message-body .json', /search/);
  await ui.page.browserContext().overridePermissions(new URL(ui.url).origin, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write']);
  await ui.press('Copy', '.message-body');
  await ui.shows('.message-body button', /Copied/);
  // Sent again, with another argument.
  await ui.press('Send again…', '.message-body');
  await ui.page.waitForSelector('.replay textarea');
  await ui.page.$eval('.replay textarea', (it) => {
    it.value = JSON.stringify({ name: 'search', arguments: { query: 'coffee', limit: 1 } });
  });
  await ui.press('Send', '.replay');
  await ui.shows('.replay .result', /done.*coffee 1/);
  await world.screenshot(ui, 'messages');
  await ui.section('latency');
  await ui.page.waitForSelector('.plot circle');
  await ui.shows('table', /tools\/call\s*2/);
  await world.screenshot(ui, 'latency');
  // A reload loses nothing.
  await ui.page.reload();
  await ui.connected();
  await ui.section('messages');
  await ui.shows('.messages', /coffee/);
  await ui.section('activity');
  await ui.shows('ox-activity', /search/);
  assert.deepEqual(ui.errors, []);
}

async function logsAndFindings(world) {
  const ui = await everything(world);
  await ui.choose('toggle-simulated-logging');
  await ui.call();
  await ui.section('logs');
  await ui.page.select('ox-logs select', 'debug');
  await ui.shows('.log', /level|message/);
  await world.screenshot(ui, 'logs');
  await ui.section('findings');
  await ui.shows('ox-findings', /Nothing to complain|→/);
  await ui.section('overview');
  await ui.shows('ox-overview', /Capabilities.*tools/);
  await world.screenshot(ui, 'overview');
  assert.deepEqual(ui.errors, []);
}

async function tasksAppsAndChanges(world) {
  const ui = await example(world, 'board');
  await ui.choose('export');
  await ui.type('pages', '6');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=task]');
  await ui.shows('.detail .result', /working.*page [1-6] of 6/);
  // It goes on while other tools are called.
  await ui.choose('grow');
  await ui.call();
  await ui.page.waitForSelector('.entries [data-key=extra]');
  await ui.choose('extra');
  await ui.call();
  await ui.section('activity');
  await ui.shows('ox-activity .result[data-phase=done]', /exported 6 pages/);
  await ui.section('tools');
  await ui.choose('export');
  await ui.type('pages', '500');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=task]');
  await ui.press('Cancel', '.detail .result');
  await ui.page.waitForSelector('.detail .result[data-phase=cancelled], .detail .result[data-phase=failed]');
  // Nested objects, choices and lists.
  await ui.choose('move');
  await ui.type('note', '3');
  await ui.type('x', '1.5');
  await ui.type('y', '2');
  await ui.select('color', 'green');
  await ui.press('Add item', '.detail');
  await ui.page.keyboard.type('Ada');
  await world.screenshot(ui, 'form');
  await ui.call();
  await ui.press('Raw', '.detail .result');
  await ui.shows('.detail .result', /"green"/);
  await ui.section('logs');
  await ui.shows('.log', /added a tool/);
  await ui.section('tools');
  await ui.choose('pin');
  await ui.type('text', 'Water the plants');
  await ui.call();
  const frame = await (await ui.page.waitForSelector('.app iframe')).contentFrame();
  const view = await (await frame.waitForSelector('iframe')).contentFrame();
  await view.waitForFunction(() => document.querySelector('#status').textContent === '2 notes');
  await view.click('#more');
  await view.waitForFunction(() => document.querySelector('#status').textContent === '3 notes');
  await world.screenshot(ui, 'app');
  // It goes on while the list changes, and while another section is shown.
  await ui.press('Refresh', 'ox-tools');
  await ui.section('messages');
  await ui.section('tools');
  await view.click('#more');
  await view.waitForFunction(() => document.querySelector('#status').textContent === '4 notes');
  await view.click('#link');
  await ui.shows('.asked', /open a link.*https:\/\/example\.com\/about/);
  await ui.press('Decline', '.asked');
  await view.waitForFunction(() => /declined/.test(document.querySelector('#status').textContent));
  await ui.press('Close app', '.app');
  await ui.page.waitForFunction(() => !document.querySelector('.app iframe'));
  assert.deepEqual(ui.errors, []);
}

async function configuredServers(world) {
  const folder = mkdtempSync(join(tmpdir(), 'oxmcp-ui-'));
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({
    mcpServers: { notes: { command: world.example('notes') }, broken: { command: world.example('notes'), args: ['broken'] }, missing: { command: '/no/such/program' } },
  }));
  writeFileSync(join(folder, '.mcp.json'), '{"mcpServers": {}}');
  mkdirSync(join(folder, '.vscode'));
  writeFileSync(join(folder, '.vscode/mcp.json'), JSON.stringify({
    inputs: [{ id: 'mode', type: 'promptString', description: 'How to start' }],
    servers: { asking: { type: 'stdio', command: world.example('notes'), args: ['${input:mode}'] } },
  }));
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder };
  const ui = await world.open([], {}, { cwd: folder, env });
  await ui.shows('.tabs', /notes.*broken.*missing.*asking/);
  // Nothing is started by itself.
  await ui.shows('.section', /not running/);
  await ui.press('Connect');
  await ui.shows('dialog', /Start notes\?.*examples\/notes/);
  await world.screenshot(ui, 'consent');
  await ui.press('Cancel', 'dialog');
  assert.equal(await ui.count('.dot.connected'), 0);
  await ui.press('Connect');
  await ui.press('Start', 'dialog');
  await ui.connected();
  // Once is enough.
  await ui.press('Disconnect');
  await ui.press('Connect');
  await ui.connected();
  const tab = async (name) => {
    await ui.page.evaluate((name) => [...document.querySelectorAll('.tab')].find((it) => it.textContent === name).click(), name);
    await ui.page.waitForFunction((name) => document.querySelector('.tab[aria-selected=true]').textContent === name, {}, name);
  };
  await tab('broken');
  await ui.press('Connect');
  await ui.press('Start', 'dialog');
  await ui.shows('.failure', /NOTES_FOLDER/);
  await world.screenshot(ui, 'failure');
  await ui.section('logs');
  await ui.shows('.log .level', /stderr/);
  await tab('asking');
  await ui.press('Connect');
  await ui.type('mode', 'quiet', 'dialog');
  await ui.press('Connect', 'dialog');
  await ui.press('Start', 'dialog');
  await ui.connected();
  await tab('notes');
  await ui.page.waitForSelector('.entries [data-key=search]');
  // An older revision is chosen.
  await ui.press('Disconnect');
  await ui.revision('2024-11-05');
  await ui.press('Connect');
  await ui.connected();
  assert.equal(await ui.text(`${SHOWN} .server-head .chip.accent`), '2024-11-05');
  assert.deepEqual(ui.errors, []);
}

async function hostileServer(world) {
  const ui = await (await world.open(['--', ...world.hostile])).connected();
  await ui.page.waitForSelector('.entries [data-key=content]');
  await ui.choose('content');
  assert.ok(await ui.count('.detail .field') < 1000, 'a schema that refers to itself makes no endless form');
  await ui.page.$$eval('.detail textarea.code', (all) => all.forEach((it) => { it.value ||= '{}'; }));
  await ui.call();
  await world.screenshot(ui, 'hostile');
  await ui.press('Raw', '.detail .result');
  await ui.choose('ask');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions [data-of=form]');
  await ui.press('Send', 'ox-questions');
  // The question with a schema that makes no sense can be refused, and so can the page that comes after it.
  await ui.page.waitForFunction(() => {
    const done = document.querySelector('.detail .result[data-phase=done]');
    // Once for each question: a card is inert after its answer.
    if (!done) [...document.querySelectorAll('ox-questions .question:not([inert]) button')].find((it) => it.textContent === 'Decline')?.click();
    return done;
  });
  await ui.choose('fail');
  await ui.call('failed');
  await ui.choose('odd');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result:not([data-phase=running])');
  await ui.choose('view');
  await ui.call();
  const frame = await (await ui.page.waitForSelector('.app iframe')).contentFrame();
  const view = await (await frame.waitForSelector('iframe')).contentFrame();
  await view.waitForFunction(() => document.querySelector('p').textContent.includes('Error'));
  assert.match(await view.$eval('p', (it) => it.textContent), /^SecurityError SecurityError \w*Error SecurityError$/);
  await ui.choose('flood');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('.detail .result[data-phase=done]');
  for (const section of ['prompts', 'resources', 'activity', 'messages', 'logs', 'latency', 'findings', 'overview']) {
    await ui.section(section);
    if (section === 'prompts') {
      await ui.page.focus('.detail [data-argument]');
      await ui.page.waitForFunction(() => document.querySelector('.detail datalist option'));
      await ui.press('Get prompt', '.detail');
      await ui.page.waitForSelector('.detail .result[data-phase=done]');
    }
    if (section === 'resources') {
      await ui.press('Read', '.detail');
      await ui.page.waitForSelector('.detail .result');
    }
    if (section === 'messages') {
      await ui.page.waitForSelector('.messages .message');
      assert.ok(await ui.count('.messages .message') <= 500);
      await ui.page.click('.messages li:last-child summary');
    }
    if (section === 'logs') assert.ok(await ui.count('.log li') <= 500);
  }
  const facts = await ui.page.evaluate(() => ({
    hacked: window.hacked, polluted: {}.polluted, scripts: document.scripts.length, images: [...document.images].map((it) => it.getAttribute('src')),
    links: [...document.querySelectorAll('a')].map((it) => it.protocol), handlers: document.querySelectorAll('[onerror], [onload]').length,
  }));
  assert.deepEqual([facts.hacked, facts.polluted, facts.scripts, facts.handlers], [undefined, undefined, 1, 0]);
  assert.ok(facts.images.every((it) => it === 'icon.svg' || it.startsWith('blob:')), facts.images.join());
  assert.ok(facts.links.every((it) => /^https?:$/.test(it)), facts.links.join());
  assert.ok(!(await ui.text('ox-app')).includes('\u202e'), 'invisible characters are shown');
  // Nothing was loaded but the files of the page and of the sandbox.
  const own = /^(http:\/\/127\.0\.0\.1:\d+\/|blob:|about:)/;
  assert.deepEqual(ui.requests.filter((it) => !own.test(it)), []);
  // The browser tells that it has blocked the app; the page itself has no error.
  assert.deepEqual(ui.errors.filter((it) => !/navigat|sandbox|Blocked a frame|Content Security Policy/i.test(it)), []);
}

/** Asks the program as the page does. */
const asPage = (url) => async (path, body = {}) => {
  const { origin, hash } = new URL(url);
  const headers = { 'x-oxmcp-token': hash.slice(1), 'content-type': 'application/json' };
  const response = await fetch(`${origin}/api/${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.ok(response.ok, `${path}: ${response.status}`);
  return response.status === 204 ? null : response.json();
};

/** Stops the scripts of a page, until the function that it returns is called. */
async function hold(page) {
  const session = await page.createCDPSession();
  await session.send('Debugger.enable');
  const paused = new Promise((resolve) => { session.once('Debugger.paused', resolve); });
  const held = page.evaluate(() => { debugger; });
  await paused;
  return async () => {
    await session.send('Debugger.resume');
    await held;
    await session.detach();
  };
}

async function eventsThatWereLost(world) {
  const folder = mkdtempSync(join(tmpdir(), 'oxmcp-ui-'));
  const [command, ...args] = world.hostile;
  const notes = { command: world.example('notes') };
  writeFileSync(join(folder, 'mcp.json'), JSON.stringify({ mcpServers: { asking: notes, ending: notes, noisy: { command, args } } }));
  const { url } = await world.start([], { cwd: folder, env: { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder } });
  const ask = asPage(url);
  const [asking, ending, noisy] = [0, 1, 2];
  for (const server of [asking, ending, noisy]) {
    const { consent } = await ask('connect', { server });
    await ask('connect', { server, command: consent });
  }
  const ui = await (await world.page(url)).connected();
  const connected = (count) => ui.page.waitForFunction((count) => document.querySelectorAll('.tab .dot.connected').length === count, {}, count);
  await connected(3);
  await ui.choose('delete');
  await ui.press('Call tool', '.detail');
  await ui.page.waitForSelector('ox-questions .question');
  // The page reads nothing while the call and its question end, and a server is disconnected.
  const resume = await hold(ui.page);
  const call = async (tool) => {
    await ask('run', { server: noisy, job: tool, operation: { kind: 'call', tool } });
    while ((await ask('state')).jobs.includes(tool));
  };
  // More than the browser reads ahead.
  await call('pour');
  const [job] = (await ask('state')).jobs;
  await ask('cancel', { job });
  while ((await ask('state')).jobs.length);
  await ask('disconnect', { server: ending });
  await call('flood');
  await resume();
  await ui.shows('.detail .result', /failed.*The result was dropped, because too much has happened since/);
  await ui.page.waitForFunction(() => !document.querySelector('ox-questions .question'));
  await connected(2);
  // The page works as before.
  await ui.choose('search');
  await ui.type('query', 'tea');
  await ui.call();
  await ui.shows('.detail .result', /tea 1/);
  assert.deepEqual(ui.errors, []);
}

async function boundsOfThePage(world) {
  const ui = await (await world.open(['--', ...world.hostile])).connected();
  const kept = () => ui.page.evaluate(async () => {
    const { store } = await import('/store.js');
    const [{ messages, logs, jobs }] = store.servers;
    return {
      messages: messages.length, characters: messages.reduce((sum, it) => sum + it.text.length, 0), last: messages.at(-1).text, logs: logs.length,
      results: [...jobs.values()].filter((it) => it.operation.tool === 'large').length, size: JSON.stringify([...jobs.values()]).length,
    };
  });
  await ui.choose('pour');
  await ui.call();
  await ui.call();
  const { messages, characters, last, logs } = await kept();
  // Bytes limit the messages before their number does, and the oldest are dropped.
  assert.ok(messages < 2400 && characters <= 32 << 20 && characters > 30 << 20, `${messages} messages have ${characters} characters`);
  assert.match(last, /poured/);
  assert.equal(logs, 2000);
  // The results of another page are kept as well.
  for (let call = 0; call < 12; call += 1) {
    await asPage(ui.url)('run', { server: 0, job: `large ${call}`, operation: { kind: 'call', tool: 'large' } });
    await ui.page.waitForFunction(async (job) => {
      const { store } = await import('/store.js');
      return store.servers[0].jobs.get(job)?.phase === 'done';
    }, {}, `large ${call}`);
  }
  const { results, size } = await kept();
  assert.ok(results === 11 && size <= 33 << 20, `${results} results have ${size} characters`);
  assert.deepEqual(ui.errors, []);
}

/** The page has no build step: its types are in comments. */
async function typesOfThePage() {
  const compiler = createRequire(import.meta.url).resolve('typescript/bin/tsc');
  const { status, stdout } = spawnSync(process.execPath, [compiler, '--project', import.meta.dirname], { encoding: 'utf8' });
  assert.equal(status, 0, stdout);
}

async function strangersAreRefused(world) {
  const { url } = await world.start(['--', world.example('notes')]);
  const { origin } = new URL(url);
  const page = await world.browser.newPage();
  await page.goto(`${origin}/`);
  await page.waitForFunction(() => /has no token/.test(document.querySelector('.banner').textContent));
  assert.equal(await page.$('ox-server'), null);
  await page.close();
  const post = (headers) => fetch(`${origin}/api/state`, { method: 'POST', headers });
  assert.equal((await post({})).status, 401);
  assert.equal((await post({ 'x-oxmcp-token': 'guess' })).status, 401);
  const token = new URL(url).hash.slice(1);
  assert.equal((await post({ 'x-oxmcp-token': token })).status, 200);
  assert.equal((await post({ 'x-oxmcp-token': token, origin: 'http://evil.example' })).status, 403);
}

async function keyboardAndNames(world) {
  const ui = await example(world, 'notes');
  await ui.choose('search');
  const press = (...keys) => keys.reduce((last, key) => last.then(() => ui.page.keyboard.press(key)), Promise.resolve());
  const focused = () => ui.page.evaluate(() => document.activeElement.textContent || document.activeElement.id || document.activeElement.tagName);
  // From the list to the form, the call, and its result, without a mouse.
  await ui.page.focus('.entries [data-key=search]');
  await press('ArrowUp', 'ArrowDown', 'Enter');
  await press('Tab');
  for (let steps = 0; steps < 10 && !/^field-/.test(await focused()); steps += 1) await press('Tab');
  await ui.page.keyboard.type('tea');
  await press('Enter');
  await ui.shows('.detail .result', /done.*tea 1/);
  await ui.page.focus('[data-section=tools]');
  await press('ArrowDown', 'Enter');
  await ui.page.waitForSelector('ox-prompts');
  // Each control has a name, and each id is there once.
  for (const section of ['overview', 'tools', 'prompts', 'resources', 'activity', 'messages', 'logs', 'latency', 'findings']) {
    await ui.section(section);
    const wrong = await ui.page.evaluate(() => {
      const named = (it) => it.textContent.trim() || it.getAttribute('aria-label') || it.getAttribute('aria-labelledby') || it.labels?.length || it.title || it.alt;
      const unnamed = [...document.querySelectorAll('button, input, select, textarea, iframe, [role=tab]')].filter((it) => !named(it) || it.matches('input, textarea, select') && !it.labels?.length && !it.getAttribute('aria-label'));
      const ids = [...document.querySelectorAll('[id]')].map((it) => it.id);
      return [...unnamed.map((it) => it.outerHTML.slice(0, 200)), ...ids.filter((it, index) => ids.indexOf(it) !== index)];
    });
    assert.deepEqual(wrong, [], section);
  }
  assert.deepEqual(ui.errors, []);
}

async function narrowAndDark(world) {
  const { url } = await world.start(['--', ...world.everything]);
  const narrow = await (await world.page(url, { width: 400, height: 800 })).connected();
  const fits = async (where) => {
    const width = await narrow.page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 400, `${where} is ${width} pixels wide`);
  };
  await narrow.choose('get-sum').catch(() => {});
  await narrow.type('a', '1');
  await narrow.type('b', '2');
  await narrow.call();
  await world.screenshot(narrow, 'narrow');
  await fits('tools');
  await narrow.press('‹ All');
  await world.screenshot(narrow, 'narrow-list');
  for (const section of ['overview', 'prompts', 'resources', 'activity', 'messages', 'logs', 'latency', 'findings']) {
    await narrow.section(section);
    await fits(section);
    if (section === 'messages') await world.screenshot(narrow, 'narrow-messages');
  }
  const dark = await (await world.page(url, { scheme: 'dark' })).connected();
  await dark.choose('get-structured-content');
  await dark.select('location', 'Chicago');
  await dark.call();
  await world.screenshot(dark, 'dark');
  const colors = await dark.page.evaluate(() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]);
  assert.deepEqual(colors, ['rgb(20, 23, 22)', 'rgb(228, 233, 231)']);
  assert.deepEqual([...narrow.errors, ...dark.errors], []);
}

export const cases = {
  'types of the page': typesOfThePage,
  'forms and results of tools': formsAndResults,
  'progress, and calls that are cancelled': progressAndCancel,
  'questions of an older server': questionsOfAnOlderServer,
  'questions of a newer server': questionsOfANewerServer,
  'every revision': everyRevision,
  'prompts and the completion of arguments': promptsAndCompletion,
  'resources, templates and subscriptions': resourcesAndSubscriptions,
  'messages on the wire, and their latencies': messagesOnTheWire,
  'logs, findings and the overview': logsAndFindings,
  'tasks, apps and lists that change': tasksAppsAndChanges,
  'servers of configuration files': configuredServers,
  'a hostile server runs nothing in the page': hostileServer,
  'events that were lost': eventsThatWereLost,
  'bounds of the page': boundsOfThePage,
  'strangers are refused': strangersAreRefused,
  'keyboard, and names for screen readers': keyboardAndNames,
  'narrow screens and the dark scheme': narrowAndDark,
};

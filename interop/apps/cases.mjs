// The cases. Each starts a host, and ends when what it checks has happened: nothing waits for a time.
import assert from 'node:assert/strict';

import { shows, viewOf } from './our-host.mjs';
import { framing } from './sites.mjs';

/** How often something is in a list. */
const count = (list, wanted) => list.filter((it) => it === wanted).length;

async function appInTheirHost({ theirHost, calls, screenshot }) {
  const { page, sandbox } = await theirHost();
  assert.equal(await page.evaluate(() => window.host.revision()), '2026-07-28');
  const forAgent = await page.evaluate(() => window.host.forAgent());
  assert.deepEqual(forAgent, ['delete', 'hostile', 'network', 'roll', 'stranger', 'weather']);
  await page.evaluate((url) => window.host.show('roll', { count: 3 }, url), sandbox);
  const proxy = await (await page.$('iframe')).contentFrame();
  const view = await viewOf(proxy);
  await shows(view, '#status', /^Rolled 1, 6, 5$/);
  await view.$eval('#again', (it) => it.click());
  await page.waitForFunction(() => window.host.heard.sizes.length > 0);
  await view.$eval('#reset', (it) => it.click());
  await shows(view, '#status', /^done$/);
  assert.deepEqual(calls(), ['roll', 'roll', 'reset']);
  assert.equal((await page.evaluate(() => window.host.appInfo())).name, 'dice');
  await screenshot(page, 'our-app-in-their-host');
  assert.deepEqual(await page.evaluate(() => window.host.close()), {});
  assert.equal(await page.$('iframe'), null);
}

async function theirAppInOurHost({ ourHost, calls, screenshot }) {
  const host = await ourHost();
  const view = await host.open('weather', { city: 'Bergen' });
  await shows(view, '#result', /^Bergen: 21.5 °C$/);
  await shows(view, '#input', /^Bergen$/);
  await shows(view, '#status', /^connected$/);
  const act = (name, ...args) => view.evaluate((name, args) => window.actions[name](...args), name, args);
  const [me, capabilities, tool] = JSON.parse(await act('host'));
  assert.equal(me.name, 'app-host');
  assert.ok(capabilities.serverTools && capabilities.sandbox.csp, JSON.stringify(capabilities));
  assert.equal(tool, 'weather');
  assert.match(await act('call', 'weather', { city: 'Oslo' }), /"celsius":21.5/);
  assert.match(await act('read', 'ui://test/official.html'), /doctype html/);
  assert.match(await act('list'), /ui:\/\/test\/dice.html/);
  assert.equal(await act('message', 'hello'), '{}');
  assert.equal(await act('context', 'sunny'), '{}');
  host.user.accepts = false;
  assert.match(await act('message', 'again'), /^-32000: .*the user has declined/);
  // It has not declared this mode.
  assert.match(await act('mode', 'fullscreen'), /-32000|availableDisplayModes/);
  assert.deepEqual(calls(), ['weather', 'weather']);
  await screenshot(host.page, 'their-app-in-our-host');
  await host.close();
  await host.page.waitForFunction(() => !document.querySelector('#views section'));
  assert.ok((await host.log()).some((line) => line.includes('the view ends')), 'it has heard of its end');
}

async function toolForTheAppOnly({ ourHost, calls }) {
  const host = await ourHost();
  assert.ok(host.lines.includes('refresh is for the app') && host.lines.includes('delete is for the model'), host.lines.join());
  assert.deepEqual(await host.tools(), ['delete', 'hostile', 'network', 'roll', 'stranger', 'weather']);
  const view = await host.open('weather', { city: 'Bergen' });
  await shows(view, '#status', /^connected$/);
  const call = (name) => view.evaluate((name) => window.actions.call(name, {}), name);
  assert.match(await call('refresh'), /"done"/);
  assert.match(await call('delete'), /^-32000: .*not for views/);
  assert.deepEqual(calls(), ['weather', 'refresh']);
}

async function policyBlocksRequests({ ourHost, declared, undeclared, screenshot }) {
  const host = await ourHost();
  const view = await host.open('network');
  await shows(view, '#declared', /^arrived$/);
  // Each attempt, by the directive that has blocked it. The browser shows only the origin of frames.
  const blocked = [
    'base-uri:/', 'connect-src:/beacon', 'connect-src:/events', 'connect-src:/fetch', 'connect-src:/socket', 'frame-src:/',
    'img-src:/image', 'img-src:/picture', 'media-src:/audio', 'object-src:/', 'script-src-elem:/script.js', 'style-src-elem:/style.css',
  ];
  await shows(view, '#blocked', new RegExp(`^${blocked.join(' ')}$`));
  await screenshot(host.page, 'blocked-requests');
  for (const way of ['form', 'navigation']) {
    const view = await host.open('network');
    await shows(view, '#declared', /^arrived$/);
    const proxy = view.parentFrame();
    await view.evaluate((way) => { leave[way](); }, way).catch(() => {});
    await host.until(() => proxy.childFrames().every((it) => it.url().startsWith('chrome-error:')));
  }
  // A request to the origin afterwards shows that it would have recorded the others.
  assert.equal(await (await fetch(`${undeclared.origin}/control`)).text(), 'arrived');
  assert.deepEqual(undeclared.paths, ['/control']);
  assert.deepEqual(declared.paths, ['/fetch', '/fetch', '/fetch']);
}

async function otherServersAreRefused({ ourHost, calls }) {
  const host = await ourHost();
  await host.call('stranger');
  await shows(host.page, '#problem', /ui:\/\/other\/view.html/);
  assert.equal(await host.views(), 0);
  const view = await host.open('weather', { city: 'Bergen' });
  await shows(view, '#status', /^connected$/);
  const act = (name, ...args) => view.evaluate((name, args) => window.actions[name](...args), name, args);
  assert.match(await act('call', 'their_tool', {}), /^-32602: .*has no tool/);
  assert.match(await act('read', 'ui://other/view.html'), /^-\d+: /);
  assert.deepEqual(calls(), ['weather']);
}

async function hostileFlood({ ourHost, calls }) {
  const host = await ourHost();
  const view = await host.open('hostile');
  await view.evaluate(() => initialize());
  const last = await view.evaluate(() => {
    for (let id = 0; id < 150; id += 1) post({ id, method: 'tools/call', params: { name: 'slow' } });
    for (let id = 0; id < 150; id += 1) post({ method: 'notifications/message', params: { level: 'info', data: 'x'.repeat(1000) } });
    return request('last', 'tools/list', {});
  });
  assert.equal(last, -32000);
  await host.until(() => count(calls(), 'slow') >= 32);
  assert.ok((await host.log()).length <= 50, 'the log of the page is bounded');
  // The host and other views go on.
  const dice = await host.open('roll', { count: 2 });
  await shows(dice, '#status', /^Rolled 1, 6$/);
  assert.equal(count(calls(), 'slow'), 32);
}

async function hostileMessages({ ourHost, calls }) {
  const host = await ourHost();
  const view = await host.open('hostile');
  // In the wrong order: before it is initialized it is told nothing, and nothing is done.
  const early = await view.evaluate(() => request('early', 'tools/call', { name: 'slow' }));
  assert.equal(early, -32000);
  assert.deepEqual(await view.evaluate(() => heard), ['early']);
  await view.evaluate(() => initialize());
  assert.equal(await view.evaluate(() => request('again', 'ui/initialize', {})), -32000);
  // It imitates the sandbox proxy, and sends what is not a message, and what is too large.
  await view.evaluate(() => {
    post({ method: 'ui/notifications/sandbox-proxy-ready', params: {} });
    post({ method: 'ui/notifications/sandbox-resource-ready', params: { html: 'x' } });
    for (const message of [null, 7, 'text', [], { jsonrpc: '1.0' }, { id: {}, method: 'ping' }]) parent.postMessage(message, '*');
    post({ id: 'large', method: 'tools/call', params: { name: 'slow', arguments: { text: 'x'.repeat(10.5 * 1024 * 1024) } } });
    post({ method: 'ui/notifications/size-changed', params: { height: 1e9 } });
  });
  // Tools of others.
  assert.equal(await view.evaluate(() => request('foreign', 'tools/call', { name: 'their_tool' })), -32602);
  assert.equal(await view.evaluate(() => request('model', 'tools/call', { name: 'delete' })), -32000);
  // Links that are not what they seem.
  for (const url of ['javascript:alert(1)', 'https://bank.example@evil.example/', 'https://a.example/\u202egpj.exe']) {
    assert.equal(await view.evaluate((url) => request(url, 'ui/open-link', { url }), url), -32000, url);
  }
  assert.deepEqual(host.asked, []);
  assert.deepEqual(calls(), ['hostile']);
  const answered = await view.evaluate(() => heard);
  assert.ok(!answered.includes('large'), 'it is dropped unread');
  assert.ok((await host.log()).some((line) => line.includes('message too large')));
  assert.ok(await host.page.$eval('#views iframe', (it) => it.offsetHeight <= 2000));
}

/** Makes a frame count the forged messages that arrive. */
const watch = (frame) => frame.evaluate(() => {
  window.forged = 0;
  addEventListener('message', ({ data }) => { window.forged += Number(data?.params?.forged === true); });
});

async function hostileEscape({ ourHost, calls, screenshot }) {
  const host = await ourHost();
  const dice = await host.open('roll', { count: 2 });
  await shows(dice, '#status', /^Rolled 1, 6$/);
  const view = await host.open('hostile');
  const url = host.page.url();
  const targets = [host.page.mainFrame(), dice.parentFrame(), dice];
  for (const target of targets) await watch(target);
  const escapes = await view.evaluate(() => {
    const attempt = (action) => {
      try {
        return String(action());
      } catch (error) {
        return error.name;
      }
    };
    const numbers = [6, 6, 6];
    // The page of the host, and all sandbox proxies and views, its own among them.
    for (const target of [top, top[0], top[1], top[0][0], top[1][0]]) {
      post({ method: 'ui/notifications/tool-result', params: { forged: true, content: [], structuredContent: { numbers } } }, target);
      post({ id: 1, method: 'tools/call', params: { forged: true, name: 'slow' } }, target);
    }
    return {
      document: attempt(() => parent.document.title),
      top: attempt(() => top.document.title),
      location: attempt(() => { top.location = 'about:blank'; return 'navigated'; }),
      popup: attempt(() => open('about:blank')),
      storage: attempt(() => localStorage.length),
      cookie: attempt(() => document.cookie),
      origin: attempt(() => origin),
    };
  });
  assert.deepEqual(escapes, {
    document: 'SecurityError', top: 'SecurityError', location: 'SecurityError', popup: 'null', storage: 'SecurityError',
    cookie: 'SecurityError', origin: 'null',
  });
  // All has arrived, and nobody has believed it. The proxy of the other view has passed nothing on.
  // The page of the host gets each message twice: its own proxy passes on what it got, as messages of its view.
  const arrived = [4, 2, 2];
  for (const [index, target] of targets.entries()) await target.waitForFunction((wanted) => window.forged === wanted, {}, arrived[index]);
  await shows(dice, '#status', /^Rolled 1, 6$/);
  await dice.$eval('#reset', (it) => it.click());
  await shows(dice, '#status', /^done$/);
  assert.deepEqual(calls(), ['roll', 'hostile', 'reset']);
  assert.deepEqual(await Promise.all(targets.map((it) => it.evaluate(() => window.forged))), arrived);
  assert.equal(host.page.url(), url);
  assert.equal(await host.views(), 2);
  await screenshot(host.page, 'hostile-view');
}

async function sandboxIsOnlyForItsHost({ browser, ourHost }) {
  const host = await ourHost();
  await host.open('weather', { city: 'Bergen' });
  const url = await host.page.$eval('#views iframe', (it) => it.src);
  const foreign = await framing(url);
  const page = await browser.newPage();
  const failed = new Promise((resolve) => {
    page.on('requestfailed', (request) => request.url() === url && resolve(request.failure().errorText));
  });
  await page.goto(foreign.origin);
  assert.match(await failed, /ERR_BLOCKED_BY_(RESPONSE|CSP)/);
  await page.close();
  foreign.close();
}

async function linkIsOpenedWithConsent({ ourHost }) {
  const host = await ourHost();
  const view = await host.open('weather', { city: 'Bergen' });
  await shows(view, '#status', /^connected$/);
  host.user.accepts = false;
  const link = (url) => view.evaluate((url) => window.actions.link(url), url);
  assert.match(await link('https://a.example/x'), /^-32000: .*the user has declined/);
  assert.equal(host.asked.length, 1);
  assert.match(host.asked[0], /OpenLink\("https:\/\/a.example\/x"\)/);
}

async function teardownHasALimit({ ourHost }) {
  const host = await ourHost();
  const view = await host.open('hostile');
  await view.evaluate(() => initialize());
  await host.close();
  await view.waitForFunction(() => heard.includes('ui/resource-teardown'));
  assert.equal(await host.views(), 1);
  // The view does not answer, and is removed all the same.
  await host.page.waitForFunction(() => !document.querySelector('#views section'));
}

export const cases = {
  'our app in a host on app-bridge': appInTheirHost,
  'an app on ext-apps in our host': theirAppInOurHost,
  'a tool for the app only': toolForTheAppOnly,
  'the policy blocks what is not declared': policyBlocksRequests,
  'apps and tools of other servers are refused': otherServersAreRefused,
  'a flood of a hostile view is bounded': hostileFlood,
  'messages of a hostile view have no effect': hostileMessages,
  'a hostile view does not leave its frame': hostileEscape,
  'a foreign page cannot show a view': sandboxIsOnlyForItsHost,
  'a link needs the consent of the user': linkIsOpenedWithConsent,
  'a view that ignores its teardown is removed': teardownHasALimit,
};

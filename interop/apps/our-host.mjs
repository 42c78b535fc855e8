// Our host: the example `apps` with a server, and its page in the browser.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { LIMIT } from '../browser.mjs';

/** Starts the host with the server, opens its page, and returns what the tests need of both. */
export async function startHost(browser, program, server) {
  const child = spawn(program, server, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = [];
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    url = /^Open (\S+) and/.exec(line)?.[1];
    if (url) break;
  }
  assert.ok(url, `the host does not start: ${lines.join('\n')}`);
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT);
  // The questions of the host, and the answers of the user.
  const asked = [];
  const user = { accepts: true };
  page.on('dialog', async (dialog) => {
    asked.push(dialog.message());
    await (user.accepts ? dialog.accept() : dialog.dismiss());
  });
  await page.goto(url);
  await page.waitForSelector('#tools form');
  return new OurHost(child, page, lines, asked, user);
}

class OurHost {
  constructor(child, page, lines, asked, user) {
    Object.assign(this, { child, page, lines, asked, user });
  }

  /** The tools that a person can call on the page, as an agent would. */
  tools() {
    return this.page.$$eval('#tools strong', (all) => all.map((it) => it.textContent).sort());
  }

  problem() {
    return this.page.$eval('#problem', (it) => it.textContent);
  }

  log() {
    return this.page.$$eval('#log li', (all) => all.map((it) => it.textContent));
  }

  /** The number of views that are shown. */
  views() {
    return this.page.$$eval('#views section', (all) => all.length);
  }

  /** Calls a tool on the page. */
  async call(tool, args = {}) {
    const forms = await this.page.$$('#tools form');
    for (const form of forms) {
      if (await form.$eval('strong', (it) => it.textContent) !== tool) continue;
      await form.$eval('input', (input, text) => { input.value = text; }, JSON.stringify(args));
      await form.$eval('button', (button) => button.click());
      return;
    }
    assert.fail(`the page has no tool ${tool}`);
  }

  /** Calls a tool, and returns the frame of its view, which is the newest on the page. */
  async open(tool, args) {
    const before = await this.views();
    await this.call(tool, args);
    await this.page.waitForFunction((count) => document.querySelectorAll('#views section').length > count, { timeout: LIMIT }, before);
    const proxy = await (await this.page.$('#views section iframe')).contentFrame();
    return viewOf(proxy);
  }

  /** Waits until something holds that no event of the page tells. */
  async until(holds) {
    const end = performance.now() + LIMIT;
    while (!holds()) {
      assert.ok(performance.now() < end, `timed out: ${holds}`);
      await this.page.evaluate(() => new Promise(requestAnimationFrame));
    }
  }

  /** Closes the newest view as a person would. */
  async close() {
    await this.page.$eval('#views section header button', (button) => button.click());
  }

  async end() {
    await this.page.close();
    const ended = new Promise((resolve) => { this.child.on('exit', resolve); });
    this.child.stdin.end('\n');
    await ended;
  }
}

/** The frame of the view in a sandbox proxy, once its document is there. */
export async function viewOf(proxy) {
  const handle = await proxy.waitForSelector('iframe', { timeout: LIMIT });
  const view = await handle.contentFrame();
  await view.waitForFunction(() => document.readyState === 'complete', { timeout: LIMIT });
  return view;
}

/** Waits until an element has a text. */
export async function shows(frame, selector, pattern) {
  const has = (selector, source) => new RegExp(source).test(document.querySelector(selector)?.textContent ?? '');
  try {
    await frame.waitForFunction(has, { timeout: LIMIT }, selector, pattern.source);
  } catch (error) {
    const text = await frame.$eval(selector, (it) => it.textContent).catch(() => 'nothing');
    assert.fail(`${selector} has ${JSON.stringify(text)}, and not ${pattern} (${error.message})`);
  }
}

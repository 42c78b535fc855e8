// The page of `oxmcp ui` in the browser, driven as a person would drive it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

import { LIMIT } from '../browser.mjs';

/** The server whose tab is selected. */
export const SHOWN = 'ox-server:not([hidden])';

/** Starts `oxmcp ui` with arguments, and returns the URL that it prints. */
export async function startUi(program, args, options = {}) {
  const child = spawn(program, ['ui', '--quiet', '--no-browser', ...args], { stdio: ['ignore', 'pipe', 'inherit'], ...options });
  const lines = createInterface({ input: child.stdout });
  const [url] = await Promise.race([
    new Promise((resolve) => { lines.once('line', (line) => resolve([line])); }),
    new Promise((_, reject) => { child.once('exit', (code) => reject(new Error(`oxmcp ui has ended with ${code}`))); }),
  ]);
  const end = async () => {
    const ended = new Promise((resolve) => { child.once('exit', resolve); });
    child.kill('SIGTERM');
    await ended;
  };
  return { url, end };
}

/** Opens the page. Everything that goes wrong on it is recorded. */
export async function openPage(browser, url, { width = 1280, height = 860, scheme = 'light' } = {}) {
  const page = await browser.newPage();
  page.setDefaultTimeout(LIMIT);
  await page.setViewport({ width, height });
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
  const errors = [];
  const requests = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => { if (message.type() === 'error') errors.push(`${message.text()} (${message.location().url})`); });
  page.on('dialog', (dialog) => { errors.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(url);
  await page.waitForSelector('ox-server');
  return new Ui(page, errors, requests);
}

class Ui {
  constructor(page, errors, requests) {
    Object.assign(this, { page, errors, requests });
  }

  /** Waits until the server is connected. */
  async connected() {
    await this.page.waitForSelector(`${SHOWN} .server-head .chip.good`);
    return this;
  }

  /** Shows a section. */
  async section(name) {
    await this.page.click(`${SHOWN} [data-section="${name}"]`);
    await this.page.waitForSelector(`${SHOWN} ox-${name}`);
  }

  /** Chooses an entry of the list, such as a tool. */
  async choose(key) {
    const selector = `.entries [data-key=${JSON.stringify(key)}]`;
    await this.page.waitForSelector(selector);
    await this.page.click(selector);
    await this.page.waitForFunction((selector) => document.querySelector(selector)?.getAttribute('aria-current') === 'true', {}, selector);
  }

  /** The control of a field, by the name in its label. */
  async field(name, within = '.detail form') {
    const handle = await this.page.waitForFunction((name, within) => {
      const label = [...document.querySelectorAll(`${within} label`)].find((it) => it.querySelector('code')?.textContent === name && it.offsetParent !== null);
      return label && document.getElementById(label.getAttribute('for'));
    }, {}, name, within);
    return handle.asElement();
  }

  /** Fills in a field. */
  async type(name, text, within) {
    const field = await this.field(name, within);
    await field.click({ count: 3 });
    await this.page.keyboard.press('Backspace');
    await field.type(text);
  }

  async select(name, text, within) {
    const field = await this.field(name, within);
    const value = await field.evaluate((it, text) => [...it.options].find((option) => option.textContent === text)?.value, text);
    assert.notEqual(value, undefined, `${name} has no choice ${text}`);
    await field.select(value);
  }

  /** Chooses the revision for the next connection. */
  async revision(revision) {
    const selector = `${SHOWN} .server-head select`;
    await this.page.waitForSelector(selector);
    await this.page.select(selector, revision);
  }

  /** The button with a label. */
  async button(label, within = 'body') {
    const button = await this.page.waitForFunction((label, within) => (
      [...document.querySelectorAll(`${within} button`)].find((it) => it.textContent === label && it.offsetParent !== null && !it.closest('[inert]'))
    ), {}, label, within);
    return button.asElement();
  }

  /** Clicks a button by its label. */
  async press(label, within) {
    await (await this.button(label, within)).click();
  }

  /** Waits until an element has a text. */
  async shows(selector, pattern) {
    const has = (selector, source) => [...document.querySelectorAll(selector)].some((it) => new RegExp(source, 's').test(it.textContent));
    try {
      await this.page.waitForFunction(has, {}, selector, pattern.source);
    } catch (error) {
      const texts = await this.page.$$eval(selector, (all) => all.map((it) => it.textContent.slice(0, 600)));
      assert.fail(`${selector} has ${JSON.stringify(texts)}, and not ${pattern} (${error.message})`);
    }
  }

  /** Calls the tool that is chosen, and waits for a result in a phase. */
  async call(phase = 'done', within = '.detail') {
    const before = await this.page.$$eval(`${within} .result`, (all) => all.length);
    await this.press('Call tool', within);
    await this.page.waitForFunction((within, before, phase) => {
      const all = document.querySelectorAll(`${within} .result`);
      return all.length > Math.min(before, 9) && all[0].dataset.phase === phase;
    }, {}, within, before, phase);
  }

  count(selector) {
    return this.page.$$eval(selector, (all) => all.length);
  }

  text(selector) {
    return this.page.$eval(selector, (it) => it.textContent);
  }
}

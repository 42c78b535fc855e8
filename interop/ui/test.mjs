// The page of `oxmcp ui` in headless Chromium: `test.mjs CHROMIUM OXMCP EXAMPLES DIRECTORY [WORD]`. OXMCP is the program, EXAMPLES the
// folder of the built examples, DIRECTORY gets the screenshots, and WORD selects cases by name. Without a CHROMIUM, all are skipped.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import puppeteer from 'puppeteer-core';

import { cases } from './cases.mjs';
import { openPage, startUi } from './page.mjs';

/** The time for a case. The slowest takes seconds. */
const LIMIT = 300_000;

const [chromium, oxmcp, examples, directory, word = ''] = process.argv.slice(2);
const chosen = Object.entries(cases).filter(([name]) => name.includes(word));
if (!chromium) {
  console.log(`0 passed, 0 failed, ${chosen.length} skipped`);
  process.exit();
}

mkdirSync(directory, { recursive: true });
const args = ['--no-sandbox', '--disable-dev-shm-usage', '--font-render-hinting=none'];
const browser = await puppeteer.launch({ executablePath: chromium, headless: 'shell', args });
let [passed, failed] = [0, 0];
for (const [name, run] of chosen) {
  const [ends, pages] = [[], []];
  const world = {
    browser,
    directory,
    example: (it) => join(examples, it),
    everything: [process.execPath, join(import.meta.dirname, '../node_modules/@modelcontextprotocol/server-everything/dist/index.js'), 'stdio'],
    hostile: [process.execPath, join(import.meta.dirname, 'hostile.mjs')],
    screenshot: (ui, name) => ui.page.screenshot({ path: join(directory, `${name}.png`) }),
    async start(args, options) {
      const started = await startUi(oxmcp, args, options);
      ends.push(started.end);
      return started;
    },
    async open(args, options, more) {
      const { url } = await world.start(args, more);
      return Object.assign(await world.page(url, options), { url });
    },
    async page(url, options) {
      const ui = await openPage(browser, url, options);
      pages.push(ui);
      ends.push(() => ui.page.close());
      return ui;
    },
  };
  const begin = performance.now();
  const tooLate = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`timed out after ${LIMIT / 1000} s`)), LIMIT).unref();
  });
  try {
    await Promise.race([run(world), tooLate]);
    passed += 1;
    console.log(`ok     ${name} (${((performance.now() - begin) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}: ${error.stack}`);
    for (const ui of pages) {
      console.log(`    errors of the page: ${JSON.stringify(ui.errors)}`);
      await world.screenshot(ui, `failed ${name}`).catch(() => {});
    }
  }
  for (const end of ends.reverse()) await end().catch(() => {});
}
await browser.close();
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed || !passed ? 1 : 0);

// The page of `oxmcp ui` in headless Chromium: `test.mjs CHROMIUM OXMCP EXAMPLES DIRECTORY [WORD]`. OXMCP is the program, EXAMPLES the
// folder of the built examples.
import { join, resolve } from 'node:path';

import { runCases } from '../browser.mjs';
import { cases } from './cases.mjs';
import { openPage, startUi } from './page.mjs';

const EVERYTHING = join(import.meta.dirname, '../node_modules/@modelcontextprotocol/server-everything/dist/index.js');

/** The world of the cases: the servers, and the pages that a case opens. */
function setUp(browser, directory, ...programs) {
  // Some servers are started in other folders.
  const [oxmcp, examples] = programs.map((it) => resolve(it));
  const [ends, pages] = [[], []];
  const world = {
    browser,
    example: (it) => join(examples, it),
    everything: [process.execPath, EVERYTHING, 'stdio'],
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

    /** Shows what went wrong on the pages of a case. */
    async failed(name) {
      for (const ui of pages) {
        console.log(`    errors of the page: ${JSON.stringify(ui.errors)}`);
        await world.screenshot(ui, `failed ${name}`).catch(() => {});
      }
    },

    /** Ends what a case has started, the last first. */
    async endCase() {
      for (const end of ends.splice(0).reverse()) await end().catch(() => {});
      pages.length = 0;
    },
  };
  return world;
}

await runCases(cases, setUp);

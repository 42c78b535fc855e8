// The world of the cases: the browser, the documents of the server's apps, and the origins to which they may connect or not.
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { join } from 'node:path';

import { build } from 'esbuild';

import { LIMIT } from '../browser.mjs';
import { startHost } from './our-host.mjs';
import { page, recorder, sandbox } from './sites.mjs';

const HERE = import.meta.dirname;
const ROOT = join(HERE, '..', '..');

/** A script and its packages as one text. */
async function bundle(name) {
  const options = { bundle: true, format: 'esm', write: false, minify: true, legalComments: 'none', logLevel: 'error' };
  const { outputFiles: [file] } = await build({ ...options, entryPoints: [join(HERE, name)] });
  return file.text;
}

/** A document with a bundled script. */
function document(script) {
  const inline = script.replaceAll('</script', '<\\/script');
  return `<!doctype html>
<meta charset="utf-8">
<title>Official</title>
<style>body { font: 16px sans-serif; margin: 1rem; } #result { font-size: 2rem; }</style>
<p id="status"></p><p id="input"></p><p id="result"></p>
<script type="module">${inline}</script>`;
}

async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const { port } = server.address();
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

/** Waits until the server accepts connections on the port. */
async function answers(server, port) {
  while (server.exitCode === null) {
    const socket = net.connect(port, '127.0.0.1');
    const connected = await new Promise((resolve) => {
      socket.on('connect', () => resolve(true));
      socket.on('error', () => resolve(false));
    });
    socket.destroy();
    if (connected) return;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  throw new Error(`the server does not start: it exited with ${server.exitCode}`);
}

/** Writes the documents. */
export async function setUp(browser, directory, server, host) {
  const [declared, undeclared] = [await recorder(), await recorder()];
  const write = (name, text) => writeFileSync(join(directory, `${name}.html`), text);
  const network = readFileSync(join(HERE, 'network.html'), 'utf8');
  write('network', network.replace('{{declared}}', declared.origin).replace('{{undeclared}}', undeclared.origin));
  write('hostile', readFileSync(join(HERE, 'hostile.html')));
  write('dice', readFileSync(join(ROOT, 'examples/apps/dice.html')));
  write('official', document(await bundle('official.mjs')));
  const calls = join(directory, 'calls');
  const ends = [];
  const world = {
    browser, declared, undeclared,
    /** The tools that the server was asked to call, in order. */
    calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').split('\n').filter(Boolean) : []),
    screenshot: (page, name) => page.screenshot({ path: join(directory, `${name}.png`) }),

    /** Our host with our server. */
    async ourHost() {
      rmSync(calls, { force: true });
      const started = await startHost(browser, host, [server, directory, declared.origin]);
      ends.push(() => started.end());
      return started;
    },

    /** The page of a host on ext-apps' `app-bridge`, with our server. */
    async theirHost() {
      rmSync(calls, { force: true });
      const port = await freePort();
      const child = spawn(server, [directory, declared.origin, `127.0.0.1:${port}`], { stdio: 'inherit' });
      ends.push(() => child.kill());
      await answers(child, port);
      const site = await page(await bundle('host.mjs'), port);
      const proxy = readFileSync(join(ROOT, 'crates/oxmcp-apps/src/host/sandbox_proxy.html'), 'utf8');
      const frames = await sandbox(proxy, site.origin);
      ends.push(site.close, frames.close);
      const tab = await browser.newPage();
      tab.setDefaultTimeout(LIMIT);
      ends.push(() => tab.close());
      tab.on('pageerror', (error) => console.log(`    error on the page: ${error.message}`));
      await tab.goto(site.origin);
      await tab.waitForFunction(() => document.title === 'ready');
      return { page: tab, sandbox: frames.origin };
    },

    /** Ends what a case has started, the last first. */
    async endCase() {
      for (const end of ends.splice(0).reverse()) await end();
    },

    end() {
      declared.close();
      undeclared.close();
    },
  };
  return world;
}

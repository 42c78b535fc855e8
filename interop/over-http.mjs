// Runs a server, a client that reaches it over HTTP, and a recorder between the two.
//
// Usage: `node over-http.mjs [--clean] [--nginx PROGRAM] TRANSCRIPT PATH -- SERVER... -- CLIENT...`. In the words of SERVER
// `{port}` stands for the port to listen on, which is also in the variable PORT; in those of CLIENT `{url}` stands for where
// to find the server. The transcript has the messages as `xtask record` writes them: `> ` from the client, `< ` from the
// server; and a line `# ` for each exchange. With `--clean` the server must end by itself, with status 0, when its standard
// input ends; any other is killed. With `--nginx` that program stands between the recorder and the server.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { startNginx } from './nginx.mjs';
import { Events } from './sse.mjs';

/** Less than what `cargo xtask test interop` waits: nobody but us can end what we have started. */
const LIMIT = 80_000;
const PATIENCE = 10_000;

const words = process.argv.slice(2);
const options = { clean: false, nginx: undefined };
while (words[0]?.startsWith('--')) {
  const option = words.shift();
  if (option === '--clean') options.clean = true;
  else if (option === '--nginx') options.nginx = words.shift();
  else throw new Error(`there is no option ${option}`);
}
const [transcript, path] = words;
const rest = words.slice(3);
const [server, client] = [rest.slice(0, rest.indexOf('--')), rest.slice(rest.indexOf('--') + 1)];

const record = (mark, text) => appendFileSync(transcript, `${mark} ${text.replaceAll(/\r?\n/g, ' ').trim()}\n`);
/** Keeps what is a message; streams of 2024-11-05 begin with an address, and some with an event that is empty. */
const recordMessage = (mark, text) => /^\s*[[{]/.test(text) && record(mark, text);

/** Passes each request on to the port, and each answer back, as they come. */
function recorder(port) {
  const agent = new http.Agent({ keepAlive: true });
  return http.createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray().catch(() => []));
    recordMessage('>', body.toString());
    const forward = () => {
      const { method, url, headers } = request;
      const onward = http.request({ agent, port, host: '127.0.0.1', method, path: url, headers }, (answer) => {
        relay(request, answer, response);
      });
      onward.on('error', (error) => {
        // A connection that was kept may be closed by the server just as it is used again.
        if (onward.reusedSocket && error.code === 'ECONNRESET' && !response.headersSent) return forward();
        record('#', `${method} ${url} failed: ${error.message}`);
        response.destroy();
      });
      response.on('close', () => {
        if (!response.writableEnded) record('#', `the client hung up on ${method} ${url}`);
        onward.destroy();
      });
      onward.end(body);
    };
    forward();
  });
}

function relay(request, answer, response) {
  const type = answer.headers['content-type'] ?? '';
  const notable = Object.entries(request.headers).filter(([name]) => /^(mcp-|accept$|last-event-id)/.test(name));
  const said = notable.map(([name, value]) => `${name}=${value}`).join(' ');
  record('#', `${request.method} ${request.url} ${said} -> ${answer.statusCode} ${type}`);
  response.writeHead(answer.statusCode, answer.headers);
  response.flushHeaders();
  const events = type.startsWith('text/event-stream') ? new Events((data) => recordMessage('<', data)) : undefined;
  const chunks = [];
  answer.on('data', (chunk) => {
    if (events) events.push(chunk);
    else chunks.push(chunk);
    response.write(chunk);
  });
  answer.on('end', () => {
    if (!events) recordMessage('<', Buffer.concat(chunks).toString());
    response.end();
  });
  answer.on('error', () => response.destroy());
}

async function listen(server) {
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return server.address().port;
}

async function freePort() {
  const server = net.createServer();
  const port = await listen(server);
  await new Promise((resolve) => { server.close(resolve); });
  return port;
}

const started = [];

function start(command, stdio) {
  // What some of them want to keep is of no use to anybody's real home.
  const env = { ...process.env, PORT: port, HOME: join(dirname(resolve(transcript)), 'home') };
  const child = spawn(command[0], command.slice(1), { stdio, env });
  child.ended = new Promise((resolve) => {
    child.on('error', (error) => {
      console.error(`cannot start ${command[0]}: ${error.message}`);
      resolve(127);
    });
    child.on('exit', (code, signal) => resolve(code ?? signal));
  });
  started.push(child);
  return child;
}

/** Waits until somebody listens on the port. */
async function listening(port, child) {
  let gone;
  child.ended.then((status) => { gone = status; });
  for (;;) {
    if (gone !== undefined) throw new Error(`the server ended with ${gone} before it listened`);
    const connected = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.unref();
      setTimeout(() => socket.destroy(), 1000).unref();
    });
    if (connected) return;
    await sleep(25);
  }
}

function finish(status) {
  for (const child of started) child.kill('SIGKILL');
  process.exit(status);
}

setTimeout(() => {
  console.error(`it took longer than ${LIMIT / 1000} s`);
  finish(1);
}, LIMIT).unref();
process.on('SIGTERM', () => finish(1));

const port = await freePort();
const command = server.map((word) => word.replace('{port}', port));
const serving = start(command, ['pipe', process.stderr, process.stderr]);
await listening(port, serving);
let target = port;
if (options.nginx) {
  target = await freePort();
  await listening(target, start(await startNginx(options.nginx, target, port), ['ignore', process.stderr, process.stderr]));
}
const url = `http://127.0.0.1:${await listen(recorder(target))}${path}`;

const status = await start(client.map((word) => word.replace('{url}', url)), 'inherit').ended;
if (options.clean) {
  serving.stdin.end();
  const ended = await Promise.race([serving.ended, sleep(PATIENCE)]);
  if (ended !== undefined) record('exit', String(ended));
}
finish(Number.isInteger(status) ? status : 1);

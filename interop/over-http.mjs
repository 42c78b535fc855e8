// Runs a server, a client that reaches it over HTTP, and a recorder between the two.
//
// Usage: `node over-http.mjs [OPTION...] TRANSCRIPT PATH -- SERVER... -- CLIENT...`. In the arguments of SERVER, `{port}` is
// replaced by the port to listen on, which is also in the variable PORT; in those of CLIENT, `{url}` is replaced by the URL of
// the server. The transcript has the messages in the format of `xtask record`: `> ` from the client, `< ` from the server; and a
// line `# ` for each exchange. With `--clean` the server must exit with status 0 when its standard input ends; other servers
// are killed. With `--nginx PROGRAM`, nginx runs between the recorder and the server.
//
// With `--nodes REDIS` two servers share a Redis, whose address replaces `{redis}` in the arguments of SERVER. Requests go to them
// in turn, and a client that posts to `/control/EVENT` triggers an event; see `nodes.mjs`. With `--nginx` as well, there are three
// servers behind nginx. Their variable ORDERS names a file, which `/control/orders` returns.
//
// With `--tls HOW` the client must use TLS, with a certificate of an unknown authority: the client is first run without the
// variables that name the authority, and must fail, and then with them. HOW is `https`, `http2`, or the nginx in front of the
// recorder. With `--proxy` the client must use a proxy, which the usual variables name.
//
// With `--issuer TOKENS` an authorization server issues tokens for the server; see `authorization/issuer.mjs`. Then `{issuer}` and
// `{url}` are replaced in the arguments of both, and `{tokens}` by TOKENS in those of SERVER. The variable BROWSER names a program that
// logs in.
import { spawn } from 'node:child_process';
import { appendFileSync, chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { delimiter, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { startNginx, startNginxForNodes, startNginxWithTls } from './nginx.mjs';
import { Nodes } from './nodes.mjs';
import { startProxy } from './proxy.mjs';
import { Events } from './sse.mjs';
import { makeCertificates, read } from './tls.mjs';

/** Less than the timeout of `cargo xtask test interop`: only this process can end the processes that it has started. */
const LIMIT = 280_000;
const PATIENCE = 60_000;

const words = process.argv.slice(2);
const options = { clean: false, nginx: undefined, nodes: undefined, tls: undefined, proxy: false, issuer: undefined };
while (words[0]?.startsWith('--')) {
  const option = words.shift();
  if (option === '--clean') options.clean = true;
  else if (option === '--nginx') options.nginx = words.shift();
  else if (option === '--nodes') options.nodes = words.shift();
  else if (option === '--tls') options.tls = words.shift();
  else if (option === '--proxy') options.proxy = true;
  else if (option === '--issuer') options.issuer = words.shift();
  else throw new Error(`unknown option ${option}`);
}
const [transcript, path] = words;
const rest = words.slice(3);
const [server, client] = [rest.slice(0, rest.indexOf('--')), rest.slice(rest.indexOf('--') + 1)];

const record = (mark, text) => appendFileSync(transcript, `${mark} ${text.replaceAll(/\r?\n/g, ' ').trim()}\n`);
/** Records messages only: server metadata is JSON as well, and streams of 2024-11-05 begin with a URL. */
const recordMessage = (mark, text) => /^\s*[[{][^]*"jsonrpc"/.test(text) && record(mark, text);

/** Forwards each request to the port, or to the next node, and streams the response back. */
function recorder(port, certificates) {
  return serverFor(certificates, async (request, response) => {
    const body = Buffer.concat(await request.toArray().catch(() => []));
    const event = nodes?.events[/^\/control\/(.*)/.exec(request.url)?.[1]];
    if (event) {
      record('#', `begins: ${request.url}`);
      await event();
      record('#', `is over: ${request.url}`);
      return response.end();
    }
    if (request.url === '/control/orders') return response.end(readFileSync(orders));
    recordMessage('>', body.toString());
    const forward = ([port, ...others]) => {
      const { method, url } = request;
      const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !isOfConnection(name)));
      const onward = http.request({ agent, port, host: '127.0.0.1', method, path: url, headers }, (answer) => {
        relay(request, answer, response);
      });
      onward.on('error', (error) => {
        // The server may close an idle connection just as it is reused.
        if (onward.reusedSocket && error.code === 'ECONNRESET' && !response.headersSent) return forward([port]);
        if (error.code === 'ECONNREFUSED' && others.length > 0) return forward(others);
        record('#', `${method} ${url} failed: ${error.message}`);
        if (nodes && !options.nginx && !response.headersSent) response.writeHead(502).end();
        else response.destroy();
      });
      response.on('close', () => {
        if (!response.writableEnded) record('#', `the client hung up on ${method} ${url}`);
        onward.destroy();
      });
      onward.end(body);
    };
    forward(nodes && !options.nginx ? nodes.ports(body) : [port]);
  });
}

function serverFor(certificates, serve) {
  if (options.tls === 'https') return https.createServer(read(certificates), serve);
  if (options.tls !== 'http2') return http.createServer(serve);
  // No limit on streams: Node also counts streams that it has just answered, and resets excess ones with ENHANCE_YOUR_CALM,
  // which does not tell the client that the request was not processed. nginx limits streams.
  return http2.createSecureServer(read(certificates), serve);
}

/** Whether a header is hop-by-hop, and must not be forwarded. */
function isOfConnection(name) {
  return name.startsWith(':') || ['connection', 'keep-alive', 'transfer-encoding'].includes(name);
}

function relay(request, answer, response) {
  const type = answer.headers['content-type'] ?? '';
  const notable = Object.entries(request.headers).filter(([name]) => /^(mcp-|accept$|last-event-id|x-front-protocol)/.test(name));
  const said = notable.map(([name, value]) => `${name}=${value}`).join(' ');
  record('#', `${request.method} ${request.url} HTTP/${request.httpVersion} ${said} -> ${answer.statusCode} ${type}`);
  const headers = Object.entries(answer.headers).filter(([name]) => request.httpVersionMajor === 1 || !isOfConnection(name));
  response.writeHead(answer.statusCode, Object.fromEntries(headers));
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

/** Each process starts at another port, below the ephemeral range, so that no other program takes it before the server does. */
let nextPort = 10_000 + (process.pid % 2_000) * 10;

async function freePort() {
  for (;;) {
    const server = net.createServer();
    const port = nextPort++;
    const isFree = await new Promise((resolve) => {
      server.on('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

const started = [];

function start(command, stdio, variables = {}) {
  // Some of them store files, which must not end up in the user's home.
  const env = { ...process.env, PORT: port, ORDERS: orders, HOME: join(dirname(resolve(transcript)), 'home'), ...variables };
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

/** Waits until a process listens on the port. */
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

/** A client that does not know the authority must fail. Its output is recorded. */
async function refusesStrangers(command, variables) {
  const child = start(command, ['ignore', 'ignore', 'pipe'], { ...variables, SSL_CERT_FILE: undefined });
  const said = child.stderr.toArray();
  const status = await child.ended;
  if (status === 0) throw new Error('the client trusts an authority that it does not know');
  record('#', `output without the authority: ${Buffer.concat(await said)}`);
}

function finish(status) {
  for (const child of started) child.kill('SIGKILL');
  process.exit(status);
}

setTimeout(() => {
  console.error(`timed out after ${LIMIT / 1000} s`);
  finish(1);
}, LIMIT).unref();
process.on('SIGTERM', () => finish(1));

/** Starts an authorization server, and sets up a browser. Returns the issuer, and the variables for clients. */
async function startAuthorization(resource) {
  const { startIssuer } = await import('./authorization/issuer.mjs');
  const { issuer, variables } = await startIssuer({ tokens: options.issuer, resource, say: (text) => record('#', text) });
  const directory = join(dirname(resolve(transcript)), 'browser');
  const browser = join(directory, 'xdg-open');
  mkdirSync(directory, { recursive: true });
  writeFileSync(browser, `#!/bin/sh\nexec '${process.execPath}' '${join(import.meta.dirname, 'authorization/browser.mjs')}' "$@"\n`);
  chmodSync(browser, 0o755);
  return [issuer, { ...variables, ISSUER: issuer, BROWSER: browser, PATH: `${directory}${delimiter}${process.env.PATH}` }];
}

const port = await freePort();
const target = options.nginx ? await freePort() : port;
const certificates = options.tls && makeCertificates();
const nodes = options.nodes && new Nodes(options.nodes, start, { listening, freePort, listen });
// With a reused connection it would be unknown whether a killed node has begun to process the request.
const agent = new http.Agent({ keepAlive: !nodes });
const orders = resolve(`${transcript}.orders`);
let door = await listen(recorder(target, certificates));
const resource = `http://127.0.0.1:${door}${path}`;
const [issuer, variables] = options.issuer ? await startAuthorization(resource) : [undefined, {}];
const commandOf = (port, redis) => server.map((word) => word
  .replace('{port}', port).replace('{redis}', `redis://127.0.0.1:${redis}`)
  .replace('{url}', resource).replace('{issuer}', issuer).replace('{tokens}', options.issuer));
const ports = [port, await freePort(), ...(options.nginx ? [await freePort()] : [])];
writeFileSync(orders, '');
await nodes?.begin(ports, commandOf);
const serving = nodes ? undefined : start(commandOf(port), ['pipe', process.stderr, process.stderr], variables);
if (serving) await listening(port, serving);
if (options.nginx) {
  const nginx = nodes ? startNginxForNodes(options.nginx, target, ports) : startNginx(options.nginx, target, port);
  await listening(target, start(await nginx, ['ignore', process.stderr, process.stderr]));
}
const isOfNode = ['https', 'http2', undefined].includes(options.tls);
if (!isOfNode) {
  const behind = door;
  door = await freePort();
  const nginx = await startNginxWithTls(options.tls, door, behind, certificates);
  await listening(door, start(nginx, ['ignore', process.stderr, process.stderr]));
}
const url = `${options.tls ? 'https' : 'http'}://127.0.0.1:${door}${path}`;
const asking = client.map((word) => word.replace('{url}', url).replace('{issuer}', issuer));

if (options.proxy) {
  const proxy = await startProxy((what, whose) => record('#', `by way of the proxy: ${what} ${whose}`));
  for (const name of ['http_proxy', 'https_proxy']) variables[name] = proxy;
}
if (options.tls) {
  await refusesStrangers(asking, variables);
  for (const name of ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS']) variables[name] = certificates.authority;
}
const status = await start(asking, 'inherit', variables).ended;
if (options.clean) {
  // A server that closes keeps idle connections.
  agent.destroy();
  serving.stdin.end();
  const ended = await Promise.race([serving.ended, sleep(PATIENCE)]);
  if (ended !== undefined) record('exit', String(ended));
}
finish(Number.isInteger(status) ? status : 1);

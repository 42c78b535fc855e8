// The client of tasks in npm `ext-tasks`, on the TypeScript SDK 2.x. MODE is `legacy` or a modern revision. Over HTTP, another
// process resumes a detached task: this script, with a reference as its last argument.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

import { overHttp } from './checks.mjs';
import { Person, accept, text } from './features.mjs';

const TASKS = 'io.modelcontextprotocol/tasks';
/** So many sacks that the task does not end during the test. */
const FORGOTTEN = 1_000_000;

const [mode, strictness, command, ...args] = process.argv.slice(2);
const [url, reference] = args;
const person = new Person();

/** The SDK does not read the responses of tasks: such requests are sent directly on its transport. */
function rawDispatch(transport) {
  const waiting = new Map();
  const take = transport.onmessage;
  let count = 0;
  transport.onmessage = (message, extra) => {
    const answered = waiting.get(message.id);
    if (!answered) return take(message, extra);
    waiting.delete(message.id);
    return answered(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
  };
  return (request, { signal } = {}) => new Promise((resolve, reject) => {
    const id = `task-${count += 1}`;
    waiting.set(id, resolve);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
    transport.send({ jsonrpc: '2.0', id, ...request }, { requestSignal: signal }).catch(reject);
  });
}

const clientInfo = { name: 'interop-tasks', version: '1.0.0' };
const clientCapabilities = { elicitation: {} };
const negotiation = mode.startsWith('2') ? { pin: mode } : mode;
const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: negotiation } });
const transport = overHttp(command) ? new StreamableHTTPClientTransport(new URL(url)) : new StdioClientTransport({ command, args });
await client.connect(transport);
const modern = client.getProtocolEra() === 'modern';
const protocolVersion = client.getNegotiatedProtocolVersion();

const session = createTaskSessionFromClient(client, {
  endpointId: 'interop-server',
  onInputRequest: async ({ kind, params }) => {
    assert.equal(kind, 'elicitation');
    return person.elicit(params);
  },
  ...(modern && { rawDispatch: rawDispatch(transport), v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities } }),
});

/** Calls a tool as a task, in revisions where the client decides that. */
async function begin(name, args) {
  const execution = await session.callTool(name, args, { task: { preference: 'require' } });
  assert.equal(execution.kind, 'task');
  return execution;
}

async function outcome(execution, options) {
  return (await execution.settle(options)).outcome;
}

/** The result of the task of a reference. */
async function resume(reference) {
  const { status, result } = await outcome(await session.resumeTask(reference));
  assert.equal(status, 'completed');
  return text(result);
}

/** The same in another process; not over stdio, where each process starts its own server. */
async function resumeElsewhere(reference) {
  if (!overHttp(command)) return resume(reference);
  const script = [fileURLToPath(import.meta.url), mode, strictness, command, url, JSON.stringify(reference)];
  const { stdout } = await promisify(execFile)(process.execPath, script);
  return stdout.trim();
}

const checks = {
  'is offered tasks, in settings without members': () => {
    const { extensions, tasks } = client.getServerCapabilities();
    if (modern) assert.deepEqual([extensions[TASKS], tasks], [{}, undefined]);
    else assert.ok(tasks.requests.tools.call);
  },
  'is answered at once where nothing is to be waited for': async () => {
    const execution = await session.callTool('mill', { sacks: 0 });
    assert.equal(execution.kind, 'immediate');
    assert.equal(text((await outcome(execution)).result), '0 sacks of flour');
  },
  'follows a task to its end': async () => {
    const seen = [];
    const { status, result } = await outcome(await begin('mill', { sacks: 50 }), { onEvent: ({ task }) => { if (task) seen.push(task); } });
    assert.equal(status, 'completed');
    assert.equal(text(result), '50 sacks of flour');
    assert.equal(seen[0].status, 'working');
    assert.ok(seen.every(({ suggestedPollIntervalMs }) => suggestedPollIntervalMs === 50));
    if (modern) assert.ok(seen.some(({ statusMessage }) => /^sack \d+/.test(statusMessage)), JSON.stringify(seen));
  },
  // In 2025-11-25 it requests the result only after the task has ended, so it never receives the questions of the task.
  ...(modern && {
    'answers what a task asks, one question after the other': async () => {
      person.answers = [accept({ flour: 'rye' }), accept({ loaves: 3 })];
      const { status, result } = await outcome(await begin('bake', {}));
      assert.equal(status, 'completed');
      assert.equal(text(result), '3 loaves of rye');
      assert.deepEqual(person.asked.splice(0).map(({ message }) => message), ['Of which flour?', 'How many loaves of rye?']);
    },
    'declines what a task asks': async () => {
      person.answers = [{ action: 'decline' }];
      const declined = await outcome(await begin('bake', {}));
      assert.equal(declined.status, 'completed');
      assert.equal(declined.result.isError, true);
      assert.equal(person.asked.splice(0).length, 1);
    },
  }),
  'reads the errors of a tool and of the protocol': async () => {
    const burnt = await outcome(await begin('burn', { protocol: false }));
    assert.equal(burnt.status, modern ? 'completed' : 'failed');
    if (modern) assert.deepEqual([burnt.result.isError, text(burnt.result)], [true, 'it is burnt']);
    const refused = await outcome(await begin('burn', { protocol: true }));
    assert.equal(refused.status, 'failed');
    // In 2025-11-25 it does not request the result of a failed task either: it has the status message.
    if (modern) assert.equal(refused.error.code, -32602);
    assert.match(refused.error.message, /nothing to burn/);
  },
  'cancels a task': async () => {
    const execution = await begin('mill', { sacks: FORGOTTEN });
    const ended = execution.result();
    await execution.cancel();
    assert.equal((await ended).status, 'cancelled');
    assert.equal((await session.task(execution.handle.taskId).snapshot()).status, 'cancelled');
  },
  [overHttp(command) ? 'hands a task on to another process' : 'lets a task go, and takes it up again']: async () => {
    const execution = await begin('mill', { sacks: 50 });
    let handedOn;
    await execution.handoff((reference) => { handedOn = structuredClone(reference); });
    // The task is released when this side stops following it.
    await execution.result();
    assert.equal(await resumeElsewhere(handedOn), '50 sacks of flour');
  },
  'is refused a task that there is not': async () => {
    await assert.rejects(session.task('no-such-task').snapshot(), { code: -32602 });
  },
  'waits for the call where it does not ask for a task': async () => {
    assert.equal(text(await client.callTool({ name: 'mill', arguments: { sacks: 20 } })), '20 sacks of flour');
  },
};

if (reference && overHttp(command)) {
  console.log(await resume(JSON.parse(reference)));
} else {
  for (const [name, body] of Object.entries(checks)) {
    try {
      await body();
    } catch (error) {
      throw new Error(`${name}: ${error?.stack ?? error}`);
    }
  }
  console.log(JSON.stringify({ revision: protocolVersion, checks: Object.keys(checks) }));
}
await session.close();
await transport.terminateSession?.();
await client.close();

// The checks of every TypeScript client against a server with the tools of `interop-server`.
//
// A client script adapts its SDK to `{ revision, listTools, call, ping?, onToolsChanged?, close }`, and for the features of
// `features.mjs` to `{ prompts, prompt, resources, templates, read, complete, watch, logs, notFound?, logging? }`, and passes
// it to `main`. With the command `login` it has a `login` as well; see `login.mjs`.
// Usage of each script: `node SCRIPT MODE strict|lenient COMMAND ARGS...`, where `http URL`, `login URL` and `sse URL` are
// commands for a running server; `nodes URL` and `rolling URL` are for several servers, which fail during the checks; see
// `nodes.mjs` and `rolling.mjs`. `strict` is for our server; `lenient` is for the third-party servers in `../servers`, which differ
// where the specification leaves a choice.
import assert from 'node:assert/strict';

import { Person, featureChecks, text } from './features.mjs';
import { gatewayChecks, isGateway } from './gateway.mjs';
import { checkNodes } from './nodes.mjs';
import { checkRolling } from './rolling.mjs';

const FORGOTTEN = 1_000_000;

/** Runs the checks in order; the first failure ends the script. Returns the names of the passed checks. */
async function check(peer, strict, person) {
  const held = [];
  const tools = new Map((await peer.listTools()).map((tool) => [tool.name, tool]));
  const has = (name) => strict || tools.has(name);

  const checks = isGateway(tools) ? gatewayChecks(peer, person, tools) : {
    'lists the tools with object schemas': () => {
      for (const name of ['add', 'divide', 'slow', 'echo']) {
        assert.equal(tools.get(name)?.inputSchema.type, 'object', `tools/list must offer ${name}`);
      }
    },
    'calls a tool': async () => {
      const sum = await peer.call('add', { a: 1, b: 2 });
      assert.ok(!sum.isError, JSON.stringify(sum));
      assert.equal(Number(text(sum)), 3);
      structured(peer.revision, sum, strict);
    },
    'echoes text that JSON must escape': async () => {
      const said = 'line\nbreak, "quotes", \u0000, é and 🦀';
      assert.equal(text(await peer.call('echo', { text: said })), said);
    },
    'reads a tool error': async () => {
      assert.equal(text(await peer.call('divide', { a: 1, b: 4 })), '0.25');
      const failed = await peer.call('divide', { a: 1, b: 0 });
      assert.equal(failed.isError, true);
      assert.match(text(failed), /b must not be 0/);
    },
    'reads a validation error as a tool error': async () => {
      const failed = await peer.call('add', { a: 'one', b: 2 });
      assert.equal(failed.isError, true, JSON.stringify(failed));
      if (strict) assert.match(text(failed), /\/a\b/, 'the error must point at the argument');
    },
    'is refused an unknown tool': async () => {
      const answer = await peer.call('no_such_tool', {}).catch((error) => error);
      if (strict || answer instanceof Error) assert.equal(answer.code, -32602, String(answer));
      else assert.equal(answer.isError, true, JSON.stringify(answer));
    },
    'follows the progress of a slow tool': async () => {
      const seen = [];
      const done = await peer.call('slow', { steps: 5 }, { onprogress: ({ progress }) => seen.push(progress) });
      assert.equal(text(done), 'done');
      assert.deepEqual(seen, [1, 2, 3, 4, 5]);
    },
    'is answered at once while a slow tool runs': async () => {
      let slowIsDone = false;
      const slow = peer.call('slow', { steps: 25 }).then(() => { slowIsDone = true; });
      await peer.call('echo', { text: 'quick' });
      assert.equal(slowIsDone, false, 'the quick call waited for the slow one');
      await slow;
    },
    'cancels a slow tool': async () => {
      const stop = new AbortController();
      const call = peer.call('slow', { steps: FORGOTTEN }, { signal: stop.signal, onprogress: () => stop.abort('enough') });
      await assert.rejects(call, 'the call must end by its cancellation');
      assert.equal(text(await peer.call('echo', { text: 'still here' })), 'still here');
    },
    ...(peer.ping && { 'pings': () => peer.ping() }),
    ...(has('delete') && featureChecks(peer, person, strict)),
    ...(peer.onToolsChanged && has('grow') && {
      'is notified of a new tool': async () => {
        let tell;
        const changed = new Promise((resolve) => { tell = resolve; });
        const stop = await peer.onToolsChanged(() => tell());
        assert.equal(text(await peer.call('grow', {})), 'grown');
        await changed;
        await stop?.();
        assert.ok((await peer.listTools()).some((tool) => tool.name === 'grown'));
      },
    }),
    ...(has('wait') && {
      'sees progress before the call is over': async () => {
        let tell;
        const begun = new Promise((resolve) => { tell = resolve; });
        const waiting = peer.call('wait', {}, { onprogress: tell });
        await begun;
        assert.equal(text(await peer.call('go', {})), 'gone');
        assert.equal(text(await waiting), 'waited');
      },
    }),
    ...(has('panic') && {
      'survives a panic in a tool': async () => {
        const error = await peer.call('panic', {}).catch((error) => error);
        assert.equal(error.code, -32603, String(error));
        assert.equal(text(await peer.call('echo', { text: 'alive' })), 'alive');
      },
    }),
    ...(has('print') && {
      'survives a tool that prints to standard output': async () => {
        assert.equal(text(await peer.call('print', {})), 'printed');
      },
    }),
    ...(peer.login && {
      'has logged in once': () => assert.equal(peer.login.logins, 1),
      ...(peer.login.clientMetadataUrl && {
        'gets other scopes for a tool that needs them': async () => {
          assert.equal(text(await peer.call('write', {})), 'ann writes');
          assert.equal(peer.login.logins, 2);
        },
      }),
      'gets other tokens once its own are revoked': async () => {
        const { logins } = peer.login;
        await peer.login.revoke();
        assert.equal(text(await peer.call('echo', { text: 'again' })), 'again');
        assert.ok(peer.login.logins > logins, 'a token that was revoked must be refused');
      },
    }),
  };

  for (const [name, body] of Object.entries(checks)) {
    try {
      await body();
    } catch (error) {
      throw new Error(`${name}: ${error?.stack ?? error}`);
    }
    held.push(name);
  }
  return held;
}

/** Whether the command names the URL of a running server. */
export const overHttp = (command) => ['http', 'login', 'nodes', 'rolling', 'sse'].includes(command);

/** The sum is a number: bare for the modern revision, in an object for the legacy ones that have structured content. */
function structured(revision, sum, strict) {
  if (revision < '2025-06-18') return;
  const expected = revision < '2026' ? { result: 3 } : 3;
  if (strict) return assert.deepEqual(sum.structuredContent, expected);
  assert.ok([3, sum.structuredContent?.result].includes(3), JSON.stringify(sum));
}

/**
 * `connect(mode, command, args, person)` resolves to the adapted client, which passes the server's questions to the person. Prints
 * one line of JSON and sets the exit status.
 */
export async function main(connect) {
  const [mode, strictness, command, ...args] = process.argv.slice(2);
  const person = new Person();
  const peer = await connect(mode, command, args, person);
  const kinds = { nodes: () => checkNodes(peer, args[0]), rolling: () => checkRolling(peer, person, args[0]) };
  const held = await (kinds[command] ?? (() => check(peer, strictness === 'strict', person)))();
  await peer.close();
  console.log(JSON.stringify({ revision: peer.revision, checks: held }));
}

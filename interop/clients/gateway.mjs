// The checks of every TypeScript client against a gateway of the servers in `../servers.json`.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';

import { accept, text } from './features.mjs';

/** Whether the tools are those of the gateway. */
export const isGateway = (tools) => tools.has('everything_echo');

/** The folder that the servers of this case have for their files. */
const scratch = process.argv.find((it) => it.startsWith('SCRATCH='))?.slice('SCRATCH='.length);

/** Runs `use` with the URL of a page on this machine. For a page of HTML, the server would install packages of npm first. */
async function withPage(use) {
  const pages = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' });
    response.end('Steep it for three minutes.');
  });
  await new Promise((resolve) => { pages.listen(0, '127.0.0.1', resolve); });
  try {
    await use(`http://127.0.0.1:${pages.address().port}/tea`);
  } finally {
    pages.closeAllConnections();
    pages.close();
  }
}

/** Checks by name. */
export function gatewayChecks(peer, person, tools) {
  const call = (name, args, options) => peer.call(name, args, options);
  return {
    'lists the tools of all servers': () => {
      const names = ['everything_echo', 'everything_trigger-elicitation-request', 'everything_trigger-sampling-request'];
      names.push('everything_get-roots-list', 'files_list_allowed_directories', 'memory_create_entities');
      for (const name of [...names, 'time_convert_time', 'git_git_log', 'fetch_fetch']) {
        assert.ok(tools.has(name), `tools/list must offer ${name}: ${[...tools.keys()].join()}`);
      }
    },
    'calls tools of two servers': async () => {
      assert.match(text(await call('everything_get-sum', { a: 1, b: 2 })), /is 3/);
      assert.match(text(await call('files_list_allowed_directories', {})), /Allowed directories/);
    },
    'follows progress': async () => {
      const seen = [];
      const args = { duration: 0.5, steps: 5 };
      const done = await call('everything_trigger-long-running-operation', args, { onprogress: ({ progress }) => seen.push(progress) });
      assert.match(text(done), /completed/);
      // The SDK drops progress that arrives together with the result. A modern client repeats the call when the server asks for roots.
      assert.ok(seen.length >= 3 && seen.every((step) => step >= 1 && step <= 5), seen.join());
    },
    'reads a resource of a template': async () => {
      const [contents] = (await peer.read('demo://resource/dynamic/text/1')).contents;
      assert.equal(contents.uri, 'demo://resource/dynamic/text/1');
      assert.match(contents.text, /Resource 1/);
    },
    'gets and completes a prompt': async () => {
      const { messages } = await peer.prompt('everything_args-prompt', { city: 'Lhasa' });
      assert.match(messages[0].content.text, /Lhasa/);
      const reference = { type: 'ref/prompt', name: 'everything_completable-prompt' };
      const completed = await peer.complete(reference, { name: 'department', value: 'E' });
      assert.deepEqual(completed.values, ['Engineering']);
    },
    'answers a question that names its server': async () => {
      person.answers.push(accept({ name: 'Ada', check: true }));
      const answered = await call('everything_trigger-elicitation-request', {});
      assert.match(answered.content.map((block) => block.text).join(), /Ada/);
      assert.match(person.asked.at(-1).message, /^everything: /);
    },
    'samples for a server': async () => {
      const sampled = await call('everything_trigger-sampling-request', { prompt: 'tea', maxTokens: 10 });
      assert.match(text(sampled), /because of/);
    },
    'subscribes to a resource': async () => {
      const stop = await peer.watch('demo://resource/dynamic/text/1', () => {});
      await stop();
    },
    'remembers, with structured results': async () => {
      const entities = [{ name: 'teapot', entityType: 'pot', observations: ['is blue'] }];
      const created = await call('memory_create_entities', { entities });
      if (peer.revision >= '2025-06-18') assert.deepEqual(created.structuredContent, { entities });
      const observations = [{ entityName: 'teapot', contents: ['is warm'] }];
      assert.ok(!(await call('memory_add_observations', { observations })).isError);
      assert.match(text(await call('memory_search_nodes', { query: 'warm' })), /teapot/);
      const [graph] = (await peer.read('memory://knowledge-graph')).contents;
      assert.match(graph.text, /is blue/);
    },
    // A modern client has no session, and the process that is watched is not that which makes a change.
    ...(peer.revision < '2026' && {
      'is told of a changed graph': async () => {
        let tell;
        const told = new Promise((resolve) => { tell = resolve; });
        const stop = await peer.watch('memory://knowledge-graph', tell);
        await call('memory_delete_entities', { entityNames: ['teapot'] });
        assert.equal(await told, 'memory://knowledge-graph');
        await stop();
      },
    }),
    'reads an error of a server about its arguments': async () => {
      const failed = await call('memory_create_entities', { entities: 7 });
      assert.equal(failed.isError, true, JSON.stringify(failed));
    },
    'converts a time': async () => {
      const args = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
      const converted = await call('time_convert_time', args);
      assert.match(text(converted), /21:00/);
      if (peer.revision >= '2025-06-18') assert.ok(converted.structuredContent, JSON.stringify(converted));
      assert.equal((await call('time_get_current_time', { timezone: 'Mars/Base' })).isError, true);
    },
    'reads a repository': async () => {
      const args = { repo_path: `${scratch}/repository` };
      assert.match(text(await call('git_git_log', { ...args, max_count: 1 })), /first/);
      assert.match(text(await call('git_git_status', args)), /nothing to commit/);
      assert.equal((await call('git_git_status', { repo_path: '/' })).isError, true);
    },
    'fetches a page': () => withPage(async (url) => {
      assert.match(text(await call('fetch_fetch', { url })), /three minutes/);
      const { messages } = await peer.prompt('fetch_fetch', { url });
      assert.match(messages[0].content.text, /three minutes/);
    }),
    'calls all servers at once': async () => {
      const calls = {
        'everything_echo': { message: 'hi' }, 'files_list_allowed_directories': {}, 'memory_read_graph': {},
        'time_get_current_time': { timezone: 'UTC' }, 'git_git_branch': { repo_path: `${scratch}/repository`, branch_type: 'local' },
      };
      const results = await Promise.all(Object.entries(calls).map(([name, args]) => call(name, args)));
      for (const result of results) assert.ok(!result.isError, JSON.stringify(result));
    },
  };
}

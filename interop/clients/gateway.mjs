// The checks of every TypeScript client against a gateway of `server-everything` (as `everything`) and `server-filesystem` (as `files`).
import assert from 'node:assert/strict';

import { accept, text } from './features.mjs';

/** Whether the tools are those of the gateway. */
export const isGateway = (tools) => tools.has('everything_echo');

/** Checks by name. */
export function gatewayChecks(peer, person, tools) {
  const call = (name, args, options) => peer.call(name, args, options);
  return {
    'lists the tools of all servers': () => {
      const names = ['everything_echo', 'everything_trigger-elicitation-request', 'everything_trigger-sampling-request'];
      for (const name of [...names, 'everything_get-roots-list', 'files_list_allowed_directories']) {
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
  };
}

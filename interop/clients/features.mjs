// The checks of every TypeScript client against a server with the prompts, resources and questions of `interop-server`.
import assert from 'node:assert/strict';

/** The contents of `memo://pixel`. */
const PIXEL = Buffer.from([0, 255, 127]).toString('base64');

/** The answers of the user, in order, and the questions that were asked. */
export class Person {
  asked = [];
  answers = [];

  elicit(params) {
    this.asked.push(params);
    const answer = this.answers.shift();
    assert.ok(answer, `unexpected question: ${params.message}`);
    return answer;
  }
}

export function text(result) {
  assert.equal(result.content?.[0]?.type, 'text', JSON.stringify(result));
  return result.content[0].text;
}

export const accept = (content) => ({ action: 'accept', content });

/** Checks by name, without those of features that a revision or an SDK lacks. */
export function featureChecks(peer, person, strict) {
  const refuses = (request, code) => assert.rejects(request, strict ? { code } : undefined);
  const asks = peer.revision >= '2025-06-18';
  return {
    'lists prompts and their arguments': async () => {
      const review = (await peer.prompts()).find((prompt) => prompt.name === 'review');
      const required = review.arguments.map(({ name, required }) => [name, required ?? false]);
      assert.deepEqual(required.sort(), [['code', true], ['language', false]]);
    },
    'gets a prompt': async () => {
      const { messages } = await peer.prompt('review', { code: 'fn main() {}', language: 'rust' });
      assert.equal(messages[0].role, 'user');
      assert.match(messages[0].content.text, /rust.*fn main/s);
    },
    'is refused a prompt without its required argument': async () => {
      await refuses(peer.prompt('review', { language: 'rust' }), -32602);
    },
    'lists resources and templates': async () => {
      const uris = (await peer.resources()).map((resource) => resource.uri);
      assert.deepEqual(uris.filter((uri) => uri.startsWith('memo:')).sort(), ['memo://greeting', 'memo://pixel']);
      const templates = (await peer.templates()).map((template) => template.uriTemplate);
      assert.ok(templates.includes('memo://pages/{topic}/{page}'), templates.join());
    },
    'reads text, bytes and a template': async () => {
      const [greeting] = (await peer.read('memo://greeting')).contents;
      assert.deepEqual([greeting.uri, greeting.mimeType], ['memo://greeting', 'text/plain']);
      assert.match(greeting.text, /^hello/);
      const [pixel] = (await peer.read('memo://pixel')).contents;
      assert.deepEqual([pixel.mimeType, pixel.blob], ['image/png', PIXEL]);
      const [page] = (await peer.read('memo://pages/caf%C3%A9/7')).contents;
      assert.equal(page.text, 'page 7 of café');
    },
    'is refused a resource that is not there': async () => {
      await refuses(peer.read('memo://nothing'), peer.notFound ?? (peer.revision < '2026' ? -32002 : -32602));
    },
    'completes an argument of a prompt and of a template': async () => {
      const languages = await peer.complete({ type: 'ref/prompt', name: 'review' }, { name: 'language', value: 'r' });
      assert.deepEqual(languages.values, ['rust']);
      const topics = await peer.complete({ type: 'ref/resource', uri: 'memo://pages/{topic}/{page}' }, { name: 'topic', value: 'te' });
      assert.deepEqual(topics.values, ['tea', 'teak']);
    },
    'is notified of a resource update': async () => {
      let tell;
      const updated = new Promise((resolve) => { tell = resolve; });
      const stop = await peer.watch('memo://greeting', tell);
      assert.equal(text(await peer.call('touch', {})), 'touched');
      await updated;
      await stop();
      assert.match((await peer.read('memo://greeting')).contents[0].text, /^hello again/);
    },
    'reads log messages of the level that it asked for': async () => {
      const logs = await peer.logs('warning', () => peer.call('shout', {}, peer.logging));
      assert.deepEqual(logs.map(({ level, data }) => [level, data]), [['warning', { msg: 'loud' }]]);
    },
    ...(asks && {
      'is asked twice, and the step between is done once': async () => {
        person.answers = [accept({ name: 'moon' }), accept({ sure: true })];
        const done = await peer.call('delete', { project: 'moon' });
        assert.equal(text(done), 'deleted moon, counted once', JSON.stringify(done));
        const [who, sure] = person.asked.splice(0);
        assert.match(who.message, /Which project/);
        assert.deepEqual(who.requestedSchema.required, ['name']);
        assert.match(sure.message, /moon with 3 files/);
      },
      'declines and cancels': async () => {
        for (const action of ['decline', 'cancel']) {
          person.answers = [{ action }];
          const refused = await peer.call('delete', { project: 'moon' });
          assert.equal(refused.isError, true, JSON.stringify(refused));
          assert.equal(person.asked.splice(0).length, 1);
        }
      },
    }),
    'lends its model': async () => {
      assert.equal(text(await peer.call('think', { question: 'why?' })), 'the model says: because of "why?"');
    },
    'shows its roots': async () => {
      assert.equal(text(await peer.call('where', {})), 'file:///home/moon');
    },
  };
}

/** The response of the model. */
export function sample({ messages }) {
  const content = [messages[0].content].flat()[0];
  return {
    role: 'assistant',
    model: 'a-model',
    stopReason: 'endTurn',
    content: { type: 'text', text: `because of "${content.text}"` },
  };
}

export const roots = { roots: [{ uri: 'file:///home/moon', name: 'moon' }] };

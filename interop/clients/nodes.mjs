// The checks of TypeScript clients of a server with two nodes: the session survives every failure.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { text } from './features.mjs';

/** The number of times that a node is killed. */
const KILLS = 2;
/** The time limit of a call in ms: longer than the time until the stream of a lost node ends. */
const LIMIT = 60_000;
/** The time limit for recovery after an event, in ms. */
const RECOVERY = 60_000;

/** Runs the checks in order; the first failure ends the script. Returns the events, and the outcomes of the calls in flight. */
export async function checkNodes(peer, url) {
  const happens = async (event) => {
    const { status } = await fetch(new URL(`/control/${event}`, url), { method: 'POST' });
    assert.equal(status, 200, event);
  };
  const call = (name, args, options) => peer.call(name, args, { timeout: LIMIT, ...options });
  const echoes = async () => assert.equal(text(await call('echo', { text: 'here' })), 'here');
  const follows = async () => {
    const seen = [];
    assert.equal(text(await call('slow', { steps: 3 }, { onprogress: ({ progress }) => seen.push(progress) })), 'done');
    assert.deepEqual(seen, [1, 2, 3]);
  };
  const answers = async () => assert.match(text(await call('think', { question: 'why?' })), /^the model says: because of/);
  /** Makes each kind of call at each node. */
  const works = async (...ways) => {
    for (const way of [...ways, ...ways]) await way();
  };
  const worksAgain = async () => {
    for (const end = Date.now() + RECOVERY; ;) {
      try {
        return await works(echoes, follows, answers);
      } catch (error) {
        if (Date.now() > end) throw error;
        await sleep(200);
      }
    }
  };

  const held = [];
  await works(echoes, follows, answers);
  for (let kill = 0; kill < KILLS; kill += 1) {
    let begin;
    const begun = new Promise((resolve) => { begin = resolve; });
    const underWay = call('slow', { steps: 1000 }, { onprogress: begin }).catch((error) => error);
    await begun;
    await happens('kill');
    // New calls work, and the call in flight ends in time.
    await works(echoes, follows, answers);
    const ended = await underWay;
    assert.ok(ended instanceof Error, JSON.stringify(ended));
    // Streams of sessions are resumed at the other node, which knows that this node was lost.
    if (peer.revision < '2026') assert.equal(ended.code, -32603, ended.message);
    held.push(`a call of a node that was killed: ${ended.message}`);
  }
  for (const event of ['unsubscribe', 'restart', 'fail-over']) {
    await happens(event);
    await worksAgain();
    held.push(event);
  }
  await happens('hang');
  // Calls that need no store continue.
  await works(echoes, follows);
  await happens('go-on');
  await worksAgain();
  held.push('hang');
  return held;
}

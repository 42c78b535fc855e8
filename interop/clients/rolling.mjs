// The checks of TypeScript clients of a server with three nodes behind nginx: each call runs once and is answered.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import { text } from './features.mjs';

/** The number of concurrent calls. */
const AT_ONCE = 4;
/** The number of sequential calls after which each node knows the session. */
const KNOWN = 6;
/** The pause before a call, in ms. */
const PAUSE = 20;
const EVENTS = ['roll', 'stop', 'fill', 'restart'];

/** Returns the events. */
export async function checkRolling(peer, person, url) {
  person.elicit = () => ({ action: 'accept', content: { sure: true } });
  let number = 0;
  const order = async (event) => {
    const mine = number++;
    const asks = mine % 2 === 1;
    await sleep(PAUSE);
    const done = await peer.call('order', { number: mine, asks }).catch((error) => {
      throw new Error(`order ${mine}${asks ? ', which asks,' : ''} failed around ${event}: ${error.message}`);
    });
    assert.equal(text(done), `ordered ${mine}`, JSON.stringify(done));
  };
  for (const event of EVENTS) {
    for (let known = 0; known < KNOWN; known += 1) await order(event);
    let isOver = false;
    const happens = async () => {
      const { status } = await fetch(new URL(`/control/${event}`, url), { method: 'POST' });
      assert.equal(status, 200, event);
      isOver = true;
    };
    const ordering = Array.from({ length: AT_ONCE }, async () => {
      while (!isOver) await order(event);
    });
    await Promise.all([happens(), ...ordering]);
  }
  const orders = await (await fetch(new URL('/control/orders', url))).text();
  const made = orders.trim().split('\n').map(Number).sort((a, b) => a - b);
  assert.deepEqual(made, Array.from({ length: number }, (_, order) => order));
  return [...EVENTS, `${number} orders`];
}

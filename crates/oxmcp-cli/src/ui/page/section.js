// @ts-check
// A part of the page about one server.
import { store } from './store.js';

/** An element that shows something of a server, and hears of its changes for as long as it is on the page. */
export class Section extends HTMLElement {
  server = /** @type {import('./store.js').Server} */ (store.servers[0]);
  /** @type {(() => void)[]} */
  #ends = [];

  /**
   * Calls a function when one of the parts of the server has changed.
   * @param {string} parts separated by spaces
   * @param {(value?: any) => void} act
   */
  hear(parts, act) {
    this.#ends.push(this.server.on(parts, act));
  }

  disconnectedCallback() {
    for (const end of this.#ends.splice(0)) end();
  }
}

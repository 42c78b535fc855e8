// @ts-check
// The state of the page: the servers, and what the events have told about them.
import { Refused, attempt, events, post } from './api.js';

/**
 * @typedef {{ id: string, at: number, operation: any, phase: string, progress?: any, task?: any, result?: any, error?: any,
 *   micros?: number, view?: any, size: number }} Job
 * @typedef {{ at: number, isSent: boolean, text: string, message: any, kind: string, method: string, id: any, micros?: number,
 *   row?: HTMLElement, number: number }} Message
 */

const MAX_MESSAGES = 3000;
const MAX_LOGS = 2000;
const MAX_JOBS = 200;
const MAX_LATENCIES = 2000;
const MAX_UPDATED = 1000;
/** The characters of the messages of a server that are kept, and those of its results. */
const MAX_KEPT = 32 << 20;

/** Something whose parts change. Listeners hear the name of the part. */
class Changing {
  /** @type {Map<string, Set<(value?: any) => void>>} */
  #listeners = new Map();

  /**
   * Calls a function when one of the parts has changed, as long as the element is shown.
   * @param {string} parts separated by spaces
   * @param {(value?: any) => void} act
   * @returns {() => void} ends it
   */
  on(parts, act) {
    const names = parts.split(' ');
    for (const name of names) {
      if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
      this.#listeners.get(name)?.add(act);
    }
    return () => names.forEach((name) => this.#listeners.get(name)?.delete(act));
  }

  /**
   * @param {string} part
   * @param {any} [value]
   */
  changed(part, value) {
    // A server can send what a listener does not expect.
    for (const act of [...this.#listeners.get(part) ?? []]) attempt(() => act(value));
  }
}

/** One server. */
export class Server extends Changing {
  state = 'idle';
  reason = '';
  /** @type {any} */
  facts = null;
  /** @type {Record<string, any[] | null>} */
  lists = { tools: null, prompts: null, resources: null, templates: null };
  /** @type {Record<string, string>} */
  listErrors = {};
  /** @type {Map<string, Job>} */
  jobs = new Map();
  /** @type {Message[]} */
  messages = [];
  /** @type {any[]} */
  logs = [];
  /** @type {{ at: number, micros: number, method: string, isError: boolean }[]} */
  latencies = [];
  /** @type {any} */
  findings = null;
  /** @type {Set<string>} */
  watched = new Set();
  /** @type {Set<string>} the resources that have changed since they were read */
  updated = new Set();
  section = 'tools';
  /** @type {Record<string, string>} the chosen entry of each list */
  chosen = {};
  /** @type {Map<string, Message>} */
  #open = new Map();
  #count = 0;
  #messageSize = 0;
  #jobSize = 0;
  /** @type {Map<string, { promise: Promise<void>, isStale: boolean }>} the lists that are read, by their kind */
  reading = new Map();

  /**
   * @param {number} id
   * @param {any} listed
   */
  constructor(id, listed) {
    super();
    this.id = id;
    this.listed = listed;
  }

  get name() {
    return this.facts?.server?.title || this.facts?.server?.name || this.listed.label;
  }

  /** @param {string} capability */
  has(capability) {
    return Boolean(this.facts?.capabilities?.[capability]);
  }

  /** The findings about a tool, a prompt or a resource. */
  findingsAbout(/** @type {string} */ name) {
    return (this.findings?.findings ?? []).filter((/** @type {any} */ it) => it.name === name);
  }

  /** @param {any} event */
  message(event) {
    /** @type {any} */
    let parsed = null;
    try {
      parsed = JSON.parse(event.text);
    } catch {
      // It was cut off, or is no message.
    }
    for (const message of Array.isArray(parsed) ? parsed : [parsed]) this.#one(event, message);
    let dropped = 0;
    while (this.messages.length - dropped > MAX_MESSAGES || this.#messageSize > MAX_KEPT && dropped < this.messages.length) {
      this.#messageSize -= this.messages[dropped]?.text.length ?? 0;
      dropped += 1;
    }
    this.messages.splice(0, dropped);
    const oldest = this.messages[0]?.number ?? this.#count + 1;
    for (const [key, it] of this.#open) {
      if (it.number >= oldest) break;
      this.#open.delete(key);
    }
    this.changed('messages');
  }

  /**
   * @param {any} event
   * @param {any} message
   */
  #one({ at, isSent, text }, message) {
    const isRequest = message?.method !== undefined && message?.id !== undefined;
    const isNotification = message?.method !== undefined && message?.id === undefined;
    const kind = isRequest ? 'request' : isNotification ? 'notification' : message?.error ? 'error' : message ? 'response' : 'unknown';
    /** @type {Message} */
    const it = { at, isSent, text, message, kind, method: message?.method ?? '', id: message?.id, number: this.#count += 1 };
    // An answer has the direction that its request has not.
    const key = (/** @type {boolean} */ direction) => `${direction}:${JSON.stringify(it.id)}`;
    if (isRequest) {
      this.#open.set(key(isSent), it);
      if (this.#open.size > 1000) this.#open.delete(/** @type {string} */ (this.#open.keys().next().value));
    } else if (it.id !== undefined) {
      const asked = this.#open.get(key(!isSent));
      if (asked) {
        this.#open.delete(key(!isSent));
        it.method = asked.method;
        it.micros = at - asked.at;
        asked.micros = it.micros;
        if (!isSent) {
          this.latencies.push({ at: asked.at, micros: it.micros, method: it.method, isError: kind === 'error' });
          if (this.latencies.length > MAX_LATENCIES) this.latencies.shift();
          this.changed('latencies');
        }
      }
    }
    this.messages.push(it);
    this.#messageSize += it.text.length;
  }

  /** @param {any} event */
  log(event) {
    this.logs.push(event);
    if (this.logs.length > MAX_LOGS) this.logs.shift();
    this.changed('logs');
  }

  /**
   * @param {any} event
   * @param {number} size the characters of the event
   */
  job(event, size = 0) {
    let job = this.jobs.get(event.job);
    if (!job) {
      job = { id: event.job, at: event.at, operation: event.operation ?? {}, phase: 'started', size: 0 };
      this.jobs.set(job.id, job);
    }
    job.size += size;
    this.#jobSize += size;
    for (const old of this.jobs.values()) {
      if (this.jobs.size <= MAX_JOBS && this.#jobSize <= MAX_KEPT) break;
      if (isRunning(old) || old === job) continue;
      this.jobs.delete(old.id);
      this.#jobSize -= old.size;
    }
    if (event.phase === 'progress') job.progress = event.progress;
    else if (event.phase === 'task') job.task = event.task;
    else Object.assign(job, { phase: event.phase, result: event.result, error: event.error, micros: event.micros });
    this.changed(`job:${job.id}`, job);
    this.changed('jobs', job);
    return job;
  }
}

/** @param {Job} job */
export const isRunning = (job) => job.phase === 'started';

/** All servers. */
class Store extends Changing {
  /** @type {Server[]} */
  servers = [];
  /** @type {Map<number, any>} */
  questions = new Map();
  /** @type {string[]} */
  revisions = [];
  active = 0;
  problem = '';
  /** The time of the page at the start of the program. */
  start = 0;
  #live = 0;
  /** The time of the states that were read last: events before it tell of older ones. */
  #known = 0;
  /** The operations that this page has begun, and not another one. */
  own = new Set();
  /** @type {Map<string, { resolve: (value: any) => void, reject: (error: any) => void }>} */
  #waiting = new Map();

  /** Loads the state, and follows the events for as long as the program runs. */
  async follow() {
    const state = await post('state');
    this.revisions = state.revisions;
    this.start = Date.now() - state.elapsed / 1000;
    this.#live = state.elapsed;
    this.#known = state.elapsed;
    this.servers = state.servers.map((/** @type {any} */ it, /** @type {number} */ id) => new Server(id, it.listed));
    this.servers.forEach((it, id) => this.#state(it, state.servers[id].state));
    this.changed('servers');
    let next = 0;
    for (;;) {
      try {
        next = await events(next, (event, size) => this.receive(event, size), () => this.#gap());
      } catch (error) {
        if (error instanceof Refused) throw error;
      }
      this.problem = 'Lost the connection to oxmcp. If it was stopped, start oxmcp ui again, and open its new URL.';
      this.changed('problem');
      await new Promise((resolve) => { setTimeout(resolve, 1000); });
    }
  }

  /** Some events were dropped: the questions and the results that they had are looked up, or given up. */
  async #gap() {
    const known = { questions: [...this.questions.keys()], waiting: [...this.#waiting.keys()], jobs: this.servers.map((it) => [...it.jobs.values()].filter(isRunning)) };
    let state;
    try {
      state = await post('state');
    } catch (error) {
      // The next gap tries again.
      reportError(error);
      return;
    }
    const open = new Map(state.questions.map((/** @type {any} */ it) => [it.question, it]));
    // Those that came after the state was asked for are told by events.
    for (const number of known.questions) if (!open.has(number)) this.questions.delete(number);
    for (const [number, it] of open) this.questions.set(number, it);
    this.changed('questions');
    this.#known = state.elapsed;
    this.servers.forEach((it, id) => {
      const now = state.servers[id].state;
      if (now.state !== it.state || JSON.stringify(now.facts ?? null) !== JSON.stringify(it.facts)) this.#state(it, now);
    });
    const ended = new Set([...known.waiting, ...known.jobs.flat().map((it) => it.id)].filter((it) => !state.jobs.includes(it)));
    const error = { message: 'The result was dropped, because too much has happened since.' };
    known.jobs.forEach((jobs, id) => {
      for (const job of jobs) if (ended.has(job.id) && isRunning(job)) this.servers[id]?.job({ job: job.id, phase: 'failed', error });
    });
    for (const job of ended) {
      this.#waiting.get(job)?.reject(new Error(error.message));
      this.#waiting.delete(job);
    }
  }

  /**
   * @param {any} event
   * @param {number} size its characters
   */
  receive(event, size) {
    if (this.problem) {
      this.problem = '';
      this.changed('problem');
    }
    const isLive = event.at >= this.#live;
    const server = this.servers[event.server];
    switch (event.kind) {
      case 'question':
        this.questions.set(event.question, event);
        return this.changed('questions', isLive ? event : null);
      case 'answered':
        this.questions.delete(event.question);
        return this.changed('questions');
      case 'sdk':
        return this.servers.forEach((it) => it.log({ ...event, source: 'oxmcp' }));
      default:
    }
    if (!server) return undefined;
    switch (event.kind) {
      case 'wire':
        return server.message(event);
      case 'log':
      case 'stderr':
        return server.log(event);
      case 'job':
        return this.#job(server, event, size);
      case 'server':
        return event.at >= this.#known ? this.#state(server, event) : undefined;
      case 'changed':
        server.log({ ...event, source: 'change', text: `the list of ${event.of} has changed` });
        return isLive ? this.#changed(server, event.of) : undefined;
      case 'updated':
        if (server.updated.size < MAX_UPDATED) server.updated.add(event.uri);
        return server.changed('updated');
      case 'restarted':
        return server.log({ ...event, source: 'change', text: 'the server was restarted' });
      case 'visited':
        return server.log({ ...event, source: 'change', text: `the elicitation ${event.elicitation} is complete` });
      case 'view':
        return isLive ? this.#view(server, event) : undefined;
      default:
        return undefined;
    }
  }

  /**
   * @param {Server} server
   * @param {any} event
   * @param {number} size
   */
  #job(server, event, size) {
    // A report replaces the last one.
    const job = server.job(event, ['progress', 'task'].includes(event.phase) ? 0 : size);
    if (isRunning(job)) return;
    const waiting = this.#waiting.get(job.id);
    this.#waiting.delete(job.id);
    if (event.phase === 'done') waiting?.resolve(job.result);
    else if (event.phase === 'failed') waiting?.reject(Object.assign(new Error(job.error.message), job.error));
  }

  /**
   * @param {Server} server
   * @param {any} event
   */
  #view(server, event) {
    const job = event.job && server.jobs.get(event.job);
    if (job) {
      job.view = { key: event.view, ...event.open };
      server.changed(`job:${job.id}`, job);
    }
    this.changed(`view:${event.view}`, event);
  }

  /**
   * @param {Server} server
   * @param {any} state
   */
  #state(server, state) {
    Object.assign(server, { state: state.state, reason: state.reason ?? '', facts: state.facts ?? null });
    if (state.state === 'connected') {
      server.watched = new Set();
      this.refresh(server);
    } else {
      server.lists = { tools: null, prompts: null, resources: null, templates: null };
      server.findings = null;
    }
    server.changed('state');
    this.changed('servers');
  }

  /**
   * @param {Server} server
   * @param {string} of
   */
  #changed(server, of) {
    // A server may tell of changes before the session is open.
    if (server.state !== 'connected') return;
    this.relist(server, of);
    server.findings = null;
    server.changed('findings');
  }

  /** @param {Server} server */
  refresh(server) {
    for (const of of ['tools', 'prompts', 'resources']) if (server.has(of)) this.relist(server, of);
  }

  /**
   * Reads a list again, and with the resources their templates.
   * @param {Server} server
   * @param {string} of
   */
  relist(server, of) {
    this.list(server, of);
    if (of === 'resources') this.list(server, 'templates');
  }

  /**
   * Reads a list again. If it is being read, it is read once more afterwards, however often that is asked for.
   * @param {Server} server
   * @param {string} of
   * @returns {Promise<void>}
   */
  list(server, of) {
    const running = server.reading.get(of);
    if (running) {
      running.isStale = true;
      return running.promise;
    }
    const reading = { isStale: false, promise: Promise.resolve() };
    server.reading.set(of, reading);
    reading.promise = this.#list(server, of).finally(() => {
      server.reading.delete(of);
      if (reading.isStale && server.state === 'connected') this.list(server, of);
    });
    return reading.promise;
  }

  /**
   * @param {Server} server
   * @param {string} of
   */
  async #list(server, of) {
    try {
      server.lists[of] = await this.run(server, { kind: 'list', of }).done;
      delete server.listErrors[of];
    } catch (error) {
      server.listErrors[of] = /** @type {Error} */ (error).message;
    }
    server.changed(of);
    server.changed('lists');
  }

  /**
   * Checks the server.
   * @param {Server} server
   */
  async check(server) {
    server.findings = await this.run(server, { kind: 'check' }).done;
    server.changed('findings');
  }

  /**
   * Begins an operation.
   * @param {Server} server
   * @param {any} operation
   * @returns {{ id: string, done: Promise<any> }}
   */
  run(server, operation) {
    const id = crypto.randomUUID();
    this.own.add(id);
    const done = new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      post('run', { server: server.id, job: id, operation }).catch((error) => {
        this.#waiting.delete(id);
        reject(error);
      });
    });
    return { id, done };
  }

  /** @param {string} job */
  cancel(job) {
    return post('cancel', { job });
  }

  /**
   * The time of an event, for people.
   * @param {number} at
   */
  time(at) {
    const date = new Date(this.start + at / 1000);
    const two = (/** @type {number} */ it) => String(it).padStart(2, '0');
    const millis = String(date.getMilliseconds()).padStart(3, '0');
    return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`;
  }
}

export const store = new Store();

// Several nodes of a server that share a Redis, and failures that are injected into them. Used by `over-http.mjs`.
import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a killed node stays down, and a killed Redis. */
const AWAY = 300;
/** How long Redis is stopped, and how long it is full. */
const STOPPED = 10_000;
const FULL = 3_000;

/** Redis behind a port of this process, which forwards connections to the current primary. */
class Redis {
  #program;
  #start;
  #network;
  /** The primary and its replica. */
  #servers = [];
  #connections = new Set();
  port;

  constructor(program, start, network) {
    this.#program = program;
    this.#start = start;
    this.#network = network;
  }

  async begin() {
    await this.#add([]);
    this.port = await this.#network.listen(net.createServer((from) => {
      const to = net.connect(this.#servers[0].port, '127.0.0.1');
      this.#connections.add(from);
      for (const [one, other] of [[from, to], [to, from]]) {
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => other.destroy());
      }
      from.on('close', () => this.#connections.delete(from));
    }));
    const [primary] = this.#servers;
    await this.#add(['--replicaof', '127.0.0.1', `${primary.port}`]);
  }

  async #add(options) {
    const port = await this.#network.freePort();
    const directory = mkdtempSync(join(tmpdir(), 'oxmcp-redis-'));
    const settings = ['--bind', '127.0.0.1', '--port', `${port}`, '--dir', directory, '--save', '', '--appendonly', 'yes', '--appendfsync', 'always'];
    const server = { port, command: [this.#program, ...settings, ...options] };
    await this.#run(server);
    this.#servers.push(server);
  }

  async #run(server) {
    server.process = this.#start(server.command, 'ignore');
    await this.#network.listening(server.port, server.process);
  }

  /** Kills it, and restarts it with its data. */
  async restart() {
    const [primary] = this.#servers;
    primary.process.kill('SIGKILL');
    await primary.process.ended;
    await sleep(AWAY);
    await this.#run(primary);
  }

  hang() {
    this.#servers[0].process.kill('SIGSTOP');
  }

  goOn() {
    this.#servers[0].process.kill('SIGCONT');
  }

  async fill() {
    const [{ port }] = this.#servers;
    await say(port, 'CONFIG SET maxmemory 1');
    await sleep(FULL);
    await say(port, 'CONFIG SET maxmemory 0');
  }

  /** Ends all subscriptions. */
  async unsubscribe() {
    await say(this.#servers[0].port, 'CLIENT KILL TYPE pubsub');
  }

  /** Kills the primary, and promotes its replica. */
  async failOver() {
    const [primary, replica] = this.#servers;
    while (!(await say(replica.port, 'ROLE')).includes('connected')) await sleep(20);
    await say(primary.port, 'WAIT 1 2000');
    primary.process.kill('SIGKILL');
    await say(replica.port, 'REPLICAOF NO ONE');
    this.#servers.shift();
    for (const connection of this.#connections) connection.destroy();
  }
}

/** Sends a command to a Redis, and returns the beginning of its reply. */
function say(port, words) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write(`${words}\r\n`));
    socket.on('error', reject);
    socket.once('data', (answer) => {
      resolve(answer.toString());
      socket.destroy();
    });
  });
}

/** The nodes. A request goes to the next reachable one. */
export class Nodes {
  #nodes = [];
  #turn = 0;
  #last;
  #start;
  #listening;
  #redis;

  /** `program` is the Redis server, `start` starts a process that ends with this one, and `network` has the functions for ports. */
  constructor(program, start, network) {
    this.#redis = new Redis(program, start, network);
    this.#start = start;
    this.#listening = network.listening;
  }

  /** Starts all nodes. `command` returns the command of a node for its port and the port of Redis. */
  async begin(ports, command) {
    await this.#redis.begin();
    for (const port of ports) {
      const node = { port, command: command(port, this.#redis.port) };
      this.#nodes.push(node);
      await this.#run(node);
    }
  }

  async #run(node) {
    node.process = this.#start(node.command, ['pipe', process.stderr, process.stderr]);
    node.up = this.#listening(node.port, node.process);
    await node.up;
  }

  /** The ports to try in turn for a request with this body. */
  ports(body) {
    const first = this.#turn++;
    const nodes = this.#nodes.map((_, number) => this.#nodes[(first + number) % this.#nodes.length]);
    if (body.includes('"tools/call"')) this.#last = nodes[0];
    return nodes.map(({ port }) => port);
  }

  /** The events, by the name that clients use. When an event begins, all other nodes are up. */
  events = {
    kill: async () => {
      await Promise.all(this.#nodes.map(({ up }) => up));
      const node = this.#last;
      node.process.kill('SIGKILL');
      await node.process.ended;
      node.up = sleep(AWAY).then(() => this.#run(node));
    },
    restart: () => this.#redis.restart(),
    hang: () => this.#redis.hang(),
    'go-on': () => this.#redis.goOn(),
    unsubscribe: () => this.#redis.unsubscribe(),
    'fail-over': () => this.#redis.failOver(),
    roll: async () => {
      for (const node of this.#nodes) {
        node.process.kill('SIGTERM');
        assert.equal(await node.process.ended, 0, 'a node ends by itself');
        await this.#run(node);
      }
    },
    stop: async () => {
      this.#redis.hang();
      await sleep(STOPPED);
      this.#redis.goOn();
    },
    fill: () => this.#redis.fill(),
  };
}

// Server-sent events, as far as a recorder needs them.

/** Calls back with the data of each event. */
export class Events {
  #decoder = new TextDecoder();
  #rest = '';
  #data = [];
  #tell;

  constructor(tell) {
    this.#tell = tell;
  }

  push(chunk) {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line);
  }

  #line(line) {
    if (line === '') {
      if (this.#data.length > 0) this.#tell(this.#data.join('\n'));
      this.#data = [];
    } else if (line.startsWith('data:')) this.#data.push(line.slice(5).replace(/^ /, ''));
  }
}

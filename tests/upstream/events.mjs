// Writing event streams (text/event-stream) in every dialect that the standard allows, and broken
// where a test wants it.
//
// A dialect is a set of words: `crlf`, `cr` or `mixed` (line ends; LF without one), `bom` (a byte
// order mark first), `comments` (comment lines and fields nobody knows between the others),
// `multiline` (data over several lines), `tight` (no space after the colon), `unnamed` (no event
// name).

import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';

export const dialectWords = ['crlf', 'cr', 'mixed', 'bom', 'comments', 'multiline', 'tight', 'unnamed'];

const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' };

export class EventWriter {
  #response;
  #dialect;
  #splitBytes;
  #cutBytes;
  #sentBytes = 0;
  #lines = 0;
  #queue = [];
  #pumping = false;
  #ending = false;

  // `splitBytes`: at most so many bytes at a time; `cutBytes`: the connection breaks after so many.
  constructor(response, { dialect = [], splitBytes = 0, cutBytes } = {}, moreHeaders = {}) {
    this.#response = response;
    this.#dialect = new Set(dialect);
    this.#splitBytes = splitBytes;
    this.#cutBytes = cutBytes;
    response.writeHead(200, { ...headers, ...moreHeaders });
    response.flushHeaders();
    response.on('close', () => (this.#queue.length = 0));
    if (this.#dialect.has('bom')) this.#write(Buffer.from('\ufeff'));
    if (cutBytes === 0) this.#write(Buffer.alloc(0));
  }

  event({ id, name, retry, data }) {
    const odd = this.#dialect.has('comments');
    const lines = [];
    if (odd) lines.push(':', ': not for you', 'unknown: field', 'data-like: data');
    if (name !== undefined && !this.#dialect.has('unnamed')) lines.push(this.#field('event', name));
    if (id !== undefined) lines.push(this.#field('id', id));
    if (odd) lines.push(':data: {"not": "this"}');
    if (retry !== undefined) lines.push(this.#field('retry', retry));
    for (const line of this.#dataLines(data)) lines.push(this.#field('data', line));
    this.#write(Buffer.from(this.#ended([...lines, ''])));
  }

  comment(text) {
    this.#write(Buffer.from(this.#ended([`: ${text}`, ''])));
  }

  raw(text) {
    this.#write(Buffer.from(text));
  }

  end() {
    this.#ending = true;
    if (!this.#pumping) this.#response.end();
  }

  #dataLines(data) {
    if (data === undefined) return [];
    if (typeof data === 'string') return [data];
    return this.#dialect.has('multiline') ? JSON.stringify(data, null, 2).split('\n') : [JSON.stringify(data)];
  }

  #field(name, value) {
    return `${name}:${this.#dialect.has('tight') ? '' : ' '}${value}`;
  }

  #ended(lines) {
    return lines.reduce((text, line) => {
      // An LF right after a CR would be one line end with it, not an empty line.
      const end = line === '' && text.endsWith('\r') ? '\r' : this.#lineEnd();
      return text + line + end;
    }, '');
  }

  #lineEnd() {
    this.#lines += 1;
    if (this.#dialect.has('mixed')) return ['\n', '\r\n', '\r'][this.#lines % 3];
    if (this.#dialect.has('crlf')) return '\r\n';
    return this.#dialect.has('cr') ? '\r' : '\n';
  }

  #write(bytes) {
    let piece = bytes;
    const isLast = this.#cutBytes !== undefined && this.#sentBytes + piece.length >= this.#cutBytes;
    if (isLast) piece = piece.subarray(0, Math.max(0, this.#cutBytes - this.#sentBytes));
    this.#sentBytes += piece.length;
    if (!this.#splitBytes) {
      if (piece.length) this.#response.write(piece);
    } else {
      for (let at = 0; at < piece.length; at += this.#splitBytes)
        this.#queue.push(piece.subarray(at, at + this.#splitBytes));
      if (!this.#pumping) this.#pump();
    }
    if (isLast) this.#cut();
  }

  async #pump() {
    this.#pumping = true;
    while (this.#queue.length && !this.#response.destroyed) {
      if (!this.#response.write(this.#queue.shift()))
        await Promise.race([once(this.#response, 'drain'), once(this.#response, 'close')]);
      // A turn of the loop in between, or several pieces leave in one packet.
      await turn();
    }
    this.#pumping = false;
    if (this.#ending) this.#response.end();
  }

  // Lets out what was written, then closes without an end of the body.
  async #cut() {
    while (this.#pumping) await turn();
    const { socket } = this.#response;
    do await turn();
    while (socket?.writableLength && !socket.destroyed);
    this.#response.destroy();
  }
}

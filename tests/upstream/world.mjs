// What both eras of the fixture share: what it offers, what went on, and which faults are on. The
// side door (`control.mjs`) reads and changes it.

import { randomBytes, createHmac } from 'node:crypto';

export const MODERN = '2026-07-28';
export const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];
export const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
export const key = (name) => `io.modelcontextprotocol/${name}`;

// An error that is answered as a JSON-RPC error. `status` is the HTTP status in the modern era.
export class Refusal extends Error {
  constructor(code, message, { data, status } = {}) {
    super(message);
    this.body = { code, message, ...(data && { data }) };
    this.status = status;
  }
}

export const failure = (error) =>
  error instanceof Refusal ? error.body : { code: -32603, message: String(error?.message ?? error) };

// Thrown where a call cannot go on before the client has answered (modern era).
export class InputRequired {
  constructor(inputRequests, requestState) {
    this.result = { resultType: 'input_required', inputRequests, ...(requestState && { requestState }) };
  }
}

// The states of multi-round calls: `payload.signature`.
const secret = randomBytes(32);
const signature = (payload) => createHmac('sha256', secret).update(payload).digest('base64url');

export function seal(value) {
  const payload = Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${payload}.${signature(payload)}`;
}

export function unseal(state) {
  if (state === undefined) return undefined;
  const [payload, signed] = String(state).split('.');
  if (!payload || signature(payload) !== signed) throw new Refusal(-32602, 'requestState failed verification');
  return JSON.parse(Buffer.from(payload, 'base64url'));
}

export class World {
  // `faults` maps a name to its value; see server.mjs for what there is.
  faults = new Map();
  // Whoever wants to hear of changed lists and touched resources: a set of functions
  // (method, params) -> void for each session's standing stream and each listening client.
  listeners = new Set();
  // Calls of tools in the order they came: { name, label, state: running | done | cancelled }.
  calls = [];
  // How often each method was asked for, and the headers and parameters of the last time.
  requests = {};
  last = {};
  deleted = 0;
  initialized = 0;
  resumed = [];
  subscriptions = [];

  constructor(options, offers) {
    this.options = options;
    this.offers = offers;
  }

  isOn(name) {
    return this.faults.has(name);
  }

  number(name, otherwise) {
    const value = this.faults.get(name);
    return value === undefined ? otherwise : value === '' ? otherwise : Number(value);
  }

  note(request, message) {
    if (message.method === undefined) return;
    this.requests[message.method] = (this.requests[message.method] ?? 0) + 1;
    this.last[message.method] = { headers: request.headers, params: message.params };
  }

  listChanged(kind) {
    this.tell(`notifications/${kind}/list_changed`, undefined);
  }

  touched(uri) {
    this.tell('notifications/resources/updated', { uri });
  }

  tell(method, params) {
    for (const listener of this.listeners) listener(method, params);
  }

  // Runs a call of a tool on record.
  async recorded(name, label, signal, work) {
    const call = { name, ...(label !== undefined && { label }), state: 'running' };
    this.calls.push(call);
    const cancel = () => {
      if (call.state === 'running') call.state = 'cancelled';
    };
    signal.addEventListener('abort', cancel);
    try {
      return await work();
    } finally {
      signal.removeEventListener('abort', cancel);
      if (call.state === 'running') call.state = 'done';
    }
  }
}

// Settles after so many milliseconds, or at once when the call is cancelled.
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    if (signal?.aborted) done();
    else signal?.addEventListener('abort', done);
  });
}

// The legacy era (2024-11-05 to 2025-11-25): `initialize`, sessions, server requests. Streamable HTTP
// with resumption at /mcp, HTTP+SSE at /sse.

import { randomUUID } from 'node:crypto';
import { EventWriter } from './events.mjs';
import { json, refuse, reply } from './http.mjs';
import { capabilities, dispatch } from './methods.mjs';
import { LEGACY, LEVELS, failure } from './world.mjs';

const ANSWER_MILLISECONDS_MAX = 60_000;
const INFO = { name: 'ringway-upstream', version: '1.0.0' };

class Session {
  id = randomUUID();
  streams = new Map();
  // Requests to the client that wait for its answer, by id.
  waiting = new Map();
  // Calls in flight, by the JSON of the client's id.
  running = new Map();
  subscriptions = new Set();
  asked = 0;
  level = 'info';
  capabilities = {};
  version = LEGACY[0];
  // The stream of a GET without Last-Event-ID; of HTTP+SSE the only one.
  standing = null;

  constructor(world) {
    this.listen = (method, params) => {
      if (method === 'notifications/resources/updated' && !this.subscriptions.has(params.uri)) return;
      this.standing?.send({ jsonrpc: '2.0', method, ...(params && { params }) });
    };
    world.listeners.add(this.listen);
    this.world = world;
  }

  end() {
    this.world.listeners.delete(this.listen);
    for (const controller of this.running.values()) controller.abort();
    for (const stream of this.streams.values()) stream.end();
  }
}

// One stream with its history; its id is the prefix of its event ids. It outlives its connections.
class Stream {
  id = randomUUID().slice(0, 8);
  history = [];
  ended = false;
  writer = null;

  constructor(session, hasIds = true) {
    this.hasIds = hasIds;
    session.streams.set(this.id, this);
  }

  open(response, writing, headers) {
    const writer = new EventWriter(response, writing, headers);
    this.writer = writer;
    response.on('close', () => {
      if (this.writer === writer) this.writer = null;
    });
  }

  // `undefined` is the priming event: an id and empty data.
  send(message, retry) {
    const event = [`${this.id}.${this.history.length}`, message, retry];
    this.history.push(event);
    this.#write(event);
  }

  #write([id, message, retry]) {
    const named = this.hasIds ? { id } : {};
    if (message === undefined) this.writer?.event({ ...named, retry, data: '' });
    else this.writer?.event({ name: 'message', ...named, retry, data: message });
  }

  replay(after) {
    this.history.slice(after + 1).forEach((event) => this.#write(event));
    if (this.ended) this.drop();
  }

  drop() {
    const { writer } = this;
    this.writer = null;
    writer?.end();
  }

  end() {
    this.ended = true;
    this.drop();
  }
}

class Context {
  modern = false;

  constructor(era, session, stream, message) {
    this.world = era.world;
    this.session = session;
    this.version = session.version;
    this.capabilities = session.capabilities;
    this.progressToken = message.params?._meta?.progressToken;
    this.controller = new AbortController();
    this.signal = this.controller.signal;
    this.stream = stream;
  }

  // Where nothing can be said on the answer itself, the standing stream carries it.
  #send(message) {
    (this.stream ?? this.session.standing)?.send({ jsonrpc: '2.0', ...message });
  }

  notify(method, params) {
    this.#send({ method, params });
  }

  progress(progress, total, message) {
    if (this.progressToken === undefined) return;
    const said = message !== undefined && this.version >= '2025-03-26' ? { message } : {};
    this.notify('notifications/progress', { progressToken: this.progressToken, progress, total, ...said });
  }

  log(level, data) {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(this.session.level)) return;
    this.notify('notifications/message', { level, logger: 'upstream', data });
  }

  dropStream() {
    this.stream?.drop();
  }

  // Asks the client all of `requests` at once; gives its answers under the same names.
  async inputs(requests) {
    const asked = Object.values(requests).map(({ method, params }) => this.#ask(method, params));
    const answers = await Promise.all(asked);
    return Object.fromEntries(Object.keys(requests).map((name, at) => [name, answers[at]]));
  }

  async #ask(method, params) {
    const { session } = this;
    const capability = method.split('/')[0];
    if (method === 'elicitation/create' && this.version < '2025-06-18')
      throw new Error('this revision has no elicitation');
    if (params.mode === 'url' && this.version < '2025-11-25')
      throw new Error('this revision has no elicitation by URL');
    const offered = session.capabilities[capability];
    const lacks = !offered || (params.mode === 'url' && !offered.url);
    if (lacks && !this.world.isOn('presume')) throw new Error(`client lacks ${capability}`);
    session.asked += 1;
    // What an upstream counts itself meets what other upstreams count: ids are not unique beyond it.
    const id = session.asked;
    const elicitationId = params.mode === 'url' ? `elicitation-${id}` : undefined;
    const answer = new Promise((resolve, reject) => {
      const give = (then, value) => {
        session.waiting.delete(id);
        clearTimeout(timer);
        then(value);
      };
      const timer = setTimeout(() => give(reject, new Error('client did not answer')), ANSWER_MILLISECONDS_MAX);
      session.waiting.set(id, (error, result) => {
        if (error) give(reject, new Error(error.message));
        else give(resolve, result);
      });
      this.signal.addEventListener('abort', () => {
        if (!session.waiting.has(id)) return;
        this.#send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'the call was cancelled' } });
        give(reject, new Error('cancelled'));
      });
    });
    this.#send({ id, method, params: { ...params, ...(elicitationId && { elicitationId }) } });
    const result = await answer;
    if (elicitationId) this.notify('notifications/elicitation/complete', { elicitationId });
    return result;
  }
}

export class LegacyEra {
  sessions = new Map();
  #callsUntilForgotten = 0;

  constructor(world, versions) {
    this.world = world;
    this.versions = versions;
    // Of the clients of a server without sessions.
    this.anonymous = new Session(world);
  }

  async post(request, response, body) {
    const { world } = this;
    const isBatch = Array.isArray(body);
    const version = request.headers['mcp-protocol-version'];
    if (version !== undefined && !this.versions.includes(version))
      return refuse(response, 400, -32600, `Unsupported protocol version ${version}`);
    const named = request.headers['mcp-session-id'];
    const session = world.options.stateless ? this.anonymous : this.sessions.get(named);
    if (!isBatch && body.method === 'initialize') return this.#initialize(response, body, named && session);
    if (!session) return this.#noSession(response, named);
    if (isBatch && (session.version !== '2025-03-26' || !body.length))
      return refuse(response, 400, -32600, 'batch not allowed');
    const requests = (isBatch ? body : [body]).filter((message) => this.#isRequest(session, message));
    if (!requests.length) return accepted(world, response);
    const sessionHeader = this.#sessionHeader(session);
    if (!this.#isStreamed(requests)) {
      const answers = [];
      for (const message of requests) {
        const context = new Context(this, session, null, message);
        answers.push(await this.#answer(context, message));
      }
      // Cancelled: there is nothing left to say.
      if (!answers.some(Boolean)) return response.writeHead(202).end();
      this.#forgetInTime(requests);
      return json(response, 200, isBatch ? answers.filter(Boolean) : answers[0], sessionHeader);
    }
    await this.#stream(session, requests, response, sessionHeader);
    this.#forgetInTime(requests);
  }

  #initialize(response, message, session) {
    const { world } = this;
    if (session && !world.options.stateless)
      return refuse(response, 400, -32600, 'already initialized', { id: message.id });
    const opened = world.options.stateless ? this.anonymous : new Session(world);
    this.#negotiate(opened, message);
    if (!world.options.stateless) this.sessions.set(opened.id, opened);
    json(response, 200, reply(message.id, { result: this.#initialized(opened) }), this.#sessionHeader(opened));
  }

  #negotiate(session, { params }) {
    const wanted = params?.protocolVersion;
    session.version = this.versions.includes(wanted) ? wanted : this.versions[0];
    session.capabilities = params?.capabilities ?? {};
    this.world.initialized += 1;
  }

  #initialized({ version }) {
    return {
      protocolVersion: version,
      capabilities: capabilities(version, this.world.offers),
      serverInfo: INFO,
      instructions: 'A server to be put behind a gateway.',
    };
  }

  #noSession(response, named) {
    return named === undefined
      ? refuse(response, 400, -32600, 'Mcp-Session-Id required')
      : refuse(response, 404, -32001, 'Session not found');
  }

  #sessionHeader(session) {
    if (this.world.options.stateless) return {};
    if (this.world.isOn('session-changes')) {
      session.id = randomUUID();
      this.sessions.set(session.id, session);
    }
    return { 'mcp-session-id': session.id };
  }

  // Takes notifications and answers; says whether the message is a request.
  #isRequest(session, message) {
    if (message.method === undefined) {
      session.waiting.get(message.id)?.(message.error, message.result);
      return false;
    }
    if (message.id !== undefined) return true;
    if (message.method === 'notifications/cancelled')
      session.running.get(JSON.stringify(message.params?.requestId))?.abort();
    return false;
  }

  #isStreamed(requests) {
    const { answers } = this.world.options;
    if (answers !== 'auto') return answers === 'sse';
    return requests.some(({ method }) => method === 'tools/call' || method === 'prompts/get');
  }

  // `undefined` when the request was cancelled: nobody wants its answer any more.
  async #answer(context, message) {
    const name = JSON.stringify(message.id);
    context.session.running.set(name, context.controller);
    try {
      const result = await dispatch(message.method, message.params ?? {}, context);
      return context.signal.aborted ? undefined : reply(message.id, { result });
    } catch (error) {
      return context.signal.aborted ? undefined : reply(message.id, { error: failure(error) });
    } finally {
      context.session.running.delete(name);
    }
  }

  async #stream(session, requests, response, sessionHeader) {
    const { world } = this;
    const stream = new Stream(session, !world.isOn('no-ids'));
    const isCall = requests.some(({ method }) => method === 'tools/call');
    stream.open(response, world.options.writing(isCall && world.number('cut')), sessionHeader);
    const polls = world.isOn('poll');
    const primes = session.version >= '2025-11-25' && !world.isOn('no-priming') && !world.isOn('no-ids');
    if (polls || primes) stream.send(undefined, world.number('poll', world.number('retry', 1000)));
    if (polls) stream.drop();
    const answers = requests.map(async (message) => {
      const answer = await this.#answer(new Context(this, session, stream, message), message);
      if (!answer) return;
      this.#disturb(stream);
      if (!world.isOn('unanswered')) stream.send(answer);
    });
    await Promise.all(answers);
    if (!world.isOn('open')) stream.end();
    setTimeout(() => session.streams.delete(stream.id), 60_000).unref();
  }

  // What a client has to pass over: text that is no message, and answers to nothing it asked.
  #disturb(stream) {
    if (!this.world.isOn('noise')) return;
    stream.writer?.event({ name: 'weather', data: 'it rains' });
    stream.writer?.event({ name: 'message', data: '{"half": ' });
    stream.send(reply('nobody-asked', { result: {} }));
    stream.send({ jsonrpc: '2.0', method: 'notifications/unheard-of', params: {} });
  }

  #forgetInTime(requests) {
    if (!this.world.isOn('forget')) return;
    this.#callsUntilForgotten += requests.filter(({ method }) => method === 'tools/call').length;
    if (this.#callsUntilForgotten < this.world.number('forget', 10)) return;
    this.#callsUntilForgotten = 0;
    this.forget();
  }

  forget() {
    for (const session of new Set(this.sessions.values())) session.end();
    this.sessions.clear();
  }

  // Ends the connections of all streams. Without ids there is no coming back.
  closeStreams() {
    for (const session of [this.anonymous, ...this.sessions.values()])
      for (const stream of session.streams.values()) stream.drop();
  }

  get(request, response) {
    const { world } = this;
    if (world.isOn('no-get')) return methodNotAllowed(response, 'POST, DELETE');
    if (!/text\/event-stream/.test(request.headers.accept ?? ''))
      return refuse(response, 406, -32600, 'Accept must list text/event-stream');
    const named = request.headers['mcp-session-id'];
    const session = world.options.stateless ? this.anonymous : this.sessions.get(named);
    if (!session) return this.#noSession(response, named);
    const last = request.headers['last-event-id'];
    const [id, position] = String(last ?? '').split('.');
    const stream = world.isOn('no-resume') ? undefined : session.streams.get(id);
    if (stream) {
      // This stream is resumed, and only this one.
      world.resumed.push(last);
      stream.drop();
      stream.open(response, world.options.writing(), this.#sessionHeader(session));
      return stream.replay(Number(position));
    }
    if (session.standing?.writer) return refuse(response, 409, -32600, 'one standing stream a session');
    session.standing = new Stream(session, !world.isOn('no-ids'));
    session.standing.open(response, world.options.writing(), this.#sessionHeader(session));
  }

  delete(request, response) {
    if (this.world.isOn('no-delete') || this.world.options.stateless) return methodNotAllowed(response, 'GET, POST');
    const named = request.headers['mcp-session-id'];
    const session = this.sessions.get(named);
    if (!session) return this.#noSession(response, named);
    this.world.deleted += 1;
    session.end();
    for (const [id, one] of this.sessions) if (one === session) this.sessions.delete(id);
    response.writeHead(204).end();
  }

  // --- HTTP+SSE ---------------------------------------------------------------------------------

  openEvents(request, response) {
    const session = new Session(this.world);
    session.version = '2024-11-05';
    this.sessions.set(session.id, session);
    session.standing = new Stream(session, false);
    session.standing.open(response, this.world.options.writing());
    session.standing.writer.event({ name: 'endpoint', data: `/messages?sessionId=${session.id}` });
    // The connection is the session.
    response.on('close', () => {
      session.end();
      this.sessions.delete(session.id);
    });
  }

  async postMessage(request, response, message, id) {
    const session = this.sessions.get(id);
    if (!session) return refuse(response, 404, -32001, 'Session not found');
    response.writeHead(202, { 'content-type': 'text/plain' }).end('Accepted');
    if (message.method === 'initialize') {
      this.#negotiate(session, message);
      return session.standing.send(reply(message.id, { result: this.#initialized(session) }));
    }
    if (!this.#isRequest(session, message)) return;
    const answer = await this.#answer(new Context(this, session, session.standing, message), message);
    if (!answer) return;
    this.#disturb(session.standing);
    if (!this.world.isOn('unanswered')) session.standing.send(answer);
    this.#forgetInTime([message]);
  }
}

function accepted(world, response) {
  if (world.isOn('accepted-body')) return json(response, 202, { accepted: true });
  response.writeHead(202).end();
}

export function methodNotAllowed(response, allow) {
  json(response, 405, reply(undefined, { error: { code: -32600, message: 'method not allowed' } }), { allow });
}

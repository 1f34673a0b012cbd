// The modern era (2026-07-28): every request stands alone, headers repeat what the body says, the client
// is asked by `input_required`, and closing an answer cancels the call.

import { EventWriter } from './events.mjs';
import { json, refuse, reply } from './http.mjs';
import { capabilities, dispatch } from './methods.mjs';
import { InputRequired, LEVELS, MODERN, failure, key, seal, unseal } from './world.mjs';

const KEEP_ALIVE_MILLISECONDS = 15_000;
const INFO = { name: 'ringway-upstream', version: '1.0.0' };
const cached = {
  'server/discover': 'public',
  'tools/list': 'public',
  'prompts/list': 'public',
  'resources/list': 'public',
  'resources/templates/list': 'public',
  'resources/read': 'private',
};
const nameOf = { 'tools/call': 'name', 'prompts/get': 'name', 'resources/read': 'uri' };
const listOf = {
  'notifications/tools/list_changed': 'toolsListChanged',
  'notifications/prompts/list_changed': 'promptsListChanged',
  'notifications/resources/list_changed': 'resourcesListChanged',
};

class Context {
  modern = true;
  version = MODERN;
  #era;
  #response;
  #answered;
  #given;
  #round = 0;
  #writer = null;

  constructor(era, response, message) {
    const { params = {} } = message;
    this.#era = era;
    this.#response = response;
    this.world = era.world;
    this.message = message;
    this.meta = params._meta;
    this.capabilities = this.meta[key('clientCapabilities')];
    this.progressToken = this.meta.progressToken;
    const controller = new AbortController();
    this.signal = controller.signal;
    response.on('close', () => {
      if (!response.writableFinished) controller.abort();
    });
    const { inputResponses } = params;
    this.#given = inputResponses && typeof inputResponses === 'object' ? inputResponses : undefined;
    // What earlier rounds were told, one entry a round.
    this.#answered = unseal(params.requestState)?.answered ?? [];
    this.hasState = params.requestState !== undefined;
  }

  notify(method, params) {
    if (this.world.options.answers === 'json') return;
    this.#events().event({ name: 'message', data: { jsonrpc: '2.0', method, params } });
  }

  #events() {
    const isCall = this.message.method === 'tools/call';
    this.#writer ??= new EventWriter(this.#response, this.world.options.writing(isCall && this.world.number('cut')));
    return this.#writer;
  }

  progress(progress, total, message) {
    if (this.progressToken === undefined) return;
    this.notify('notifications/progress', { progressToken: this.progressToken, progress, total, message });
  }

  log(level, data) {
    const least = this.meta[key('logLevel')];
    if (!least || LEVELS.indexOf(level) < LEVELS.indexOf(least)) return;
    this.notify('notifications/message', { level, logger: 'upstream', data });
  }

  // This era has no coming back to a stream.
  dropStream() {}

  // The answers to `requests` once the client has given them all; until then the call ends here and is
  // made anew. `isSealed`: with a state even where nothing was answered before.
  async inputs(requests, { isSealed = false } = {}) {
    const round = this.#round++;
    if (round < this.#answered.length) return this.#answered[round];
    for (const [name, { method, params }] of Object.entries(requests)) {
      const capability = method.split('/')[0];
      const offered = this.capabilities[capability];
      const lacks = !offered || (params.mode === 'url' && !offered.url);
      if (lacks && !this.world.isOn('presume')) throw new Error(`client lacks ${capability}`);
      // Answers of the last round are spent on the first question that is open.
      if (!isAnswer(method, this.#given?.[name]) || (isSealed && !this.hasState)) {
        const needsState = isSealed || this.#answered.length > 0;
        throw new InputRequired(requests, needsState ? seal({ answered: this.#answered, round }) : undefined);
      }
    }
    const answers = Object.fromEntries(Object.keys(requests).map((name) => [name, this.#given[name]]));
    this.#answered.push(answers);
    this.#given = undefined;
    return answers;
  }

  async answer() {
    const { message, world } = this;
    let outcome;
    let status = 200;
    try {
      outcome = { result: this.#era.stamped(message.method, await this.#result()) };
    } catch (error) {
      outcome = { error: failure(error) };
      status = error.status ?? 200;
    }
    if (this.signal.aborted || world.isOn('unanswered')) return;
    const answer = reply(message.id, outcome);
    if (!this.#writer && world.options.answers !== 'sse') return json(this.#response, status, answer);
    const events = this.#events();
    if (world.isOn('noise')) {
      events.event({ name: 'weather', data: 'it rains' });
      events.event({ name: 'message', data: '{"half": ' });
      events.event({ name: 'message', data: reply('nobody-asked', { result: {} }) });
      events.comment('still there');
    }
    events.event({ name: 'message', data: answer });
    if (!world.isOn('open')) events.end();
  }

  async #result() {
    try {
      return await dispatch(this.message.method, this.message.params ?? {}, this);
    } catch (thrown) {
      if (thrown instanceof InputRequired) return thrown.result;
      throw thrown;
    }
  }
}

// Whether a client's answer has the shape that the request's method wants.
function isAnswer(method, answer) {
  if (answer === null || typeof answer !== 'object') return false;
  if (method === 'elicitation/create') return ['accept', 'decline', 'cancel'].includes(answer.action);
  if (method === 'roots/list') return Array.isArray(answer.roots);
  return answer.content !== undefined;
}

export class ModernEra {
  #listens = new Set();

  constructor(world, versions) {
    this.world = world;
    this.versions = versions;
  }

  async post(request, response, message) {
    if (message.id === undefined)
      return message.method === undefined
        ? refuse(response, 400, -32600, 'no responses in this revision')
        : response.writeHead(202).end();
    const { id, method, params = {} } = message;
    const meta = params._meta;
    const header = request.headers['mcp-protocol-version'];
    if (method === 'initialize' && header !== MODERN && meta?.[key('protocolVersion')] === undefined)
      return this.#unsupported(response, id, params.protocolVersion);
    const fault = this.#headerFault(request, message);
    if (fault) return refuse(response, 400, -32020, fault, { id });
    const version = meta?.[key('protocolVersion')];
    if (!version || !meta[key('clientCapabilities')])
      return refuse(response, 400, -32602, 'required _meta field missing', { id });
    if (version !== header) return refuse(response, 400, -32020, 'MCP-Protocol-Version does not match', { id });
    if (version !== MODERN) return this.#unsupported(response, id, version);
    if (method === 'subscriptions/listen') return this.#listen(response, message);
    if (method === 'server/discover') {
      const discovered = {
        supportedVersions: this.versions,
        capabilities: capabilities(MODERN, this.world.offers),
        instructions: 'A server to be put behind a gateway.',
      };
      return json(response, 200, reply(id, { result: this.stamped(method, discovered) }));
    }
    let context;
    try {
      context = new Context(this, response, message);
    } catch (error) {
      return json(response, 200, reply(id, { error: failure(error) }));
    }
    await context.answer();
  }

  #unsupported(response, id, requested) {
    const data = { supported: this.versions, requested };
    return refuse(response, 400, -32022, 'Unsupported protocol version', { id, data });
  }

  stamped(method, result) {
    if (this.world.isOn('bare-results')) return result;
    const hints =
      cached[method] && result.resultType !== 'input_required' ? { ttlMs: 1000, cacheScope: cached[method] } : {};
    return { resultType: 'complete', ...result, ...hints, _meta: { ...result._meta, [key('serverInfo')]: INFO } };
  }

  #headerFault({ headers }, { method, params = {} }) {
    if (headers['mcp-protocol-version'] === undefined) return 'MCP-Protocol-Version is missing';
    if (headers['mcp-method'] !== method) return 'Mcp-Method does not match';
    const name = params[nameOf[method]];
    if (name !== undefined && decoded(headers['mcp-name']) !== name) return 'Mcp-Name does not match';
    if (method !== 'tools/call') return undefined;
    const properties = this.world.offers.tools.get(params.name)?.inputSchema.properties ?? {};
    for (const [property, schema] of Object.entries(properties)) {
      const mirrored = schema['x-mcp-header'];
      if (!mirrored) continue;
      const wanted = params.arguments?.[property];
      const got = headers[`mcp-param-${mirrored.toLowerCase()}`];
      const matches = wanted === undefined || wanted === null ? got === undefined : decoded(got) === String(wanted);
      if (!matches) return `Mcp-Param-${mirrored} does not match`;
    }
    return undefined;
  }

  #listen(response, { id, params }) {
    const wanted = params.notifications ?? {};
    const known = [...Object.values(listOf), 'resourceSubscriptions'];
    const granted = Object.fromEntries(known.filter((name) => wanted[name]).map((name) => [name, wanted[name]]));
    const writer = new EventWriter(response, this.world.options.writing());
    const tagged = { [key('subscriptionId')]: id };
    const send = (method, more) =>
      writer.event({ name: 'message', data: { jsonrpc: '2.0', method, params: { ...more, _meta: tagged } } });
    send('notifications/subscriptions/acknowledged', { notifications: granted });
    const listener = (method, more) => {
      const wants = listOf[method] ? granted[listOf[method]] : granted.resourceSubscriptions?.includes(more.uri);
      if (wants) send(method, more);
    };
    const end = () => {
      writer.event({ name: 'message', data: reply(id, { result: { resultType: 'complete', _meta: tagged } }) });
      writer.end();
    };
    const beat = setInterval(() => writer.comment('keep-alive'), KEEP_ALIVE_MILLISECONDS);
    this.world.listeners.add(listener);
    this.#listens.add(end);
    response.on('close', () => {
      clearInterval(beat);
      this.world.listeners.delete(listener);
      this.#listens.delete(end);
    });
  }

  get listening() {
    return this.#listens.size;
  }

  closeStreams() {
    for (const end of this.#listens) end();
  }
}

// A header's value out of its =?base64?..?= form; undefined when it is missing or broken.
function decoded(value) {
  const trimmed = value?.trim();
  const encoded = /^=\?base64\?(.*)\?=$/s.exec(trimmed ?? '')?.[1];
  if (encoded === undefined) return trimmed;
  const isBase64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(encoded);
  return isBase64 ? Buffer.from(encoded, 'base64').toString() : undefined;
}

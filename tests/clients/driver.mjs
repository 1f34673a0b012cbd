// Drives a running ringway with the official TypeScript SDK: `driver.mjs v1|v2 http|sse`.
// The same cases, names and conversation with run.py as driver.py; see there.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [line, transportName] = process.argv.slice(2);
const here = path.dirname(fileURLToPath(import.meta.url));
const base = process.env.RINGWAY_TEST_BASE;
const keys = {
  assistant: process.env.RINGWAY_TEST_KEY,
  strict: process.env.RINGWAY_TEST_KEY_STRICT,
  governed: process.env.RINGWAY_TEST_KEY_GOVERNED,
};
const expected = JSON.parse(readFileSync(path.join(here, 'calls.json'), 'utf8'));
const chosen = (process.env.RINGWAY_TEST_CASES ?? '').split('|').filter(Boolean);
const newest = '2025-11-25';
const modern = '2026-07-28';
const caseMillisecondsMax = 40_000;

// The packages live in tests/.environment, outside this file's folder.
const resolver = createRequire(path.join(here, '..', '.environment', 'node', 'package.json'));
const load = (name) => import(pathToFileURL(resolver.resolve(name)).href);

let Client, HttpTransport, SseTransport, listen;
if (line === 'v1') {
  const types = await load('@modelcontextprotocol/sdk/types.js');
  ({ Client } = await load('@modelcontextprotocol/sdk/client/index.js'));
  ({ StreamableHTTPClientTransport: HttpTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js'));
  ({ SSEClientTransport: SseTransport } = await load('@modelcontextprotocol/sdk/client/sse.js'));
  const schemas = {
    tools: types.ToolListChangedNotificationSchema,
    prompts: types.PromptListChangedNotificationSchema,
    resources: types.ResourceListChangedNotificationSchema,
  };
  listen = (client, list, handler) => client.setNotificationHandler(schemas[list], handler);
} else {
  const sdk = await load('@modelcontextprotocol/client');
  ({ Client, StreamableHTTPClientTransport: HttpTransport, SSEClientTransport: SseTransport } = sdk);
  listen = (client, list, handler) => client.setNotificationHandler(`notifications/${list}/list_changed`, handler);
}

class Wrong extends Error {}
const check = (holds, why) => {
  if (!holds) throw new Wrong(typeof why === 'string' ? why : JSON.stringify(why));
};
const same = (a, b) => JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
const sorted = (value) => {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).sort().map(([key, inner]) => [key, sorted(inner)]));
};
const say = (text) => process.stdout.write(`${text.replaceAll('\n', ' ')}\n`);
const url = (application) => new URL(`${base}/runtime/demo/${application}/${transportName === 'sse' ? 'sse' : 'mcp'}`);

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  say(what);
  const { value } = await answers.next();
  check(value?.trim() === 'done', `${what} was answered ${value}`);
}

// Settles after `milliseconds`, or as soon as `event` does.
async function within(milliseconds, event) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, milliseconds, 'late');
  });
  try {
    return await Promise.race([event, late]);
  } finally {
    clearTimeout(timer);
  }
}

class Connection {
  sessionIds = [];
  posts = [];
  // The lists that were announced as changed.
  told = [];
  #changed;
  #announce;

  async open(application = 'assistant', { key = keys[application], mode } = {}) {
    const options = mode ? { versionNegotiation: { mode } } : {};
    this.client = new Client({ name: 'ringway-client-tests', version: '1.0.0' }, { capabilities: {}, ...options });
    for (const list of ['tools', 'prompts', 'resources'])
      listen(this.client, list, async () => {
        this.told.push(list);
        if (list === 'tools') this.#announce?.();
      });
    this.client.onerror = () => {};
    const requestInit = { headers: key ? { Authorization: `Bearer ${key}` } : {} };
    const spy = async (target, init) => {
      const response = await fetch(target, init);
      const session = response.headers.get('mcp-session-id');
      if (session) this.sessionIds.push(session);
      if (init?.method === 'POST' && response.status === 200) this.posts.push(response.headers.get('content-type') ?? '');
      return response;
    };
    this.transport =
      transportName === 'sse'
        ? new SseTransport(url(application), { requestInit, fetch: spy })
        : new HttpTransport(url(application), { requestInit, fetch: spy });
    await this.client.connect(this.transport);
    return this;
  }

  get version() {
    return this.client.getNegotiatedProtocolVersion?.() ?? this.transport.protocolVersion;
  }

  call(name, args, options) {
    const params = { name, arguments: args };
    return line === 'v1' ? this.client.callTool(params, undefined, options) : this.client.callTool(params, options);
  }

  // A promise of the next announcement of a changed tool list.
  changed() {
    this.#changed = new Promise((resolve) => {
      this.#announce = resolve;
    });
    return this.#changed;
  }

  async close() {
    if (transportName === 'http') await this.transport.terminateSession();
    await this.client.close();
  }
}

async function connected(work, ...how) {
  const connection = await new Connection().open(...how);
  let result;
  try {
    result = await work(connection);
  } catch (error) {
    // What went wrong first is what is told.
    await connection.close().catch(() => {});
    throw error;
  }
  await connection.close();
  return result;
}

// --- what an answer must be ---------------------------------------------------------------------

function lookUp(document, pointer) {
  let value = document;
  for (const part of pointer.split('/').slice(1)) {
    if (value === null || typeof value !== 'object' || !Object.hasOwn(value, part)) return [];
    value = value[part];
  }
  return [value];
}

function judge(call, result) {
  const text = (result.content ?? []).map((block) => block.text ?? '').join('\n');
  const shown = text.slice(0, 300);
  check(Boolean(result.isError) === (call.error ?? false), `isError is wrong: ${shown}`);
  for (const wanted of call.contains ?? []) check(text.includes(wanted), `${JSON.stringify(wanted)} is not in ${shown}`);
  if (!call.equals && !call.absent) return;
  const documents = [JSON.parse(text)];
  if (result.structuredContent !== undefined) documents.push(result.structuredContent);
  for (const document of documents) {
    for (const [pointer, value] of Object.entries(call.equals ?? {})) {
      const found = lookUp(document, pointer);
      check(same(found, [value]), `${pointer} is ${JSON.stringify(found)}, not ${JSON.stringify(value)}, in ${shown}`);
    }
    for (const pointer of call.absent ?? []) check(lookUp(document, pointer).length === 0, `${pointer} is in ${shown}`);
  }
}

async function fails(work, judgeError = () => {}) {
  let result;
  try {
    result = await work();
  } catch (error) {
    judgeError(error);
    return;
  }
  throw new Wrong(`a result: ${JSON.stringify(result)}`);
}

// --- cases --------------------------------------------------------------------------------------

async function handshake(c) {
  check(c.version === newest || transportName === 'sse', c.version);
  check(c.client.getServerVersion().name.toLowerCase() === 'ringway', c.client.getServerVersion());
  check('tools' in c.client.getServerCapabilities(), c.client.getServerCapabilities());
  check((c.client.getInstructions() ?? '').includes('httpbin'), c.client.getInstructions() ?? 'no instructions');
  if (transportName === 'http') check(/^[\x21-\x7e]{22,}$/.test(c.transport.sessionId), c.transport.sessionId);
}

async function toolList(c) {
  const { tools } = await c.client.listTools();
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  check(same(Object.keys(named).sort(), [...expected.tools].sort()), Object.keys(named));
  const schema = named.search.inputSchema;
  check(schema.type === 'object' && same(schema.required, ['text']), schema);
  check(same(schema.properties.sort.enum, ['newest', 'oldest']), schema);
  check(schema.properties.limit.default === 10, schema);
  check(!('source' in schema.properties), 'a constant is shown to clients');
  const { order } = named.place_order.inputSchema.properties;
  check(!('channel' in order.properties), 'a constant is shown to clients');
  const { lines } = order.properties;
  check(lines.type === 'array' && 'product' in lines.items.properties, lines);
  check(tools.every((tool) => tool.description), 'a tool without a description');
  check(named.search.annotations?.readOnlyHint === true, 'search is not marked as read-only');
}

async function otherLists(c) {
  check((await c.client.listResources()).resources.length === 0, 'resources');
  const { resourceTemplates } = await c.client.listResourceTemplates();
  check(same(resourceTemplates.map((one) => one.uriTemplate), expected.templates), resourceTemplates);
  check((await c.client.listPrompts()).prompts.length === 0, 'prompts');
}

const invalidParams = (error) => check(error.code === -32602, `${error.code}: ${error.message}`);
const unknownTool = (c) => fails(() => c.call('no_such_tool', {}), invalidParams);
const hiddenTool = (c) => fails(() => c.call(expected.hidden_tools[0], {}), invalidParams);

async function largeAnswer(c) {
  const note = '0123456789abcdef'.repeat(12_000);
  const order = { customer: { full_name: 'A' }, lines: [{ product: 'p', count: 1 }], notes: [note] };
  judge({ equals: { '/json/order/notes/0': note } }, await c.call('place_order', { order }));
}

async function parallelCalls(c) {
  const one = async (number) => {
    const result = await c.call('search', { text: `call ${number}`, limit: number });
    judge({ equals: { '/args/q': `call ${number}`, '/args/limit': String(number) } }, result);
  };
  await Promise.all(Array.from({ length: 20 }, (_, number) => one(number)));
}

async function parallelSlowCalls(c) {
  const begin = performance.now();
  const one = async (number) => {
    const result = await c.call('wait', { seconds: 1, label: `n${number}` });
    judge({ equals: { '/args/label': `n${number}` } }, result);
  };
  await Promise.all(Array.from({ length: 10 }, (_, number) => one(number)));
  const seconds = (performance.now() - begin) / 1000;
  check(seconds < 6, `ten waits of one second took ${seconds.toFixed(1)} s: one after another`);
}

async function progress(c) {
  const seen = [];
  const onprogress = (step) => seen.push(step.progress);
  const result = await c.call('wait', { seconds: 1, label: 'watched' }, { onprogress });
  judge({ equals: { '/args/label': 'watched' } }, result);
  check(seen.every((value, at) => at === 0 || value > seen[at - 1]), `progress must rise: ${seen}`);
}

async function answerKinds(c) {
  await c.client.ping();
  check(c.posts.at(-1).startsWith('application/json'), `a ping was answered with ${c.posts.at(-1)}`);
  await c.call('wait', { seconds: 1 });
  check(c.posts.at(-1).startsWith('text/event-stream'), `a slow call came as ${c.posts.at(-1)}`);
}

async function abandonedCall(c) {
  const begin = performance.now();
  await fails(() => c.call('wait', { seconds: 8 }, { timeout: 400 }));
  await c.client.ping();
  judge({ equals: { '/args/q': 'after' } }, await c.call('search', { text: 'after' }));
  check(performance.now() - begin < 6000, 'the session was blocked by the abandoned call');
}

// The standing stream opens in the background: announce until one announcement arrives.
async function listChanged(c) {
  const deadline = performance.now() + 15_000;
  const arrived = c.changed().then(() => 'arrived');
  do {
    check(performance.now() < deadline, 'no tools/list_changed arrived in 15 s');
    await ask('@notify');
  } while ((await within(500, arrived)) !== 'arrived');
}

async function sessionEnds() {
  const session = await connected(async (c) => {
    await c.client.ping();
    return c.transport.sessionId;
  });
  const answer = await fetch(url('assistant'), {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${keys.assistant}`,
      Accept: 'application/json, text/event-stream',
      'Content-Type': 'application/json',
      'Mcp-Session-Id': session,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });
  await answer.text();
  check(answer.status === 404, `the ended session was answered ${answer.status}`);
}

const searching = (text) => async (c) => judge({ equals: { '/args/q': text } }, await c.call('search', { text }));

async function restart() {
  if (transportName === 'sse') {
    // There the stream is the session: what must work is coming back.
    await connected(searching('before'));
    await ask('@restart');
    await connected(searching('back'));
    return;
  }
  await connected(async (c) => {
    await searching('before')(c);
    await ask('@restart');
    await searching('after')(c);
    await c.client.ping();
    check(new Set(c.sessionIds).size === 1, `the session changed: ${c.sessionIds}`);
    await listChanged(c);
  });
}

const refused = (key) => fails(() => connected(async () => 'connected with a key that must be refused', 'assistant', { key }));

async function automaticMode(c) {
  check(c.version === modern, c.version);
  await searching('auto')(c);
  const { tools } = await c.client.listTools();
  check(same(tools.map((tool) => tool.name).sort(), [...expected.tools].sort()), tools.map((tool) => tool.name));
  check(c.sessionIds.length === 0, c.sessionIds);
}

async function subscribed(c) {
  const changed = c.changed();
  const subscription = await c.client.listen({ toolsListChanged: true });
  check(same(subscription.honoredFilter, { toolsListChanged: true }), subscription.honoredFilter);
  await ask('@notify');
  check((await within(10_000, changed)) !== 'late', 'no notification');
  await subscription.close();
  await searching('after')(c);
}

// --- a governed catalog -------------------------------------------------------------------------

const prompt = 'A record is told by its number.\n\nAnswer in one sentence.\n\nRead before you write.';
const promptUri = 'runtime://toolsets/records/system-prompt';
const textOf = (result) => JSON.parse(result.content[0].text);

async function read(c, uri) {
  const { contents } = await c.client.readResource({ uri });
  check(contents[0].uri === uri, contents);
  return contents[0].text;
}

async function governedTools(c) {
  const { tools } = await c.client.listTools();
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  check(same(Object.keys(named).sort(), ['discover_tool_schema', 'list_slides', 'read_record']), Object.keys(named));
  const tool = named.read_record;
  check(tool.title === 'read record', tool);
  check(same(Object.keys(tool.inputSchema.properties).sort(), ['filter_tag', 'number']), tool);
  check(!JSON.stringify(tool.inputSchema).includes('description'), tool);
  check(tool.annotations.readOnlyHint === true, tool);
  check(tool._meta['io.ringway/safety'].sideEffect === 'read', tool);
}

async function discoveredSchema(c) {
  const { properties } = textOf(await c.call('discover_tool_schema', { tool_id: 'read_record' })).inputSchema;
  check(properties.number.description === 'The number of the record.', properties);
}

async function promptsAndResources(c) {
  const { prompts } = await c.client.listPrompts();
  check(same(prompts.map((one) => one.name), ['records']), prompts);
  const { messages } = await c.client.getPrompt({ name: 'records' });
  check(same(messages.map((one) => one.content.text), [prompt]), messages);
  const { resources } = await c.client.listResources();
  check(same(resources.map((one) => one.uri), [promptUri]), resources);
  check((await read(c, promptUri)) === prompt, 'the resource is not the prompt');
  const schema = JSON.parse(await read(c, 'runtime://tools/read_record/schema'));
  check(same(schema.inputSchema.required, ['number']), schema);
}

// The second SDK takes the code of old for that of the revision to come where the URI is beside it.
const unknownResource = (c) =>
  fails(
    () => read(c, 'runtime://toolsets/httpbin/system-prompt'),
    (error) => check(error.code === (line === 'v2' ? -32602 : -32002), `${error.code}: ${error.message}`),
  );
const deniedTool = (c) => fails(() => c.call('erase_record', {}), invalidParams);

// The SDK itself checks the content against the output schema that was listed.
async function structuredOutput(c) {
  const result = await c.call('read_record', { number: '7', filter_tag: 'new' });
  const wanted = { how: 'GET', filters: { '$filter[tag]': 'new' } };
  check(same(result.structuredContent, wanted), result);
  check(same(textOf(result), wanted), result);
}

async function restOfAResult(c) {
  const first = await c.call('list_slides', {});
  check(first.structuredContent.slideshow.slides.length === 1, first);
  const rest = first._meta['io.ringway/rest'];
  check(rest.missing.rows === 1, rest);
  const [part] = JSON.parse(await read(c, rest.uri)).continues;
  check(part.from === 1 && part.rows.length === 1, part);
  check(!(await c.call('list_slides', { next: rest.next })).isError, 'the next part is an error');
}

// Each change is told once, of the lists it changes, and those are others then.
async function listsChange(c) {
  const told = async (count) => {
    const deadline = performance.now() + 10_000;
    while (c.told.length < count) {
      check(performance.now() < deadline, `told of ${JSON.stringify(c.told)} only`);
      await within(20, new Promise(() => {}));
    }
    return c.told.splice(0).sort();
  };
  await listChanged(c);
  // What was announced to find out whether the stream is open may still be under way.
  await within(1000, new Promise(() => {}));
  c.told.length = 0;
  for (const [wish, isThere] of [['@unpublish', false], ['@publish', true]]) {
    await ask(wish);
    const lists = await told(1);
    check(same(lists, ['tools']), lists);
    const names = (await c.client.listTools()).tools.map((tool) => tool.name);
    check(names.includes('list_slides') === isThere, names);
  }
  await ask('@prompt');
  const lists = await told(2);
  check(same(lists, ['prompts', 'resources']), lists);
  const text = await read(c, promptUri);
  check(text === prompt.replace('Read before you write.', 'Write before you read.'), text);
}

async function governed(c) {
  const instructions = c.client.getInstructions() ?? '';
  check(instructions.startsWith('Records, as httpbin tells them.'), instructions);
  await run('the tools of a governed catalog', () => governedTools(c));
  await run('a schema that is discovered', () => discoveredSchema(c));
  await run('prompts and resources', () => promptsAndResources(c));
  await run('a resource of somebody else', () => unknownResource(c));
  await run('a tool that a policy denies', () => deniedTool(c));
  await run('structured output under other names', () => structuredOutput(c));
  await run('the rest of a result', () => restOfAResult(c));
  await run('changed lists are told and read again', () => listsChange(c));
}

async function searchingForTools(c) {
  const names = (await c.client.listTools()).tools.map((tool) => tool.name);
  check(same(names, ['search_tools', 'describe_tool', 'call_tool', 'list_slides']), names);
  const found = textOf(await c.call('search_tools', { query: 'read a record' }));
  check(found.tools[0].name === 'read_record', found);
  const described = textOf(await c.call('describe_tool', { name: 'read_record' }));
  check('number' in described.inputSchema.properties, described);
  const result = textOf(await c.call('call_tool', { name: 'read_record', arguments: { number: 7 } }));
  check(result.how === 'GET', result);
}

// --- running them -------------------------------------------------------------------------------

// The message of a failed check; of anything else also where it came from.
const why = (error) =>
  error instanceof Wrong ? error.message : (error?.stack ?? String(error)).split('\n').slice(0, 3).join(' ');

async function run(name, work) {
  if (chosen.length && !chosen.some((word) => name.includes(word))) return;
  try {
    if ((await within(caseMillisecondsMax, work())) === 'late') throw new Wrong('no end in sight');
    say(`ok ${name}`);
  } catch (error) {
    say(`FAIL ${name}: ${why(error)}`);
  }
}

async function expectedCall(c, call) {
  const begin = performance.now();
  judge(call, await c.call(call.tool, call.arguments));
  const took = performance.now() - begin;
  check(took <= (call.within_ms ?? took), `took ${took.toFixed(0)} ms`);
}

async function oneSession(c) {
  await run('handshake', () => handshake(c));
  await run('tool list', () => toolList(c));
  await run('resource and prompt lists', () => otherLists(c));
  await run('ping', () => c.client.ping());
  for (const call of expected.calls) await run(call.name, () => expectedCall(c, call));
  await run('an unknown tool', () => unknownTool(c));
  await run('a tool that is switched off', () => hiddenTool(c));
  await run('a large body both ways', () => largeAnswer(c));
  await run('twenty calls at once', () => parallelCalls(c));
  await run('slow calls side by side', () => parallelSlowCalls(c));
  await run('a slow call with progress', () => progress(c));
  await run('an abandoned call', () => abandonedCall(c));
  await run('tools/list_changed arrives', () => listChanged(c));
  if (transportName === 'http') await run('JSON when quick, SSE when slow', () => answerKinds(c));
}

process.on('unhandledRejection', (error) => say(`FAIL unhandled rejection: ${why(error)}`));

try {
  await connected(oneSession);
  say('ok connecting and leaving');
} catch (error) {
  say(`FAIL connecting and leaving: ${why(error)}`);
}
if (transportName === 'http') {
  await run('a closed client ends its session', sessionEnds);
  await run('a client application that wants sessions', () => connected(searching('strict'), 'strict'));
}
if (line === 'v2' && transportName === 'http') {
  await run('auto mode speaks the revision without sessions', () => connected(automaticMode, 'assistant', { mode: 'auto' }));
  await run('auto mode is told of changes it subscribes to', () => connected(subscribed, 'assistant', { mode: 'auto' }));
}
try {
  await connected(governed, 'governed');
} catch (error) {
  say(`FAIL a governed catalog: ${why(error)}`);
}
await run('tools that are searched for', () => connected(searchingForTools, 'finder'));
await run('an open client application needs no key', () => connected(searching('open'), 'public'));
await run('a wrong key is refused', () => refused(`rw_000000000000_${'A'.repeat(43)}`));
await run('a key of another client application is refused', () => refused(keys.strict));
await run('kill -9 and restart', restart);
process.exit(0);

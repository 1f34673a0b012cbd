// One column of the matrix with the official TypeScript SDK: `driver.mjs v1|v2 URL http|sse|modern`. The same
// rows, names and conversation with run.py as driver.py; see there.

import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';

const [line, url, era] = process.argv.slice(2);
const isModern = era === 'modern';
const here = path.dirname(fileURLToPath(import.meta.url));
const chosen = (process.env.RINGWAY_TEST_CASES ?? '').split('|').filter(Boolean);
const rowMillisecondsMax = 15_000;
const arrivesMillisecondsMax = 8_000;
const levels = ['warning', 'error', 'critical', 'alert', 'emergency'];
const logLevelKey = 'io.modelcontextprotocol/logLevel';
const signInPage = 'https://example.com/sign-in';

// The packages live in tests/.environment, outside this file's folder.
const resolver = createRequire(path.join(here, '..', '.environment', 'node', 'package.json'));
const load = (name) => import(pathToFileURL(resolver.resolve(name)).href);

let Client, HttpTransport, SseTransport, onRequest, onNotification;
if (line === 'v1') {
  const types = await load('@modelcontextprotocol/sdk/types.js');
  ({ Client } = await load('@modelcontextprotocol/sdk/client/index.js'));
  ({ StreamableHTTPClientTransport: HttpTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js'));
  ({ SSEClientTransport: SseTransport } = await load('@modelcontextprotocol/sdk/client/sse.js'));
  const schemas = {
    'elicitation/create': types.ElicitRequestSchema,
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
    'notifications/message': types.LoggingMessageNotificationSchema,
    'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
    'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
  };
  onRequest = (client, method, handler) => client.setRequestHandler(schemas[method], handler);
  onNotification = (client, method, handler) => client.setNotificationHandler(schemas[method], handler);
} else {
  const sdk = await load('@modelcontextprotocol/client');
  ({ Client, StreamableHTTPClientTransport: HttpTransport, SSEClientTransport: SseTransport } = sdk);
  onRequest = (client, method, handler) => client.setRequestHandler(method, handler);
  onNotification = (client, method, handler) => client.setNotificationHandler(method, handler);
}

class Wrong extends Error {}
const check = (holds, why) => {
  if (!holds) throw new Wrong(typeof why === 'string' ? why : JSON.stringify(why));
};
const same = (found, wanted) =>
  check(JSON.stringify(found) === JSON.stringify(wanted), `${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
const say = (text) => process.stdout.write(`${text.replaceAll('\n', ' ')}\n`);
const textOf = (result) => result.content.map((block) => block.text ?? '').join('\n');

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(what) {
  say(what);
  const { value } = await answers.next();
  check(value?.trim() === 'done', `${what} was answered ${value}`);
}

// Asks again and again until what is asked for is there; says whether it came.
async function until(milliseconds, condition) {
  const end = performance.now() + milliseconds;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() > end) return false;
    await pause(100);
  }
}

// --- what the client answers and hears ----------------------------------------------------------

const logged = [];
const updated = [];
const changed = [];
const visited = [];

const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
const negotiation = isModern ? { versionNegotiation: { mode: 'auto' } } : {};
const client = new Client({ name: 'ringway-matrix', version: '1.0.0' }, { capabilities, ...negotiation });
client.onerror = () => {};

onRequest(client, 'elicitation/create', async ({ params }) => {
  if (params.mode === 'url') {
    visited.push(params.url);
    return { action: 'accept' };
  }
  same(Object.keys(params.requestedSchema.properties), ['name']);
  return { action: 'accept', content: { name: 'Ada' } };
});
onRequest(client, 'sampling/createMessage', async ({ params }) => {
  const [said] = [params.messages[0].content].flat();
  return { role: 'assistant', model: 'test', content: { type: 'text', text: `heard ${said.text}` } };
});
onRequest(client, 'roots/list', async () => ({ roots: [{ uri: 'file:///work', name: 'work' }] }));
onNotification(client, 'notifications/message', async ({ params }) => {
  logged.push([params.level, params.data]);
});
onNotification(client, 'notifications/resources/updated', async ({ params }) => {
  updated.push(params.uri);
});
onNotification(client, 'notifications/tools/list_changed', async () => {
  changed.push('tools');
});

function call(name, given = {}, options = {}, more = {}) {
  const params = { name, arguments: given, ...more };
  return line === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

// All pages of a list.
async function everything(method, member) {
  const found = [];
  let cursor;
  do {
    // Version 2 keeps lists; asked anew it walks all pages itself.
    const options = line === 'v2' ? { cacheMode: 'refresh' } : undefined;
    const page = await client[method](cursor === undefined ? undefined : { cursor }, options);
    found.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

// Has changes delivered while `work` goes on: by a subscription of its own in the modern era.
async function listening(filter, work) {
  if (!isModern) {
    for (const uri of filter.resourceSubscriptions ?? []) await client.subscribeResource({ uri });
    return work();
  }
  const subscription = await client.listen(filter);
  try {
    return await work();
  } finally {
    await subscription.close();
  }
}

// --- the rows -----------------------------------------------------------------------------------

async function list() {
  const tools = await everything('listTools', 'tools');
  const named = Object.fromEntries(tools.map((tool) => [tool.name, tool]));
  for (const name of ['echo', 'add', 'slow', 'ask', 'wait', 'touch'])
    check(named[name], `${name} is not in ${Object.keys(named)}`);
  same(named.echo.description, 'Gives back what it was given.');
  same(named.echo.inputSchema.required, ['text']);
}

async function called() {
  const said = 'Grüße, 世界 \u{1f30d}';
  same(textOf(await call('echo', { text: said })), said);
  const failed = await call('fail', { message: 'no luck' });
  same([failed.isError, textOf(failed)], [true, 'no luck']);
}

const structured = async () => same((await call('add', { a: 1, b: 2 })).structuredContent, { sum: 3 });

async function progress() {
  const seen = [];
  const onprogress = (step) => seen.push([step.progress, step.total]);
  same(textOf(await call('slow', { steps: 4 }, { onprogress })), '4 steps done');
  // Over HTTP+SSE this SDK may drop the last one, which comes together with the answer.
  const wanted = [1, 2, 3, 4].map((step) => [step, 4]);
  same(seen, era === 'sse' ? wanted.slice(0, Math.max(3, seen.length)) : wanted);
}

async function log() {
  logged.length = 0;
  if (isModern) {
    await call('log', {}, {}, { _meta: { [logLevelKey]: 'warning' } });
  } else {
    await client.setLoggingLevel('warning');
    await call('log');
  }
  await until(arrivesMillisecondsMax, () => logged.length >= levels.length);
  same(logged, levels.map((level) => [level, { said: level }]));
}

const elicitationByForm = async () => same(textOf(await call('ask')), 'accept {"name":"Ada"}');

async function elicitationByUrl() {
  same(textOf(await call('ask_url')), 'accept');
  same(visited, [signInPage]);
}

const sampling = async () => same(textOf(await call('sample', { prompt: 'hello' })), 'the model said: heard hello');
const roots = async () => same(textOf(await call('list_roots')), 'file:///work');

async function cancel() {
  const label = `${line} ${era} ${process.pid}`;
  const controller = new AbortController();
  const running = call('wait', { seconds: 30, label }, { signal: controller.signal }).then(
    (result) => `it did not wait: ${JSON.stringify(result)}`,
    (error) => (controller.signal.aborted ? undefined : `it did not wait: ${error.message}`),
  );
  await pause(1000);
  controller.abort('enough');
  const early = await running;
  check(early === undefined, early);
  const told = async () => textOf(await call('cancelled')).includes(label);
  check(await until(arrivesMillisecondsMax, told), 'the upstream still waits');
}

async function subscribe() {
  const uri = 'test://watched';
  updated.length = 0;
  // A subscription may take effect a little later than it is answered.
  const touched = async () => {
    if (!updated.length) {
      await call('touch');
      await pause(400);
    }
    return updated.length > 0;
  };
  await listening({ resourceSubscriptions: [uri] }, async () => {
    check(await until(arrivesMillisecondsMax, touched), 'no update arrived');
  });
  same([...new Set(updated)], [uri]);
}

async function listChanged() {
  changed.length = 0;
  const name = `later_${process.pid}`;
  const listed = async () => (await everything('listTools', 'tools')).some((tool) => tool.name === name);
  await listening({ toolsListChanged: true }, async () => {
    await ask(`@add ${name}`);
    check(await until(arrivesMillisecondsMax, () => changed.length > 0), 'no announcement arrived');
    check(await until(arrivesMillisecondsMax, listed), `${name} is not listed`);
  });
  same(textOf(await call(name)), name);
}

async function prompts() {
  const listed = await everything('listPrompts', 'prompts');
  const greeting = listed.find((prompt) => prompt.name === 'greeting');
  same(greeting.arguments.map((one) => one.name), ['name', 'tone']);
  const result = await client.getPrompt({ name: 'greeting', arguments: { name: 'Ada', tone: 'formal' } });
  same(result.messages[0].content.text, 'Greet Ada in a formal tone.');
}

async function read(uri) {
  const { contents } = await client.readResource({ uri });
  same([contents.length, contents[0].uri], [1, uri]);
  return contents[0];
}

async function resources() {
  const listed = (await everything('listResources', 'resources')).map((one) => one.uri);
  check(listed.includes('test://static/text'), listed);
  same((await read('test://static/text')).text, 'static text');
  const { blob } = await read('test://static/binary');
  same(Buffer.from(blob, 'base64').subarray(1, 4).toString(), 'PNG');
}

async function templates() {
  const listed = (await everything('listResourceTemplates', 'resourceTemplates')).map((one) => one.uriTemplate);
  check(listed.includes('test://numbered/{number}'), listed);
  same(JSON.parse((await read('test://numbered/7')).text), { number: 7 });
}

async function completion() {
  const wanted = [
    [{ type: 'ref/prompt', name: 'greeting' }, { name: 'tone', value: 'fr' }, ['friendly', 'frosty']],
    [{ type: 'ref/resource', uri: 'test://numbered/{number}' }, { name: 'number', value: '1' }, ['1', '12']],
  ];
  for (const [ref, argument, values] of wanted)
    same((await client.complete({ ref, argument })).completion.values, values);
}

const rows = {
  list,
  call: called,
  'structured output': structured,
  progress,
  log,
  'elicitation by form': elicitationByForm,
  'elicitation by URL': elicitationByUrl,
  sampling,
  roots,
  cancel,
  subscribe,
  'list changed': listChanged,
  prompts,
  resources,
  templates,
  completion,
};

// --- running them -------------------------------------------------------------------------------

const why = (error) =>
  error instanceof Wrong ? error.message : (error?.stack ?? String(error)).split('\n').slice(0, 3).join(' ');

async function run(name, work) {
  if (chosen.length && !chosen.some((word) => name.includes(word))) return;
  const late = new AbortController();
  try {
    const end = pause(rowMillisecondsMax, 'late', { signal: late.signal }).catch(() => {});
    if ((await Promise.race([work(), end])) === 'late') throw new Wrong('no end in sight');
    say(`ok ${name}`);
  } catch (error) {
    say(`FAIL ${name}: ${why(error)}`);
  } finally {
    late.abort();
  }
}

process.on('unhandledRejection', (error) => say(`FAIL unhandled rejection: ${why(error)}`));

try {
  const transport = era === 'sse' ? new SseTransport(new URL(url)) : new HttpTransport(new URL(url));
  await client.connect(transport);
  if (isModern) same(client.getNegotiatedProtocolVersion(), '2026-07-28');
  for (const [name, work] of Object.entries(rows)) await run(name, work);
  if (era === 'http') await transport.terminateSession();
  await client.close();
  say('ok connecting and leaving');
} catch (error) {
  say(`FAIL connecting and leaving: ${why(error)}`);
}
process.exit(0);

#!/usr/bin/env node
// An MCP server to put behind a gateway: every revision, every thing a protocol can do, and every fault.
// No dependencies; node 20 or newer.
//
//   node tests/upstream/server.mjs --revision R --port 0 [OPTION...]
//
// It prints one line, `listening URL`, when it is ready. The endpoint is /mcp (Streamable HTTP), and
// /sse (HTTP+SSE) where 2024-11-05 is spoken; with `--revision 2024-11-05` alone the URL is that of /sse.
//
//   --revision R      2024-11-05 | 2025-03-26 | 2025-06-18 | 2025-11-25 | 2026-07-28: this one and no other;
//                     legacy (all before 2026-07-28) | modern (2026-07-28) | both (default)
//   --port N          0 (default): a free one
//   --offers NAME     general (default, see general.mjs) | conformance (see conformance.mjs)
//   --answers HOW     auto (default: event streams where something may come before the answer, else JSON)
//                     | json (nothing comes before an answer; what there is goes to the standing stream)
//                     | sse (every answer is an event stream)
//   --dialect WORDS   of event streams, comma-separated: crlf cr mixed bom comments multiline tight unnamed.
//                     All are legal; the SDKs miss an event that ends in CR until the next byte comes
//   --split N         event streams are written in pieces of N bytes
//   --stateless       legacy without session ids
//   --page N          lists come in pages of N
//   --token T         401 without this bearer token
//   --fault NAME[=V]  switched on from the start; may be repeated
//
// Faults:
//   frozen[=METHOD]   requests (of this method) are read and never answered, not even by a head
//   unanswered        streams and connections stay open, the answer never comes
//   open              the answer comes, its stream is not closed
//   reset[=METHOD]    the connection of such a request is reset
//   status=N[:METHOD] every POST (of this method) is answered with this status and a text that is no JSON
//   delay=N           calls of tools take N milliseconds longer
//   cut=N             event streams that answer calls of tools break after N bytes of their body; those of
//                     GET do not, so that they can be resumed
//   poll[=MS]         streams that answer are closed right after their priming event, with `retry: MS`
//   retry=MS          the priming event says `retry: MS` (1000)
//   no-priming        no empty first event
//   no-ids            events without ids: no resumption
//   no-resume         Last-Event-ID is ignored: a fresh stream instead of the old one
//   no-get            405 on GET
//   no-delete         405 on DELETE
//   accepted-body     202 with a body
//   forget[=N]        all sessions are forgotten after every N (10) calls of tools
//   session-changes   every answer carries a new session id; the old ones stay good
//   cycle             lists repeat one cursor for ever
//   noise             before an answer: events that are no messages, answers nobody asked for
//   presume           asks clients for what they have not declared
//   bare-results      modern results without resultType, cache hints and server information
//
// The side door is at /control on the same port; POST needs no body and answers 204, GET /control/state
// tells (JSON) how often each method was asked for (`requests`), headers and parameters of the last time
// (`last`), the calls of tools (`calls`: running, done, cancelled), `sessions`, `initialized`, `deleted`,
// `resumed` (Last-Event-IDs), `listening`, `subscriptions`:
//
//   POST /control/fault?name=NAME[&value=V]      /control/clear[?name=NAME] (one fault, or all)
//   POST /control/list_changed?kind=tools|prompts|resources
//   POST /control/touch?uri=URI
//   POST /control/describe?tool=NAME[&description=TEXT][&hidden=1]   changes a definition (hidden: appends
//        characters that nobody sees) without saying so; list_changed says so
//   POST /control/add_tool?name=NAME[&description=TEXT]     /control/remove_tool?name=NAME
//   POST /control/forget (all sessions)          /control/close_streams
//   POST /control/exit?code=N                    the process ends at once
//
// The tool `die` ends the process in mid-call; `large` answers with as many bytes as wanted.

import http from 'node:http';
import { parseArgs } from 'node:util';
import { conformanceOffers } from './conformance.mjs';
import { control } from './control.mjs';
import { dialectWords } from './events.mjs';
import { generalOffers } from './general.mjs';
import { body, isLocal, isMessage, json, refuse } from './http.mjs';
import { LegacyEra, methodNotAllowed } from './legacy.mjs';
import { ModernEra } from './modern.mjs';
import { LEGACY, MODERN, World, key } from './world.mjs';

const { values } = parseArgs({
  options: {
    revision: { type: 'string', default: 'both' },
    port: { type: 'string', default: '0' },
    offers: { type: 'string', default: 'general' },
    answers: { type: 'string', default: 'auto' },
    dialect: { type: 'string', default: '' },
    split: { type: 'string', default: '0' },
    stateless: { type: 'boolean', default: false },
    page: { type: 'string', default: '0' },
    token: { type: 'string' },
    fault: { type: 'string', multiple: true, default: [] },
  },
});

function wrong(why) {
  console.error(`server.mjs: ${why}`);
  process.exit(2);
}

const revisions = { both: [MODERN, ...LEGACY], legacy: LEGACY, modern: [MODERN] };
const versions = revisions[values.revision] ?? [MODERN, ...LEGACY].filter((one) => one === values.revision);
if (!versions.length) wrong(`there is no revision ${values.revision}`);
if (!['auto', 'json', 'sse'].includes(values.answers)) wrong('--answers is auto, json or sse');
const dialect = values.dialect.split(',').filter(Boolean);
const unknown = dialect.find((word) => !dialectWords.includes(word));
if (unknown) wrong(`there is no dialect ${unknown}`);
const offers = { general: generalOffers, conformance: conformanceOffers }[values.offers];
if (!offers) wrong(`there are no offers ${values.offers}`);

const world = new World(
  {
    answers: values.answers,
    stateless: values.stateless,
    pageSize: Number(values.page),
    // How an event stream is written; `cutBytes` only where a fault wants it.
    writing: (cutBytes) => ({
      dialect,
      splitBytes: Number(values.split),
      cutBytes: typeof cutBytes === 'number' ? cutBytes : undefined,
    }),
  },
  offers(),
);
for (const fault of values.fault) {
  const [name, ...value] = fault.split('=');
  world.faults.set(name, value.join('='));
}

const legacyVersions = versions.filter((one) => one !== MODERN);
const legacy = legacyVersions.length ? new LegacyEra(world, legacyVersions) : null;
const modern = versions.includes(MODERN) ? new ModernEra(world, versions) : null;
const speaksEvents = versions.includes('2024-11-05');
const onlyEvents = speaksEvents && versions.length === 1;

const isModern = (request, message) => {
  if (!modern) return false;
  if (!legacy) return true;
  const header = request.headers['mcp-protocol-version'];
  if (Array.isArray(message) || (message.method === 'initialize' && header !== MODERN)) return false;
  return header === MODERN || message.params?._meta?.[key('protocolVersion')] !== undefined;
};

// Whether a fault of this name is on for a message: for all methods, or for the one it names.
function hits(name, message, value = world.faults.get(name)) {
  if (!world.isOn(name)) return false;
  return !value || message.method === value;
}

// What stands before every POST; true when the request has been dealt with.
function faulty(request, response, message) {
  if (hits('frozen', message)) return true;
  if (hits('reset', message)) {
    request.socket.resetAndDestroy();
    return true;
  }
  const [status, method] = (world.faults.get('status') ?? '').split(':');
  if (status && hits('status', message, method)) {
    response.writeHead(Number(status), { 'content-type': 'text/plain' }).end('out of order');
    return true;
  }
  return false;
}

async function post(request, response, url) {
  const accept = request.headers.accept ?? '';
  const isEvents = url.pathname === '/messages';
  if (!isEvents && !(/application\/json/.test(accept) && /text\/event-stream/.test(accept)))
    return refuse(response, 406, -32600, 'Accept must list application/json and text/event-stream');
  let message;
  try {
    message = JSON.parse(await body(request));
  } catch {
    return refuse(response, 400, -32700, 'Parse error');
  }
  const all = Array.isArray(message) ? message : [message];
  if (!all.every(isMessage)) return refuse(response, 400, -32600, 'Invalid Request');
  for (const one of all) world.note(request, one);
  if (faulty(request, response, all[0] ?? {})) return undefined;
  if (isEvents) return legacy.postMessage(request, response, message, url.searchParams.get('sessionId'));
  return isModern(request, message) ? modern.post(request, response, message) : legacy.post(request, response, message);
}

async function serve(request, response) {
  const url = new URL(request.url, 'http://upstream');
  if (!isLocal(request)) return refuse(response, 403, -32600, 'host or origin not allowed');
  if (url.pathname.startsWith('/control/')) return control(request, response, url, { world, legacy, modern });
  if (values.token && request.headers.authorization !== `Bearer ${values.token}`)
    return json(response, 401, { error: 'unauthorized' }, { 'www-authenticate': 'Bearer error="invalid_token"' });
  const isMcp = url.pathname === '/mcp' && !onlyEvents;
  if (world.faults.get('frozen') === '' && request.method !== 'POST') return undefined;
  if (request.method === 'GET' && url.pathname === '/sse' && speaksEvents) return legacy.openEvents(request, response);
  if (request.method === 'POST' && (isMcp || (url.pathname === '/messages' && speaksEvents)))
    return post(request, response, url);
  if (!isMcp) return refuse(response, 404, -32600, 'no such path');
  if (request.method === 'GET' && legacy) return legacy.get(request, response);
  if (request.method === 'DELETE' && legacy) return legacy.delete(request, response);
  return methodNotAllowed(response, legacy ? 'GET, POST, DELETE' : 'POST');
}

const server = http.createServer((request, response) => {
  serve(request, response).catch((error) => {
    if (response.headersSent) response.destroy();
    else refuse(response, 500, -32603, String(error.message ?? error));
  });
});
// Connections that a gateway keeps are not closed under its hands.
server.keepAliveTimeout = 120_000;
server.requestTimeout = 0;
server.on('connection', (socket) => socket.setNoDelay(true));
server.listen(Number(values.port), '127.0.0.1', () =>
  console.log(`listening http://127.0.0.1:${server.address().port}${onlyEvents ? '/sse' : '/mcp'}`),
);

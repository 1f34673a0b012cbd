// The side door: what a test does to the fixture, and what it can learn of it. See server.mjs.

import { nothing, text } from './media.mjs';
import { json, refuse } from './http.mjs';

// A zero-width space, a direction override and letters of the tag block: seen by models, not by people.
const hidden = '\u200b\u202e\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}';

export function control(request, response, url, { world, legacy, modern }) {
  const word = url.pathname.slice('/control/'.length);
  const { tools } = world.offers;
  const say = Object.fromEntries(url.searchParams);
  if (request.method === 'GET' && word === 'state') return json(response, 200, state(world, legacy, modern));
  if (request.method !== 'POST') return refuse(response, 405, -32600, 'method not allowed');
  switch (word) {
    case 'fault':
      world.faults.set(say.name, say.value ?? '');
      break;
    case 'clear':
      if (say.name === undefined) world.faults.clear();
      else world.faults.delete(say.name);
      break;
    case 'list_changed':
      world.listChanged(say.kind);
      break;
    case 'touch':
      world.touched(say.uri);
      break;
    case 'describe': {
      const tool = tools.get(say.tool);
      if (!tool) return refuse(response, 404, -32602, 'no such tool');
      tool.description = (say.description ?? tool.description) + (say.hidden ? hidden : '');
      break;
    }
    case 'add_tool':
      tools.set(say.name, {
        description: say.description ?? 'Came later.',
        inputSchema: nothing,
        call: () => text(say.name),
      });
      break;
    case 'remove_tool':
      tools.delete(say.name);
      break;
    case 'forget':
      legacy?.forget();
      break;
    case 'close_streams':
      legacy?.closeStreams();
      modern?.closeStreams();
      break;
    case 'exit':
      process.exit(Number(say.code ?? 0));
      break;
    default:
      return refuse(response, 404, -32600, 'no such word');
  }
  response.writeHead(204).end();
}

function state(world, legacy, modern) {
  const { requests, last, calls, initialized, deleted, resumed, subscriptions } = world;
  return {
    requests,
    last,
    calls,
    initialized,
    deleted,
    resumed,
    subscriptions,
    sessions: legacy ? new Set(legacy.sessions.values()).size : 0,
    listening: modern?.listening ?? 0,
    faults: Object.fromEntries(world.faults),
  };
}

// The methods of both eras, answered from what is offered. What a revision lacks is left out.

import { LEVELS, Refusal, pause } from './world.mjs';

const since = (version, first) => version >= first;

export function capabilities(version, offers) {
  return {
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
    logging: {},
    ...(since(version, '2025-03-26') && { completions: {} }),
    ...offers.capabilities,
  };
}

export async function dispatch(method, params, context) {
  const { world, version } = context;
  const { offers } = world;
  switch (method) {
    case 'tools/list':
      return page(world, params, 'tools', [...offers.tools].map(([name, tool]) => shownTool(version, name, tool)));
    case 'tools/call':
      return call(params, context);
    case 'resources/list':
      return page(world, params, 'resources', offers.resources.map((one) => shownResource(version, one)));
    case 'resources/templates/list':
      return page(world, params, 'resourceTemplates', offers.templates.map((one) => shownResource(version, one)));
    case 'resources/read':
      return { contents: offers.read(params.uri, context) ?? notFound(params.uri, context) };
    case 'prompts/list': {
      const shown = [...offers.prompts].map(([name, prompt]) => shownPrompt(version, name, prompt));
      return page(world, params, 'prompts', shown);
    }
    case 'prompts/get':
      return get(params, context);
    case 'completion/complete':
      return { completion: offers.complete(params.ref ?? {}, params.argument ?? {}, params.context ?? {}) };
  }
  if (context.modern) throw new Refusal(-32601, 'Method not found', { status: 404 });
  switch (method) {
    case 'ping':
      return {};
    case 'logging/setLevel':
      if (!LEVELS.includes(params.level)) throw new Refusal(-32602, `Unknown level: ${params.level}`);
      context.session.level = params.level;
      return {};
    case 'resources/subscribe':
      context.session.subscriptions.add(params.uri);
      world.subscriptions.push(params.uri);
      return {};
    case 'resources/unsubscribe':
      context.session.subscriptions.delete(params.uri);
      world.subscriptions = world.subscriptions.filter((uri) => uri !== params.uri);
      return {};
  }
  throw new Refusal(-32601, 'Method not found');
}

function shownTool(version, name, { title, description, inputSchema, outputSchema, annotations }) {
  return {
    name,
    ...(title && since(version, '2025-06-18') && { title }),
    description,
    inputSchema,
    ...(outputSchema && since(version, '2025-06-18') && { outputSchema }),
    ...(annotations && since(version, '2025-03-26') && { annotations }),
  };
}

function shownResource(version, { title, text, blob, ...shown }) {
  return { ...shown, ...(title && since(version, '2025-06-18') && { title }) };
}

function shownPrompt(version, name, { title, description, arguments: wanted = [] }) {
  return {
    name,
    ...(title && since(version, '2025-06-18') && { title }),
    description,
    ...(wanted.length && { arguments: wanted }),
  };
}

// Cursors are a list's name and a position; with the fault `cycle` the same one comes for ever.
function page(world, params, list, all) {
  const { pageSize } = world.options;
  let begin = 0;
  if (params.cursor !== undefined) {
    const [named, position] = Buffer.from(String(params.cursor), 'base64url').toString().split(':');
    begin = Number(position);
    if (named !== list || !Number.isInteger(begin) || begin < 0) throw new Refusal(-32602, 'Invalid cursor');
  }
  const cursor = (position) => Buffer.from(`${list}:${position}`).toString('base64url');
  const end = pageSize ? begin + pageSize : all.length;
  const shown = all.slice(begin, end);
  if (world.isOn('cycle')) return { [list]: shown, nextCursor: cursor(0) };
  return { [list]: shown, ...(end < all.length && { nextCursor: cursor(end) }) };
}

async function call(params, context) {
  const { world } = context;
  const tool = world.offers.tools.get(params.name);
  if (!tool) throw new Refusal(-32602, `Unknown tool: ${params.name}`);
  const given = params.arguments ?? {};
  const missing = (tool.inputSchema.required ?? []).filter((name) => given[name] === undefined);
  if (missing.length) return { content: [{ type: 'text', text: `Missing argument: ${missing}` }], isError: true };
  const work = async () => {
    const delay = world.number('delay', 0);
    if (delay) await pause(delay, context.signal);
    return tool.call(context, given);
  };
  try {
    const result = await world.recorded(params.name, given.label, context.signal, work);
    if (since(context.version, '2025-06-18')) return result;
    const { structuredContent, ...older } = result;
    return older;
  } catch (error) {
    if (!(error instanceof Error) || error instanceof Refusal) throw error;
    return { content: [{ type: 'text', text: error.message }], isError: true };
  }
}

async function get(params, context) {
  const prompt = context.world.offers.prompts.get(params.name);
  if (!prompt) throw new Refusal(-32602, `Unknown prompt: ${params.name}`);
  const given = params.arguments ?? {};
  const missing = (prompt.arguments ?? []).filter(({ name, required }) => required && given[name] === undefined);
  if (missing.length) throw new Refusal(-32602, `Missing argument: ${missing.map(({ name }) => name)}`);
  return prompt.get(context, given);
}

function notFound(uri, { modern }) {
  throw new Refusal(modern ? -32602 : -32002, 'Resource not found', { data: { uri } });
}

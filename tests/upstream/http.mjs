// Small things of HTTP that both eras need.

export const reply = (id, outcome) => ({ jsonrpc: '2.0', ...(id !== undefined && { id }), ...outcome });

export function json(response, status, body, headers = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function refuse(response, status, code, message, { id, data } = {}) {
  json(response, status, reply(id, { error: { code, message, ...(data && { data }) } }));
}

export async function body(request) {
  const parts = [];
  for await (const part of request) parts.push(part);
  return Buffer.concat(parts);
}

const local = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i.test(host ?? '');

// Whether Host and Origin, where there is one, name this machine (against DNS rebinding).
export function isLocal({ headers }) {
  if (!local(headers.host)) return false;
  if (headers.origin === undefined) return true;
  try {
    return local(new URL(headers.origin).host);
  } catch {
    return false;
  }
}

export const isMessage = (value) =>
  value !== null &&
  typeof value === 'object' &&
  !Array.isArray(value) &&
  value.jsonrpc === '2.0' &&
  value.id !== null &&
  (typeof value.method === 'string' || 'result' in value || 'error' in value);

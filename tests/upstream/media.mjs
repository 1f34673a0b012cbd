// Sample media, made here.

import { deflateSync } from 'node:zlib';

function checksum(bytes) {
  let sum = ~0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type), data]);
  const out = Buffer.alloc(body.length + 8);
  out.writeUInt32BE(data.length, 0);
  body.copy(out, 4);
  out.writeUInt32BE(checksum(body), body.length + 4);
  return out;
}

// One red pixel.
function png() {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(1, 0);
  header.writeUInt32BE(1, 4);
  header.set([8, 2], 8);
  const pixels = deflateSync(Buffer.from([0, 255, 0, 0]));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  const chunks = [chunk('IHDR', header), chunk('IDAT', pixels), chunk('IEND', Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]);
}

// One sample: 8 kHz, mono, 16 bit.
function wav() {
  const bytes = Buffer.alloc(46);
  bytes.write('RIFF');
  bytes.writeUInt32LE(38, 4);
  bytes.write('WAVEfmt ', 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(8000, 24);
  bytes.writeUInt32LE(16000, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36);
  bytes.writeUInt32LE(2, 40);
  return bytes;
}

export const PNG = png().toString('base64');
export const WAV = wav().toString('base64');
export const image = { type: 'image', data: PNG, mimeType: 'image/png' };
export const audio = { type: 'audio', data: WAV, mimeType: 'audio/wav' };

// What a tool or prompt says, and what it asks.
export const text = (said) => ({ content: [{ type: 'text', text: said }] });
export const user = (...blocks) => ({
  messages: blocks.map((block) => ({
    role: 'user',
    content: typeof block === 'string' ? { type: 'text', text: block } : block,
  })),
});
export const form = (message, properties, required = Object.keys(properties)) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties, ...(required.length && { required }) } },
});
export const page = (message, url) => ({ method: 'elicitation/create', params: { mode: 'url', message, url } });
export const completion = (prompt, maxTokens = 100) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens },
});
export const roots = { method: 'roots/list', params: {} };
export const nothing = { type: 'object', additionalProperties: false };
export const strings = (...names) => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
  required: names,
});

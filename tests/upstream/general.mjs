// What the fixture offers to the project's own tests: one tool for each thing that a protocol can do.

import { PNG, audio, completion, form, image, nothing, page, roots, strings, text, user } from './media.mjs';
import { LEVELS, Refusal, pause } from './world.mjs';

const numbered = 'test://numbered/{number}';
const readOnly = { readOnlyHint: true, openWorldHint: false };
const action = ({ action: chosen, content }) => `${chosen} ${JSON.stringify(content ?? {})}`;
const name = { name: { type: 'string', title: 'Name', minLength: 1 } };

export function generalOffers() {
  const watched = { uri: 'test://watched', name: 'watched', mimeType: 'text/plain', text: 'untouched' };
  let touches = 0;
  const late = [];

  const tools = {
    echo: {
      title: 'Echo',
      description: 'Gives back what it was given.',
      inputSchema: strings('text'),
      annotations: readOnly,
      call: (_, { text: said }) => text(said),
    },
    add: {
      description: 'Adds two numbers.',
      inputSchema: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
        additionalProperties: false,
      },
      outputSchema: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] },
      annotations: readOnly,
      call(_, { a, b }) {
        const sum = { sum: a + b };
        return { ...text(JSON.stringify(sum)), structuredContent: sum };
      },
    },
    slow: {
      description: 'Works in steps and tells of each.',
      inputSchema: {
        type: 'object',
        properties: {
          steps: { type: 'integer', default: 4 },
          milliseconds: { type: 'integer', default: 50 },
          label: { type: 'string' },
        },
      },
      async call(context, { steps = 4, milliseconds = 50 }) {
        for (let step = 1; step <= steps; step++) {
          await pause(milliseconds, context.signal);
          context.progress(step, steps, `step ${step}`);
        }
        return text(`${steps} steps done`);
      },
    },
    log: {
      description: 'Logs one message at each level.',
      inputSchema: nothing,
      call(context) {
        LEVELS.forEach((level) => context.log(level, { said: level }));
        return text('logged');
      },
    },
    ask: {
      description: 'Asks the user for a name.',
      inputSchema: { type: 'object', properties: { question: { type: 'string' } } },
      async call(context, { question = 'What is your name?' }) {
        const { who } = await context.inputs({ who: form(question, name) }, { isSealed: true });
        return text(action(who));
      },
    },
    ask_twice: {
      description: 'Asks the user for a name, then for a colour.',
      inputSchema: nothing,
      async call(context) {
        const { who } = await context.inputs({ who: form('What is your name?', name) });
        const question = `Which colour, ${who.content?.name}?`;
        const { colour } = await context.inputs({ colour: form(question, { colour: { type: 'string' } }) });
        return text(`${action(who)} ${action(colour)}`);
      },
    },
    ask_often: {
      description: 'Asks the user for a name again and again, until it is refused that.',
      inputSchema: { type: 'object', properties: { times: { type: 'integer', default: 3 } } },
      async call(context, { times = 3 }) {
        for (let asked = 0; asked < times; asked++) {
          try {
            await context.inputs({ [`who_${asked}`]: form(`What is name ${asked}?`, name) });
          } catch (error) {
            if (!(error instanceof Error)) throw error;
            return text(`after ${asked}: ${error.message}`);
          }
        }
        return text(`asked ${times} times`);
      },
    },
    ask_url: {
      description: 'Asks the user to open a page.',
      inputSchema: nothing,
      async call(context) {
        const { visit } = await context.inputs({ visit: page('Please sign in', 'https://example.com/sign-in') });
        return text(visit.action);
      },
    },
    ask_all: {
      description: 'Asks the user, the model and the client at once.',
      inputSchema: nothing,
      async call(context) {
        const three = { who: form('What is your name?', name), greeting: completion('Greet'), where: roots };
        const { who, greeting, where } = await context.inputs(three);
        return text(JSON.stringify({ who: who.content, greeting: greeting.content, where: where.roots }));
      },
    },
    sample: {
      description: "Asks the client's model.",
      inputSchema: strings('prompt'),
      async call(context, { prompt }) {
        const { said } = await context.inputs({ said: completion(prompt) });
        return text(`the model said: ${said.content?.text ?? JSON.stringify(said.content)}`);
      },
    },
    list_roots: {
      description: "Lists the client's roots.",
      inputSchema: nothing,
      async call(context) {
        const { where } = await context.inputs({ where: roots });
        return text(where.roots.map(({ uri }) => uri).join(' '));
      },
    },
    wait: {
      description: 'Waits, unless it is cancelled.',
      inputSchema: {
        type: 'object',
        properties: { seconds: { type: 'number' }, label: { type: 'string' } },
        required: ['seconds'],
      },
      async call(context, { seconds }) {
        context.progress(0, 1, 'waiting');
        await pause(seconds * 1000, context.signal);
        return text('waited');
      },
    },
    ask_late: {
      description: "Lists the client's roots once it is cancelled, and keeps what came of it.",
      inputSchema: { type: 'object', properties: { label: { type: 'string' } } },
      async call(context) {
        await pause(3_600_000, context.signal);
        await context.inputs({ where: roots }).then(
          ({ where }) => late.push(`roots ${JSON.stringify(where.roots)}`),
          (error) => late.push(`refused: ${error.message}`),
        );
        return text('too late');
      },
    },
    came_late: {
      description: 'Tells what came of questions that were asked too late.',
      inputSchema: nothing,
      annotations: readOnly,
      call: () => text(late.join(' ')),
    },
    cancelled: {
      description: 'Lists the labels of the calls that were cancelled.',
      inputSchema: nothing,
      annotations: readOnly,
      call({ world }) {
        const calls = world.calls.filter(({ state }) => state === 'cancelled');
        return text(JSON.stringify(calls.map(({ label }) => label)));
      },
    },
    fail: {
      description: 'Fails.',
      inputSchema: strings('message'),
      call: (_, { message }) => ({ ...text(message), isError: true }),
    },
    refuse: {
      description: 'Answers with a protocol error.',
      inputSchema: nothing,
      call() {
        throw new Refusal(-32050, 'refused by the upstream', { data: { why: 'on purpose' } });
      },
    },
    large: {
      description: 'Answers with so many bytes of text.',
      inputSchema: { type: 'object', properties: { bytes: { type: 'integer' } }, required: ['bytes'] },
      call: (_, { bytes }) => text('0123456789abcdef'.repeat(Math.ceil(bytes / 16)).slice(0, bytes)),
    },
    image: { description: 'One red pixel.', inputSchema: nothing, call: () => ({ content: [image] }) },
    audio: { description: 'One sample of silence.', inputSchema: nothing, call: () => ({ content: [audio] }) },
    links: {
      description: 'A resource and a link to one.',
      inputSchema: nothing,
      call: ({ version }) => ({
        content: [
          { type: 'resource', resource: { uri: 'test://embedded', mimeType: 'text/plain', text: 'embedded' } },
          ...(version >= '2025-06-18' ? [{ type: 'resource_link', uri: 'test://static/text', name: 'text' }] : []),
        ],
      }),
    },
    touch: {
      description: 'Touches a resource.',
      inputSchema: { type: 'object', properties: { uri: { type: 'string' } } },
      call({ world }, { uri = watched.uri }) {
        touches += 1;
        watched.text = `touched ${touches} times`;
        world.touched(uri);
        return text('touched');
      },
    },
    change: {
      description: 'Says that a list changed.',
      inputSchema: {
        type: 'object',
        properties: { list: { type: 'string', enum: ['tools', 'prompts', 'resources'] } },
        required: ['list'],
      },
      call({ world }, { list }) {
        world.listChanged(list);
        return text(`${list} changed`);
      },
    },
    in_region: {
      description: 'Has an argument that a header repeats.',
      inputSchema: {
        type: 'object',
        properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } },
      },
      call: (_, { region }) => text(`region=${region ?? ''}`),
    },
    leave: {
      description: 'Closes its stream half way; the answer comes on the resumed one.',
      inputSchema: nothing,
      async call(context) {
        context.progress(1, 2, 'leaving');
        context.dropStream();
        await pause(100, context.signal);
        context.progress(2, 2, 'back');
        return text('came back');
      },
    },
    die: {
      description: 'Ends the whole server in the middle of a call.',
      inputSchema: nothing,
      async call(context) {
        context.progress(1, 2, 'dying');
        await pause(20);
        process.exit(1);
      },
    },
    'files.read/raw': {
      description: 'Has a name that not every client can write.',
      inputSchema: nothing,
      call: () => text('read'),
    },
  };

  const fixed = [
    {
      uri: 'test://static/text',
      name: 'text',
      title: 'A text',
      description: 'A text.',
      mimeType: 'text/plain',
      text: 'static text',
    },
    { uri: 'test://static/binary', name: 'binary', description: 'One red pixel.', mimeType: 'image/png', blob: PNG },
    watched,
  ];

  return {
    tools: new Map(Object.entries(tools)),
    resources: fixed,
    templates: [
      {
        uriTemplate: numbered,
        name: 'numbered',
        title: 'By number',
        description: 'One of many.',
        mimeType: 'application/json',
      },
    ],
    read(uri) {
      const found = fixed.find((one) => one.uri === uri);
      if (found) {
        const { mimeType, text: said, blob } = found;
        return [{ uri, mimeType, ...(said !== undefined ? { text: said } : { blob }) }];
      }
      const number = /^test:\/\/numbered\/(\d+)$/.exec(uri ?? '')?.[1];
      return number && [{ uri, mimeType: 'application/json', text: JSON.stringify({ number: Number(number) }) }];
    },
    prompts: new Map(
      Object.entries({
        plain: { description: 'A prompt as it is.', get: () => user('This is a prompt.') },
        greeting: {
          title: 'Greeting',
          description: 'Greets somebody.',
          arguments: [
            { name: 'name', description: 'Whom.', required: true },
            { name: 'tone', description: 'How.' },
          ],
          get: (_, { name: whom, tone = 'friendly' }) => user(`Greet ${whom} in a ${tone} tone.`),
        },
        pictured: { description: 'A prompt with a picture.', get: () => user(image, 'Say what you see.') },
        asked: {
          description: 'A prompt that asks the user first.',
          async get(context) {
            const { who } = await context.inputs({ who: form('Who is it for?', name) });
            return user(`For ${who.content?.name ?? 'nobody'}.`);
          },
        },
      }),
    ),
    complete(ref, { name: argument, value = '' }, { arguments: others = {} }) {
      const isTone = ref.type === 'ref/prompt' && ref.name === 'greeting' && argument === 'tone';
      const isNumber = ref.type === 'ref/resource' && ref.uri === numbered && argument === 'number';
      const tones = ['formal', 'friendly', 'frosty', ...(others.name === 'Ada' ? ['fond'] : [])];
      const known = isTone ? tones : isNumber ? ['1', '2', '12'] : [];
      const values = known.filter((one) => one.startsWith(value));
      return { values, total: values.length, hasMore: false };
    },
  };
}

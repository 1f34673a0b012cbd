// What the server scenarios of npm @modelcontextprotocol/conformance ask for, by the names and with the
// words that they look for. The tasks extension is not here. Every tool works in both eras: what one asks
// of the client is a request in the legacy era and `input_required` in the modern one.

import { PNG, audio, completion, form, image, nothing, roots, strings, text, user } from './media.mjs';
import { Refusal, pause } from './world.mjs';

const titled = (kind) =>
  ['First', 'Second', 'Third'].map((which, at) => ({ const: `value${at + 1}`, title: `${which} ${kind}` }));
const options = ['option1', 'option2', 'option3'];

const schema2020 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

const embedded = (uri, mimeType, said) => ({ type: 'resource', resource: { uri, mimeType, text: said } });

// Asks one form and tells what came back, in the words of the scenarios.
async function elicited(context, request, label = 'Elicitation completed: action=') {
  const { answer } = await context.inputs({ answer: request });
  return text(`${label}${answer.action}, content=${JSON.stringify(answer.content ?? {})}`);
}

const yourName = form('What is your name?', { name: { type: 'string' } });
const confirmation = { confirm: form('Please confirm', { ok: { type: 'boolean' } }) };
const sealed = { isSealed: true };

const tools = {
  test_simple_text: ['One text block.', nothing, () => text('This is a simple text response for testing.')],
  test_image_content: ['One image.', nothing, () => ({ content: [image] })],
  test_audio_content: ['One audio block.', nothing, () => ({ content: [audio] })],
  test_embedded_resource: [
    'One embedded resource.',
    nothing,
    () => ({ content: [embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')] }),
  ],
  test_multiple_content_types: [
    'Text, image and resource.',
    nothing,
    () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        image,
        embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
      ],
    }),
  ],
  test_tool_with_logging: [
    'Three log messages, 50 ms apart.',
    nothing,
    async (context) => {
      for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        context.log('info', said);
        await pause(50, context.signal);
      }
      return text('Tool with logging executed successfully');
    },
  ],
  test_tool_with_progress: [
    'Progress 0, 50 and 100 of 100.',
    nothing,
    async (context) => {
      for (const progress of [0, 50, 100]) {
        context.progress(progress, 100);
        await pause(50, context.signal);
      }
      return text('done');
    },
  ],
  test_error_handling: [
    'Always an error.',
    nothing,
    () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
  ],
  test_reconnection: [
    'Closes its stream and answers on the resumed one.',
    nothing,
    async (context) => {
      context.dropStream();
      await pause(100, context.signal);
      return text('Reconnection test completed successfully.');
    },
  ],
  test_sampling: [
    "Asks the client's model.",
    strings('prompt'),
    async (context, { prompt }) => {
      const { answer } = await context.inputs({ answer: completion(prompt) });
      return text(`LLM response: ${answer.content?.text ?? ''}`);
    },
  ],
  test_elicitation: [
    'Asks the user.',
    strings('message'),
    (context, { message }) =>
      elicited(
        context,
        form(message, {
          username: { type: 'string', description: "User's response" },
          email: { type: 'string', description: "User's email address" },
        }),
        'User response: action=',
      ),
  ],
  test_elicitation_sep1034_defaults: [
    'A form with defaults.',
    nothing,
    (context) =>
      elicited(
        context,
        form(
          'Please review',
          {
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true },
          },
          [],
        ),
      ),
  ],
  test_elicitation_sep1330_enums: [
    'A form with the five kinds of choice.',
    nothing,
    (context) =>
      elicited(
        context,
        form(
          'Please choose',
          {
            untitledSingle: { type: 'string', enum: options },
            titledSingle: { type: 'string', oneOf: titled('Option') },
            legacyEnum: {
              type: 'string',
              enum: ['opt1', 'opt2', 'opt3'],
              enumNames: ['Option One', 'Option Two', 'Option Three'],
            },
            untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
            titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
          },
          [],
        ),
      ),
  ],
  json_schema_2020_12_tool: [
    'Its schema must arrive as it is.',
    schema2020,
    (_, given) => text(JSON.stringify(given)),
  ],

  // Of scenarios that the modern era alone has.
  test_x_mcp_header: [
    'An argument that a header repeats.',
    {
      type: 'object',
      properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } },
    },
    (_, { region }) => text(`region=${region ?? ''}`),
  ],
  test_missing_capability: [
    'Needs a client with a model.',
    nothing,
    ({ modern, capabilities }) => {
      if (capabilities.sampling) return text('Success');
      if (!modern) throw new Error('client lacks sampling');
      const data = { requiredCapabilities: { sampling: {} } };
      throw new Refusal(-32021, 'sampling capability required', { data, status: 400 });
    },
  ],
  test_streaming_elicitation: [
    'Asks for a value.',
    nothing,
    async (context) => {
      await context.inputs({ value: form('A value, please', { value: { type: 'string' } }) });
      return text('thanks');
    },
  ],
  test_logging_tool: [
    'Logs one message.',
    nothing,
    (context) => {
      context.log('info', 'test_logging_tool ran');
      return text('Logging evaluated');
    },
  ],
  test_trigger_tool_change: [
    'Says that the tools changed.',
    nothing,
    ({ world }) => {
      world.listChanged('tools');
      return text('sent');
    },
  ],
  test_trigger_prompt_change: [
    'Says that the prompts changed.',
    nothing,
    ({ world }) => {
      world.listChanged('prompts');
      return text('sent');
    },
  ],
  test_input_required_result_elicitation: [
    'Asks for a name.',
    nothing,
    async (context) => {
      const { user_name: answer } = await context.inputs({ user_name: yourName });
      return text(`Hello, ${answer.content?.name}!`);
    },
  ],
  test_input_required_result_sampling: [
    "Asks the client's model for a capital.",
    nothing,
    async (context) => {
      const { capital_question: answer } = await context.inputs({
        capital_question: completion('What is the capital of France?'),
      });
      return text(answer.content?.text ?? '');
    },
  ],
  test_input_required_result_list_roots: [
    "Asks for the client's roots.",
    nothing,
    async (context) => {
      const { client_roots: answer } = await context.inputs({ client_roots: roots });
      return text(`roots: ${answer.roots.map(({ uri }) => uri).join(' ')}`);
    },
  ],
  test_input_required_result_request_state: [
    'Asks to confirm, with a state.',
    nothing,
    async (context) => {
      await context.inputs(confirmation, sealed);
      return text('state-ok');
    },
  ],
  test_input_required_result_multiple_inputs: [
    'Asks three things at once.',
    nothing,
    async (context) => {
      const three = { user_name: yourName, greeting: completion('Generate a greeting', 50), client_roots: roots };
      await context.inputs(three, sealed);
      return text('all three received');
    },
  ],
  test_input_required_result_multi_round: [
    'Asks twice, one after the other.',
    nothing,
    async (context) => {
      const { step1 } = await context.inputs(
        { step1: form('Step 1: What is your name?', { name: { type: 'string' } }) },
        sealed,
      );
      const { step2 } = await context.inputs({
        step2: form('Step 2: What is your favorite color?', { color: { type: 'string' } }),
      });
      return text(`${step1.content?.name} likes ${step2.content?.color}`);
    },
  ],
  test_input_required_result_tampered_state: [
    'Refuses a changed state.',
    nothing,
    async (context) => {
      await context.inputs(confirmation, sealed);
      return text('state verified');
    },
  ],
  test_input_required_result_capabilities: [
    'Asks only what the client can answer.',
    nothing,
    async (context) => {
      const { elicitation, sampling, roots: hasRoots } = context.capabilities;
      const possible = {
        ...(elicitation && { user_name: yourName }),
        ...(sampling && { greeting: completion('Greet', 50) }),
        ...(hasRoots && { client_roots: roots }),
      };
      if (!Object.keys(possible).length) return text('no capability declared');
      await context.inputs(possible);
      return text('received');
    },
  ],
};

const resources = [
  {
    uri: 'test://static-text',
    name: 'static-text',
    description: 'A text.',
    mimeType: 'text/plain',
    text: 'This is the content of the static text resource.',
  },
  { uri: 'test://static-binary', name: 'static-binary', description: 'A picture.', mimeType: 'image/png', blob: PNG },
  {
    uri: 'test://watched-resource',
    name: 'watched-resource',
    description: 'A text to subscribe to.',
    mimeType: 'text/plain',
    text: 'Watched resource content',
  },
];

const wanted = (...names) => names.map((name) => ({ name, description: name, required: true }));

const prompts = {
  test_simple_prompt: { description: 'A prompt.', get: () => user('This is a simple prompt for testing.') },
  test_prompt_with_arguments: {
    description: 'A prompt with arguments.',
    arguments: wanted('arg1', 'arg2'),
    get: (_, { arg1, arg2 }) => user(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
  },
  test_prompt_with_embedded_resource: {
    description: 'A prompt with a resource.',
    arguments: wanted('resourceUri'),
    get: (_, { resourceUri }) =>
      user(
        embedded(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
        'Please process the embedded resource above.',
      ),
  },
  test_prompt_with_image: {
    description: 'A prompt with a picture.',
    get: () => user(image, 'Please analyze the image above.'),
  },
  test_input_required_result_prompt: {
    description: 'A prompt that asks first.',
    get: async (context) => {
      const { user_context: answer } = await context.inputs({
        user_context: form('What context should the prompt use?', { context: { type: 'string' } }),
      });
      return user(`context: ${answer.content?.context}`);
    },
  },
};

const offered = ([description, inputSchema, call]) => ({ description, inputSchema, call });

export function conformanceOffers() {
  return {
    tools: new Map(Object.entries(tools).map(([name, tool]) => [name, offered(tool)])),
    resources,
    templates: [
      {
        uriTemplate: 'test://template/{id}/data',
        name: 'template',
        description: 'One of many.',
        mimeType: 'application/json',
      },
    ],
    read(uri) {
      const found = resources.find((one) => one.uri === uri);
      if (found) {
        const { mimeType, text: said, blob } = found;
        return [{ uri, mimeType, ...(said !== undefined ? { text: said } : { blob }) }];
      }
      const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri ?? '')?.[1];
      const data = { id, templateTest: true, data: `Data for ID: ${id}` };
      return id && [{ uri, mimeType: 'application/json', text: JSON.stringify(data) }];
    },
    prompts: new Map(Object.entries(prompts)),
    complete: () => ({ values: [], total: 0, hasMore: false }),
  };
}

// The same server directly and through the gateway, item by item: what differs is printed, in one JSON line.
//
// node gateway.mjs --config FILE --binary ORCHESTR8 --transport stdio|http|sse [--url URL] -- command of the server…
import process from 'node:process';
import { isDeepStrictEqual } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

const SERVER = 'everything';
/** Milliseconds to wait for a server to come up, or for news. */
const PATIENCE_MS = 60_000;
const PAUSE_MS = 50;

function parse() {
  const args = process.argv.slice(2);
  const end = args.indexOf('--');
  const value = (flag) => args[args.indexOf(flag) + 1];
  return {
    config: value('--config'),
    binary: value('--binary'),
    transport: value('--transport'),
    url: args.includes('--url') ? value('--url') : undefined,
    command: args.slice(end + 1),
  };
}

async function until(condition) {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    if (await condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return false;
}

/** A client that answers every question, and remembers what it hears. */
async function connect(transport) {
  const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
  const client = new Client({ name: 'gateway-test', version: '1' }, { capabilities });
  const heard = { logs: [], updated: [], progress: [] };
  client.setRequestHandler(CreateMessageRequestSchema, async (request) => ({
    model: 'none',
    role: 'assistant',
    content: { type: 'text', text: `answer to ${JSON.stringify(request.params.messages)}` },
  }));
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'decline' }));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: 'file:///srv/root', name: 'root' }] }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, (message) => void heard.logs.push(message.params));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, (message) => void heard.updated.push(message.params.uri));
  await client.connect(transport);
  return { client, heard };
}

/** What a client sees, under the names that the server itself uses. */
class Side {
  constructor({ client, heard }, isProxied) {
    Object.assign(this, { client, heard, isProxied });
  }
  tool(name) {
    return this.isProxied ? `${SERVER}.${name}` : name;
  }
  prompt(name) {
    return this.isProxied ? `${SERVER}.${name}` : name;
  }
  uri(uri) {
    return this.isProxied ? `mcp://${SERVER}/${uri}` : uri;
  }
  /** Without what only the gateway adds. */
  plain(value) {
    const text = JSON.stringify(value, (key, inner) => {
      // It is the default, and the gateway always says it.
      if (key === 'isError' && inner === false) return undefined;
      if (key !== '_meta' || inner === null || typeof inner !== 'object') return inner;
      const rest = Object.fromEntries(Object.entries(inner).filter(([name]) => !name.startsWith('orchestr8/')));
      return Object.keys(rest).length > 0 ? rest : undefined;
    });
    return JSON.parse(this.isProxied ? text.replaceAll(`mcp://${SERVER}/`, '') : text);
  }
  async all(method, member) {
    const items = [];
    let cursor;
    do {
      const page = await this.client[method](cursor === undefined ? {} : { cursor });
      items.push(...page[member]);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return items;
  }
  own(items, field) {
    const own = this.isProxied ? items.filter((item) => item._meta?.['orchestr8/server'] === SERVER) : items;
    const named = own.map((item) => {
      const plain = this.plain(item);
      if (this.isProxied && field === 'name') plain.name = plain.name.slice(SERVER.length + 1);
      return plain;
    });
    return named.sort((a, b) => (a[field] < b[field] ? -1 : 1));
  }
  async resources() {
    return this.own(await this.all('listResources', 'resources'), 'uri');
  }
  async templates() {
    return this.own(await this.all('listResourceTemplates', 'resourceTemplates'), 'uriTemplate');
  }
  async prompts() {
    return this.own(await this.all('listPrompts', 'prompts'), 'name');
  }
  async call(name, args) {
    return this.plain(await this.client.callTool({ name: this.tool(name), arguments: args }));
  }
  async get(name, args) {
    return this.plain(await this.client.getPrompt({ name: this.prompt(name), arguments: args }));
  }
  async read(uri) {
    return this.plain(await this.client.readResource({ uri: this.uri(uri) }));
  }
  async complete(ref, argument, context) {
    const about = ref.type === 'ref/prompt' ? { ...ref, name: this.prompt(ref.name) } : { ...ref, uri: this.uri(ref.uri) };
    return (await this.client.complete({ ref: about, argument, context })).completion;
  }
}

/** Texts that tell the time are never the same twice. */
function timeless(value) {
  return JSON.parse(JSON.stringify(value).replaceAll(/\d{1,2}:\d{2}:\d{2}( [AP]M)?/g, 'TIME'));
}

const CALLS = [
  ['echo', { message: 'hello' }],
  ['get-sum', { a: 1, b: 2 }],
  ['get-annotated-message', { messageType: 'error', includeImage: true }],
  ['get-tiny-image', {}],
  ['get-structured-content', { location: 'Chicago' }],
  ['get-resource-links', { count: 4 }],
  ['get-resource-reference', { resourceType: 'Text', resourceId: 2 }],
  ['trigger-sampling-request', { prompt: 'say', maxTokens: 10 }],
  ['trigger-elicitation-request', {}],
];

async function compare(direct, proxied) {
  const differences = [];
  let items = 0;
  const same = async (what, ask) => {
    items += 1;
    const told = await Promise.all([direct, proxied].map((side) => ask(side).catch((error) => ({ error: String(error.code) }))));
    const [one, two] = told.map(timeless);
    if (!isDeepStrictEqual(one, two)) differences.push({ what, direct: one, proxied: two });
    return told[0];
  };
  const resources = await same('resources/list', (side) => side.resources());
  const templates = await same('resources/templates/list', (side) => side.templates());
  const prompts = await same('prompts/list', (side) => side.prompts());
  for (const { uri } of resources) await same(`read ${uri}`, (side) => side.read(uri));
  for (const { uriTemplate } of templates) {
    const uri = uriTemplate.replaceAll(/\{[^}]+\}/g, '1');
    await same(`read ${uri}`, (side) => side.read(uri));
    const argument = { name: uriTemplate.match(/\{\+?([^}]+)\}/)[1], value: '1' };
    await same(`complete ${uriTemplate}`, (side) => side.complete({ type: 'ref/resource', uri: uriTemplate }, argument));
  }
  for (const prompt of prompts) {
    const args = Object.fromEntries((prompt.arguments ?? []).map(({ name }) => [name, name === 'resourceId' ? '1' : name === 'resourceType' ? 'Text' : 'Engineering']));
    await same(`prompt ${prompt.name}`, (side) => side.get(prompt.name, args));
    for (const { name } of prompt.arguments ?? []) {
      const ref = { type: 'ref/prompt', name: prompt.name };
      await same(`complete ${prompt.name}.${name}`, (side) => side.complete(ref, { name, value: '' }, { arguments: { department: 'Engineering' } }));
    }
  }
  for (const [name, args] of CALLS) await same(`call ${name}`, (side) => side.call(name, args));
  await same('links can be read', async (side) => {
    const { content } = await side.client.callTool({ name: side.tool('get-resource-links'), arguments: { count: 4 } });
    const links = content.filter((part) => part.type === 'resource_link');
    const read = await Promise.all(links.map(({ uri }) => side.client.readResource({ uri })));
    return read.map((each) => side.plain(each).contents.length);
  });
  await same('an unknown resource is an error', async (side) => {
    const error = await side.client.readResource({ uri: side.uri('demo://no/such') }).then(() => undefined, (failed) => failed);
    return { isError: error?.code === -32002 || error?.code === -32602 };
  });
  await same('progress', async (side) => {
    const progress = [];
    const params = { name: side.tool('trigger-long-running-operation'), arguments: { duration: 1, steps: 4 } };
    await side.client.callTool(params, undefined, { onprogress: (news) => progress.push([news.progress, news.total]) });
    // The client stops listening with the answer, which may be before the last of them.
    return progress.slice(0, 3);
  });
  await same('updates of a resource', async (side) => {
    const { uri } = resources[0];
    await side.client.subscribeResource({ uri: side.uri(uri) });
    await side.client.callTool({ name: side.tool('toggle-subscriber-updates'), arguments: {} });
    const came = await until(() => side.heard.updated.includes(side.uri(uri)));
    await side.client.callTool({ name: side.tool('toggle-subscriber-updates'), arguments: {} });
    await side.client.unsubscribeResource({ uri: side.uri(uri) });
    return came;
  });
  await same('log messages', async (side) => {
    await side.client.setLoggingLevel('debug');
    await side.client.callTool({ name: side.tool('toggle-simulated-logging'), arguments: {} });
    const came = await until(() => side.heard.logs.length > 0);
    await side.client.callTool({ name: side.tool('toggle-simulated-logging'), arguments: {} });
    return came;
  });
  return { items, resources: resources.length, templates: templates.length, prompts: prompts.length, differences };
}

const { config, binary, transport, url, command } = parse();
const environment = { ...process.env, GZIP_ALLOWED_DOMAINS: '' };

function directly() {
  if (transport === 'http') return new StreamableHTTPClientTransport(new URL(url));
  if (transport === 'sse') return new SSEClientTransport(new URL(url));
  return new StdioClientTransport({ command: command[0], args: command.slice(1), env: environment, stderr: 'ignore' });
}

const direct = new Side(await connect(directly()), false);
const gateway = new StdioClientTransport({
  command: binary,
  args: ['--config', config, 'mcp', '--ephemeral'],
  env: environment,
  stderr: process.env.GATEWAY_LOG ? 'inherit' : 'ignore',
});
const proxied = new Side(await connect(gateway), true);
const up = await until(async () => (await proxied.prompts()).length > 0 && (await proxied.resources()).length > 0);
const seen = up ? await compare(direct, proxied) : { differences: ['the server did not come up behind the gateway'] };
await Promise.all([direct.client.close(), proxied.client.close()]);
console.log(JSON.stringify(seen));

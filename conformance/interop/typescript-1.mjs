// The official TypeScript client, 1.x: the handshake generation only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { exercise, parseArguments } from './session.mjs';

const { slots, url, transport: kind, command } = parseArguments();

function connect() {
  if (url === undefined) return new StdioClientTransport({ command: command[0], args: command.slice(1) });
  // Of revision 2024-11-05, at the address beside the other one.
  if (kind === 'sse') return new SSEClientTransport(new URL('/sse', url));
  return new StreamableHTTPClientTransport(new URL(url));
}

const transport = connect();

// The client tells its transport which revision was agreed on, and has no other way to say it.
let revision;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  revision = version;
  tell?.(version);
};

const client = new Client({ name: 'interop-typescript-1', version: '1.0.0' }, { capabilities: {} });
await client.connect(transport);
const call = (params, signal) => client.callTool(params, undefined, { signal });
const close = async () => {
  await transport.terminateSession?.();
  await client.close();
};
await exercise({ client, revision, call, close }, slots);

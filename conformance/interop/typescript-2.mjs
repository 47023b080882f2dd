// The official TypeScript client, 2.x: both generations, and its own way of finding out which one to use.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { exercise, parseArguments } from './session.mjs';

const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' }, auto: 'auto' };

const { era, slots, url, command } = parseArguments();
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command: command[0], args: command.slice(1) });
const client = new Client(
  { name: 'interop-typescript-2', version: '1.0.0' },
  { capabilities: {}, versionNegotiation: { mode: MODES[era] } }
);
await client.connect(transport);
const revision = client.getNegotiatedProtocolVersion();
const call = (params, signal) => client.callTool(params, { signal });
const close = async () => {
  await transport.terminateSession?.();
  await client.close();
};
await exercise({ client, revision, call, close }, slots);

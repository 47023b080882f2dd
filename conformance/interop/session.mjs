// What every client program does once it is connected, and the one line it prints at the end.
import process from 'node:process';

/** Milliseconds to wait for the server to be full, or free again. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 20;

/** `--era legacy|modern|auto`, `--slots N`, and either `--url URL` or `-- command…`. */
export function parseArguments() {
  const args = process.argv.slice(2);
  const end = args.indexOf('--');
  const options = end < 0 ? args : args.slice(0, end);
  const value = (flag) => {
    const at = options.indexOf(flag);
    return at < 0 ? undefined : options[at + 1];
  };
  const command = end < 0 ? [] : args.slice(end + 1);
  const slots = Number(value('--slots') ?? 10);
  return { era: value('--era') ?? 'legacy', slots, url: value('--url'), transport: value('--transport'), command };
}

/** Calls the echo tool; undefined when the server says that it has no room. */
async function echo(client, message) {
  const result = await client.callTool({ name: 'echo', arguments: { message } });
  return result.isError ? undefined : result.content.map((part) => part.text ?? '').join('');
}

async function until(condition) {
  const deadline = Date.now() + PATIENCE_MS;
  while (Date.now() < deadline) {
    if (await condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return false;
}

async function listTools(client) {
  const names = [];
  let cursor;
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor });
    names.push(...page.tools.map((tool) => tool.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names;
}

/**
 * Holds a slot with a slow call until it is cancelled. An echo that overtakes the call on another connection may have
 * the last slot for a moment; the call is then refused and sent again.
 */
async function holdSlot(connection, signal) {
  try {
    for (;;) {
      const result = await connection.call({ name: 'test_sleep', arguments: { ms: 60_000 } }, signal);
      if (!result.isError) return 'answered';
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  } catch {
    return 'cancelled';
  }
}

/**
 * Lists, calls, fills every slot of the server with slow calls, cancels them, closes, and prints what it saw.
 * Only a cancellation that reached the server frees its slots, so `freed` is evidence, not courtesy.
 *
 * `connection` holds the connected `client`, the `revision` both sides agreed on, `call(params, signal)` for a
 * call that can be cancelled, and `close()`.
 */
export async function exercise(connection, slots) {
  const { client, revision } = connection;
  const seen = { revision, server: client.getServerVersion()?.name };
  seen.tools = await listTools(client);
  seen.echo = await echo(client, 'hello');
  const stop = new AbortController();
  const slow = Array.from({ length: slots }, () => holdSlot(connection, stop.signal));
  seen.full = await until(async () => (await echo(client, 'room?')) === undefined);
  stop.abort('no longer needed');
  const ends = await Promise.all(slow);
  seen.cancelled = ends.filter((end) => end === 'cancelled').length;
  seen.freed = await until(async () => (await echo(client, 'room?')) !== undefined);
  await connection.close();
  seen.closed = true;
  console.log(JSON.stringify(seen));
}

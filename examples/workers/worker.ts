// A worker: takes tasks of one queue from orchestr8, does them, and says how they went.
//
//     node worker.ts shout http://127.0.0.1:8088
//
// A step of a workflow with the agent `@worker/shout` becomes a task of the queue `shout`.
// Needs Node 22.18 or later, which runs TypeScript as it is, and no packages. To make it yours, change `work`.
//
// What to know about tasks:
// * A task is yours for `leaseMs`. Heartbeats renew that; without them it goes to another worker.
// * After a crash, of yours or of the server, a task may come again: `idempotencyKey` is the same then.
// * 404 on an answer means that the task is no longer yours. Drop it; nothing was changed.

interface Task {
  taskId: string;
  leaseToken: string;
  leaseMs: number;
  deadline: string;
  executionId: string;
  stepId: string;
  attempt: number;
  idempotencyKey: string;
  input: any;
  config: any;
}

interface Failure {
  message: string;
  code?: string;
  retryable?: boolean;
}

/** Thrown by `work` when another try may help: a network that was down, a service that was busy. */
class TryAgain extends Error {}

/** Does one task: gets its input, returns its output. `cancelled` fires when nobody wants the result any more. */
async function work(task: Task, cancelled: AbortSignal): Promise<unknown> {
  cancelled.throwIfAborted();
  const text = task.input?.text;
  if (typeof text !== "string") throw new TypeError("text must be a text");
  return { text: text.toUpperCase() + "!" };
}

const queue = process.argv[2] ?? "shout";
const server = (process.argv[3] ?? process.env.ORCHESTR8_SERVER ?? "http://127.0.0.1:8088").replace(/\/$/, "");
const workerId = `node-${process.pid}`;
const token = process.env.ORCHESTR8_TOKEN;
const POLL_WAIT_MS = 30_000;
const RETRY_AFTER_MS = 2_000;

class Refused extends Error {
  status: number;
  constructor(status: number, text: string) {
    super(`${status} ${text}`);
    this.status = status;
  }
}

async function post(path: string, body: object, timeoutMs: number = 10_000): Promise<any> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const signal = AbortSignal.timeout(timeoutMs);
  const response = await fetch(server + path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!response.ok) throw new Refused(response.status, await response.text());
  return response.json();
}

function answer(task: Task, what: "complete" | "fail" | "heartbeat", body: object = {}): Promise<any> {
  return post(`/v1/tasks/${task.taskId}/${what}`, { leaseToken: task.leaseToken, ...body });
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Does the work while heartbeats keep the lease, then says how it went. */
async function perform(task: Task): Promise<void> {
  const cancelled = new AbortController();
  const beating = setInterval(async () => {
    try {
      if ((await answer(task, "heartbeat")).cancelled) cancelled.abort();
    } catch (error) {
      if (error instanceof Refused && error.status === 404) cancelled.abort();
    }
  }, task.leaseMs / 3);
  let what: "complete" | "fail" = "complete";
  let body: { output?: unknown; error?: Failure };
  try {
    body = { output: await work(task, cancelled.signal) };
  } catch (error) {
    const { message, name } = error as Error;
    what = "fail";
    body = { error: { message, code: name, retryable: error instanceof TryAgain } };
  } finally {
    clearInterval(beating);
  }
  if (cancelled.signal.aborted) return console.log(`dropped    ${task.stepId} of ${task.executionId}: nobody waits for it`);
  await tell(task, what, body);
}

/** Says how it went, again and again while the server is away and the lease holds. */
async function tell(task: Task, what: "complete" | "fail", body: object): Promise<void> {
  const until = Date.now() + task.leaseMs;
  while (true) {
    try {
      await answer(task, what, body);
      return console.log(`${what.padEnd(10)} ${task.stepId} of ${task.executionId}`);
    } catch (error) {
      if (error instanceof Refused || Date.now() > until) return console.log(`refused    ${task.stepId}: ${error}`);
      await pause(RETRY_AFTER_MS);
    }
  }
}

async function main(): Promise<void> {
  let stopping = false;
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (stopping) process.exit(0);
      stopping = true;
    });
  }
  console.log(`waiting for tasks of ${queue} at ${server}`);
  while (!stopping) {
    try {
      const body = { workerId, waitMs: POLL_WAIT_MS, limit: 1 };
      const polled = await post(`/v1/workers/${queue}/poll`, body, POLL_WAIT_MS + 10_000);
      for (const task of polled.tasks as Task[]) await perform(task);
    } catch (error) {
      console.log(`the server cannot be reached: ${error}`);
      await pause(RETRY_AFTER_MS);
    }
  }
}

main();

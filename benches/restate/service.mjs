// Three steps that do nothing, each durable, on Restate's TypeScript SDK; registers itself with the server.
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";

const [port, admin] = process.argv.slice(2).map(Number);
const nothing = () => ({});

// A service, not a keyed workflow: it costs Restate less, and we want its best.
const bench = restate.service({
  name: "Bench",
  handlers: {
    run: async (ctx) => {
      const a = await ctx.run("a", nothing);
      const b = await ctx.run("b", nothing);
      const c = await ctx.run("c", nothing);
      return { status: "completed", outputs: { a, b, c } };
    },
  },
});

http2.createServer(restate.createEndpointHandler({ services: [bench] })).listen(port, "127.0.0.1");

// The server may still be starting; whoever started both gives up after a while.
for (;;) {
  try {
    const answer = await fetch(`http://127.0.0.1:${admin}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://127.0.0.1:${port}` }),
    });
    if (answer.ok) break;
    console.error(answer.status, await answer.text());
  } catch (error) {
    console.error(String(error.cause ?? error));
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
}

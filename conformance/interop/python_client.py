"""The official Python client: both generations, and its own way of finding out which one to use."""

import argparse
import json
import sys
import time

import anyio
from mcp import Client, StdioServerParameters
from mcp.types import DiscoverResult

MODES = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}
PATIENCE_S = 10
PAUSE_S = 0.02


async def echo(client, message):
    """Calls the echo tool; None when the server says that it has no room."""
    result = await client.call_tool("echo", {"message": message})
    if result.is_error:
        return None
    return "".join(getattr(part, "text", "") for part in result.content)


async def until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if await condition():
            return True
        await anyio.sleep(PAUSE_S)
    return False


async def list_tools(client):
    names, cursor = [], None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


async def fill_and_cancel(client, slots, seen):
    """Only a cancellation that reached the server frees its slots, so `freed` is evidence, not courtesy."""
    ends = []

    async def slow():
        try:
            # An echo that overtakes the call on another connection may have the last slot for a moment.
            while (await client.call_tool("test_sleep", {"ms": 60_000})).is_error:
                await anyio.sleep(PAUSE_S)
            ends.append("answered")
        except anyio.get_cancelled_exc_class():
            ends.append("cancelled")
            raise

    async def refused():
        return await echo(client, "room?") is None

    async def accepted():
        return await echo(client, "room?") is not None

    async with anyio.create_task_group() as group:
        for _ in range(slots):
            group.start_soon(slow)
        seen["full"] = await until(refused)
        group.cancel_scope.cancel()
    seen["cancelled"] = ends.count("cancelled")
    seen["freed"] = await until(accepted)


async def main(options):
    if options.url:
        server = options.url
    else:
        server = StdioServerParameters(command=options.command[0], args=options.command[1:])
    seen = {}
    async with Client(server, mode=MODES[options.era]) as client:
        if options.era == "modern":
            # Told which revision to speak, this client asks nothing first; we want to see the question answered.
            answer = await client.session.send_discover(MODES["modern"])
            client.session.adopt(DiscoverResult.model_validate(answer))
        seen["revision"] = client.protocol_version
        seen["tools"] = await list_tools(client)
        seen["server"] = client.server_info.name if client.server_info else None
        seen["echo"] = await echo(client, "hello")
        await fill_and_cancel(client, options.slots, seen)
    seen["closed"] = True
    print(json.dumps(seen))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--era", choices=MODES, default="legacy")
    parser.add_argument("--slots", type=int, default=10)
    parser.add_argument("--url")
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:end])
    options.command = words[end + 1 :]
    return options


anyio.run(main, parse_arguments())

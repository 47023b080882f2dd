#!/usr/bin/env python3
"""A worker: takes tasks of one queue from orchestr8, does them, and says how they went.

    python3 worker.py --queue shout --url http://127.0.0.1:8088

A step of a workflow with the agent `@worker/shout` becomes a task of the queue `shout`.
Only the standard library is needed. To make it yours, change `work`.

What to know about tasks:
* A task is yours for `leaseMs`. Heartbeats renew that; without them it goes to another worker.
* After a crash, of yours or of the server, a task may come again: `idempotencyKey` is the same then.
* 404 on an answer means that the task is no longer yours. Drop it; nothing was changed.
"""

import argparse
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

POLL_WAIT_MS = 30_000
RETRY_AFTER_S = 2


class TryAgain(Exception):
    """Raised by `work` when another try may help: a network that was down, a service that was busy."""


def work(task, cancelled):
    """Does one task: gets its input, returns its output. Long work looks at `cancelled.is_set()` now and then."""
    text = task["input"]["text"]
    if not isinstance(text, str):
        raise ValueError("text must be a text")
    return {"text": text.upper() + "!"}


class Server:
    def __init__(self, url, token=None):
        self.url = url.rstrip("/")
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def post(self, path, body, timeout_s=10):
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self.headers, method="POST")
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return json.load(response)

    def poll(self, queue, worker):
        body = {"workerId": worker, "waitMs": POLL_WAIT_MS, "limit": 1}
        return self.post(f"/v1/workers/{queue}/poll", body, POLL_WAIT_MS / 1000 + 10)["tasks"]

    def answer(self, task, what, **body):
        return self.post(f"/v1/tasks/{task['taskId']}/{what}", {"leaseToken": task["leaseToken"], **body})


def keep_alive(server, task, done, cancelled):
    """Renews the lease until the work is done; learns whether anybody still wants the result."""
    while not done.wait(task["leaseMs"] / 3000):
        try:
            if server.answer(task, "heartbeat")["cancelled"]:
                cancelled.set()
                return
        except urllib.error.HTTPError as error:
            if error.code == 404:
                cancelled.set()
                return
        except OSError:
            pass  # The next heartbeat may get through.


def do(server, task):
    done, cancelled = threading.Event(), threading.Event()
    beating = threading.Thread(target=keep_alive, args=(server, task, done, cancelled), daemon=True)
    beating.start()
    try:
        what, body = "complete", {"output": work(task, cancelled)}
    except Exception as error:  # Whatever goes wrong in the work is told, and the worker goes on.
        retryable = isinstance(error, TryAgain)
        what, body = "fail", {"error": {"message": str(error), "code": type(error).__name__, "retryable": retryable}}
    finally:
        done.set()
        beating.join()
    if cancelled.is_set():
        print(f"dropped    {task['stepId']} of {task['executionId']}: nobody waits for it", flush=True)
        return
    tell(server, task, what, body)


def tell(server, task, what, body):
    """Says how it went, again and again while the server is away and the lease holds."""
    until = time.monotonic() + task["leaseMs"] / 1000
    while True:
        try:
            server.answer(task, what, **body)
            print(f"{what:10} {task['stepId']} of {task['executionId']}", flush=True)
            return
        except urllib.error.HTTPError as error:
            print(f"refused    {task['stepId']}: {error.code} {error.read().decode(errors='replace')}", flush=True)
            return
        except OSError as error:
            if time.monotonic() > until:
                print(f"lost       {task['stepId']}: {error}", flush=True)
                return
            time.sleep(RETRY_AFTER_S)


def main():
    parser = argparse.ArgumentParser(description="An example worker: gives texts back in capitals.")
    parser.add_argument("--url", default=os.environ.get("ORCHESTR8_SERVER", "http://127.0.0.1:8088"))
    parser.add_argument("--queue", default="shout")
    parser.add_argument("--id", default=f"{socket.gethostname()}-{os.getpid()}")
    options = parser.parse_args()
    server = Server(options.url, os.environ.get("ORCHESTR8_TOKEN"))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0) if stop.is_set() else stop.set())
    print(f"waiting for tasks of {options.queue} at {options.url}", flush=True)
    while not stop.is_set():
        try:
            for task in server.poll(options.queue, options.id):
                do(server, task)
        except OSError as error:
            print(f"the server cannot be reached: {error}", flush=True)
            stop.wait(RETRY_AFTER_S)


if __name__ == "__main__":
    main()

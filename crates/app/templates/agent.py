"""The agent {{name}}: POST /process does the work, GET /health says that it lives. Needs nothing but Python 3.9.

Start it:    python3 agent.py
Try it:      curl -s localhost:{{port}}/process -d '{"text": "hello"}'
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "{{port}}"))
LARGEST_BODY = 1024 * 1024


def process(data, context):
    """Your work goes here. `data` is the input of the step; what you return becomes its output.

    context["key"] is the same for every attempt of one step: if you charge a card or send a mail, remember the key,
    and do nothing the second time. Raise ValueError for an input that will never do; anything else is tried again.
    """
    if not isinstance(data.get("text"), str):
        raise ValueError("text is missing")
    return {"text": data["text"].upper()}


class Agent(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health":
            self.answer(200, {"status": "ok"})
        else:
            self.answer(404, {"success": False, "error": "there is only POST /process and GET /health"})

    def do_POST(self):
        if self.path != "/process":
            return self.answer(404, {"success": False, "error": "there is only POST /process and GET /health"})
        length = int(self.headers.get("content-length") or 0)
        if length > LARGEST_BODY:
            return self.answer(413, {"success": False, "error": "the input is too large"})
        context = {
            "execution": self.headers.get("x-execution-id"),
            "correlation": self.headers.get("x-correlation-id"),
            "key": self.headers.get("idempotency-key"),
        }
        try:
            data = json.loads(self.rfile.read(length) or b"{}")
            result = process(data, context)
        except ValueError as wrong:
            return self.answer(400, {"success": False, "error": str(wrong)})
        except Exception as failure:
            return self.answer(500, {"success": False, "error": str(failure)})
        self.answer(200, {"success": True, "data": {"result": result}})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Quiet: the journal of the execution has what matters."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", PORT), Agent)
    print(f"{{name}} listens on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

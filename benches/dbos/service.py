"""Three steps that do nothing, each durable, on DBOS with SQLite, behind the smallest HTTP server that does."""

import json
import os
import socketserver
import sqlite3
import sys

from dbos import DBOS

port, folder = int(sys.argv[1]), sys.argv[2]
path = os.path.join(folder, "dbos.sqlite")
# DBOS leaves SQLite's rollback journal as it is. The write-ahead log is faster and, with SQLite's default
# synchronous=FULL, as durable: a comparison against a slow set-up would say nothing.
sqlite3.connect(path).execute("PRAGMA journal_mode=WAL")
DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{path}",
        "run_admin_server": False,
        "log_level": "WARNING",
    }
)


@DBOS.step()
def nothing():
    return {}


@DBOS.workflow()
def three_steps():
    return {"a": nothing(), "b": nothing(), "c": nothing()}


class Connection(socketserver.StreamRequestHandler):
    """One keep-alive connection, one thread."""

    disable_nagle_algorithm = True

    def handle(self):
        while first := self.rfile.readline():
            length = 0
            while (line := self.rfile.readline()).strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            self.rfile.read(length)
            outputs = three_steps() if first.startswith(b"POST ") else {}
            body = json.dumps({"status": "completed", "outputs": outputs}, separators=(",", ":")).encode()
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 128


DBOS.launch()
Server(("127.0.0.1", port), Connection).serve_forever()

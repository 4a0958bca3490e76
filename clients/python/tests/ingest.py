"""An ingest that a test controls: it answers as told, and keeps what it accepts."""
import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Ingest:
    """answer(path, lines) may return (code, headers, body) instead of accepting. A connection has most_requests."""

    def __init__(self, answer=None, most_requests=1000):
        self.lines, self.ends, self.requests = [], [], 0
        self.changed = threading.Condition()
        ingest = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.served = getattr(self, "served", 0) + 1
                if self.served > most_requests:  # as if the connection was closed just before
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers["Content-Length"]))
                code, headers, text = ingest.handle(self.path, body, answer)
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def handle(self, path, body, answer):
        lines = body.splitlines()
        with self.changed:
            self.requests += 1
            other = answer and answer(path, lines)
            if other:
                return other
            if path == "/v1/sessions/end":
                self.ends.append((json.loads(body)["session_id"], len(self.lines)))
                self.changed.notify_all()
                return 202, {}, b"{}"
            self.lines += lines
            self.changed.notify_all()
        return 200, {}, outcomes(lines, "accepted")

    def traces(self):
        with self.changed:
            return [json.loads(line) for line in self.lines]

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def outcomes(lines, status, faults=(), warnings=()):
    return b"".join(json.dumps({
        "line": i, "trace_id": json.loads(line).get("trace_id"), "status": status, "faults": list(faults), "warnings": list(warnings),
    }).encode() + b"\n" for i, line in enumerate(lines, 1))


class Silent:
    """Accepts connections and says nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                self.connections.append(self.listener.accept()[0])
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for connection in self.connections:
            connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def nowhere():
    """Returns an address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

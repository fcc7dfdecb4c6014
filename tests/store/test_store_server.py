# SPDX-License-Identifier: MIT
"""`cairn store` with servers that are no ClickHouse, and with places that are no stores."""
import http.server
import threading

import pytest

from fleet import Store


class Garbage(http.server.BaseHTTPRequestHandler):
    """Answers every request with the server's `reply`: status, headers and body."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status, headers, body = self.server.reply
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("reply", [
    (200, {}, b""), (200, {}, b"a\tb\n"), (200, {}, b"a\nInt64\nx\n"), (200, {}, b"a\tb\nInt64\n1\t2\n"),
    (200, {}, b"a\nInt64\n1\t2\n"), (500, {}, b"Code: 1 \x1b[31m" + b"x" * 10000), (401, {}, b""),
    (302, {"Location": "http://127.0.0.1:1/"}, b""), (200, {"Content-Length": "100"}, b"a\n"),
    (200, {}, b"\t" * 1000 + b"\n"), (200, {}, b"count()\nInt64\n" + b"9" * 50 + b"\n")])
def test_a_server_that_answers_garbage_gets_a_sentence(reply, tmp_path, draw):
    path = draw("main;f 1 8 0 0 0 0 1 8 8\n", "a.cairn")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Garbage) as server:
        server.reply = reply
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        store = Store(f"http://127.0.0.1:{server.server_port}/x")
        for words in (("list",), ("add", path)):
            message = store.run(*words, status=2)
            assert message.count("\n") == 1 and "secret" not in message and "\x1b" not in message
        server.shutdown()
        thread.join()


def test_wrong_places(tmp_path):
    # Nothing listens at port 1.
    for place in ("http://127.0.0.1:1/x", "http://me:secret@127.0.0.1/x", "http://example.com/x", "http://127.0.0.1/a-b", "http://127.0.0.1/x?y=z",
                  "http:///x", "https://:0"):
        message = Store(place).run("list", status=2)
        assert message.count("\n") == 1 and "secret" not in message
    assert not list(tmp_path.iterdir())

# SPDX-License-Identifier: MIT
"""serving: `cairn analyze` as a test sees it: a process, its address, and raw HTTP.

CAIRN_BUILD names the build directory; CAIRN_BIN another executable than the one in it.
"""
import contextlib
import gzip
import http.client
import json
import os
import pathlib
import re
import select
import signal
import socket
import subprocess
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", ROOT / "build")).resolve()
CAIRN = pathlib.Path(os.environ.get("CAIRN_BIN", BUILD / "bin" / "cairn")).resolve()
DRAW = BUILD / "tests" / "cli" / "draw_recording"
DEADLINE_SECONDS = 60
SANITIZED = b"__asan_report_load" in CAIRN.read_bytes()  # several times as slow


def draw(path, drawing):
    """Writes the drawn recording to `path` in one step, as the recorder does."""
    beside = path.with_name(path.name + ".new")
    subprocess.run([DRAW, beside], input=drawing.encode(), check=True, timeout=DEADLINE_SECONDS)
    beside.rename(path)
    return path


def report(*arguments):
    run = subprocess.run([CAIRN, "report", "--json", *map(str, arguments)], capture_output=True,
                         check=False, timeout=DEADLINE_SECONDS)
    assert run.returncode in (0, 1), run.stderr  # 1: nothing matches the filter
    return json.loads(run.stdout)


def read_line(stream):
    """The first line of a pipe or fifo, by the deadline."""
    ready, _, _ = select.select([stream], [], [], DEADLINE_SECONDS)
    assert ready, "nothing was said"
    return stream.readline().decode().strip()


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.raw = body
        is_gzip = self.headers.get("content-encoding") == "gzip" and body
        self.body = gzip.decompress(body) if is_gzip else body

    @property
    def json(self):
        return json.loads(self.body)


class Server:
    """A running `cairn analyze`."""

    def __init__(self, path, *options, env=None):
        self.process = subprocess.Popen(
            [CAIRN, "analyze", path, "--no-browser", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "MALLOC_PERTURB_": "165", "DISPLAY": "", "WAYLAND_DISPLAY": "", **(env or {})})
        self.url = read_line(self.process.stdout)
        fragment = "#/summary?diff=1" if "--diff" in options else ""
        fragment = "#/store" if str(path).startswith("--store") else fragment
        match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})(.*)", self.url)
        if not match or match[3] != fragment:
            self.process.kill()
            raise AssertionError((self.url, self.process.stderr.read()))
        self.port = int(match[1])
        self.token = match[2]

    def ask(self, target, method="GET", headers=None, body=None, host=None, with_token=True):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
            if with_token:
                connection.putheader("Authorization", f"Bearer {self.token}")
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response, response.read())
        finally:
            connection.close()

    def get(self, route, **params):
        """The answer of an API route, which must succeed."""
        answer = self.try_get(route, **params)
        assert answer.status == 200, (route, params, answer.body)
        return answer.json

    def try_get(self, route, **params):
        query = urllib.parse.urlencode(params)
        return self.ask(f"/api/v1/{route}" + (f"?{query}" if query else ""))

    def raw(self, data, is_closed=False):
        """Sends bytes as they are; returns all that comes back. The server may hang up at any byte of it."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_SECONDS) as line:
            with contextlib.suppress(ConnectionError, OSError):
                line.sendall(data)
                if is_closed:
                    line.shutdown(socket.SHUT_WR)
            seen = b""
            while True:
                try:
                    part = line.recv(65536)
                except ConnectionResetError:
                    return seen
                if not part:
                    return seen
                seen += part

    def stop(self, number=signal.SIGINT):
        """Ends it as Ctrl-C does; it must end well and say nothing bad."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=DEADLINE_SECONDS)
        said = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, said


class Events:
    """Server-sent events, one after the other."""

    def __init__(self, server):
        self.line = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_SECONDS)
        self.line.sendall(f"GET /api/v1/events?token={server.token} HTTP/1.1\r\n"
                          f"Host: localhost:{server.port}\r\n\r\n".encode())
        self.response = http.client.HTTPResponse(self.line)
        self.response.begin()
        if self.response.status != 200:
            self.close()
            raise AssertionError(self.response.status)
        assert self.response.getheader("Content-Type") == "text/event-stream"

    def next(self, wanted):
        """The data of the next event, which must be `wanted`. Comments are passed over."""
        end = time.monotonic() + DEADLINE_SECONDS
        fields = {}
        while time.monotonic() < end:
            line = self.response.readline().decode().rstrip("\n")
            if line and not line.startswith(":"):
                name, value = line.split(": ", 1)
                fields[name] = value
            elif fields:
                assert fields["event"] == wanted, fields
                data = json.loads(fields["data"])
                assert data.get("generation", int(fields["id"])) == int(fields["id"])
                return data
        raise AssertionError(f"no event {wanted}")

    def at_end(self):
        """Whether the stream ends by the deadline."""
        while True:
            ready, _, _ = select.select([self.line], [], [], DEADLINE_SECONDS)
            if not ready:
                return False
            if not self.response.readline():
                return True

    def close(self):
        self.response.close()
        self.line.close()

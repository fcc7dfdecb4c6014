# SPDX-License-Identifier: MIT
"""collector: a server for Pyroscope's ingest API that takes profiles, or misbehaves as told."""
import contextlib
import email
import gzip
import pathlib
import socket
import ssl
import subprocess
import threading
import urllib.parse

import re

from waiting import DEADLINE_SECONDS

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def answer(status, *headers):
    return "\r\n".join([f"HTTP/1.1 {status} x", *headers, "Content-Length: 0", "Connection: close", "", ""]).encode()


def endless(part, start=b""):
    """Send for as long as the other side reads."""
    def send(line, _):
        line.sendall(start)
        while True:
            line.sendall(part)
    return send


def stall(line, collector):
    """Say nothing until the other side gives up or the collector ends."""
    line.settimeout(None)
    line.recv(1)


class Request:
    """A request: its path, query, headers and the parts of its form. As in Pyroscope, a format in the query
    says what the body is, and only without one a form is taken apart."""

    def __init__(self, head, body):
        first, *lines = head.decode().split("\r\n")
        self.method, target, _ = first.split(" ")
        self.path, _, query = target.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query, strict_parsing=True))
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines if line)}
        if "format" in self.query:
            self.form = {"profile": body}
            return
        mail = b"Content-Type: " + self.headers["content-type"].encode() + b"\r\n\r\n" + body
        form = email.message_from_bytes(mail)
        self.form = {part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
                     for part in form.get_payload()}

    @property
    def labels(self):
        name, _, rest = self.query["name"].partition("{")
        return name, dict(word.split("=") for word in rest.rstrip("}").split(",") if word)

    @property
    def label_names(self):
        return re.findall(r"[{,]([^=]*)=", self.query["name"])

    def sums(self, folder):
        """The sums of the sample types, as `go tool pprof` reads them."""
        path = folder / "pushed.pb.gz"
        path.write_bytes(self.form["profile"])
        gzip.decompress(self.form["profile"])
        home = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PPROF_TMPDIR": str(folder), "GO111MODULE": "off",
                "GOCACHE": str(folder / "go")}
        text = subprocess.run(["/usr/bin/go", "tool", "pprof", "-symbolize=none", "-raw", path], env=home, check=True,
                              capture_output=True, timeout=DEADLINE_SECONDS).stdout.decode()
        types, *lines = text.split("Samples:\n")[1].split("Locations\n")[0].splitlines()
        rows = [[int(number) for number in match[1].split()]
                for match in (re.match(r" *((?:\d+ +)*\d+): ", line) for line in lines) if match]
        names = [word.split("/")[0] for word in types.split()]
        return dict(zip(names, [sum(column) for column in zip(*rows)] or [0] * len(names)))


class Limits:
    """What a server takes. The defaults are those of Pyroscope (pkg/validation/limits.go: MaxProfileSizeBytes,
    MaxProfileStacktraceSamples, MaxProfileStacktraceDepth, MaxLabelNamesPerSeries, MaxLabelValueLength), which its
    distributor answers with 400; as its parser of labels does for a name of the service with other characters. Of the
    labels six are its own."""

    def __init__(self, unpacked=4 << 20, samples=16000, depth=1000, labels=30, value=2048):
        self.unpacked, self.samples, self.depth, self.labels, self.value = unpacked, samples, depth, labels, value

    def allow(self, request):
        profile = gzip.decompress(request.form["profile"])
        samples = [content for field, content in fields(profile) if field == 2]
        depths = [sum(byte < 0x80 for byte in content) for sample in samples
                  for field, content in fields(sample) if field == 1]
        name, labels = request.labels
        names = request.label_names
        if not re.fullmatch(r"[\w./-]+", name, re.A) or len(set(names)) != len(names) or "__name__" in names:
            return False
        return (len(profile) <= self.unpacked and len(samples) <= self.samples and max(depths, default=0) <= self.depth
                and len(labels) + 6 <= self.labels and all(len(value) <= self.value for value in labels.values()))


def fields(message):
    """The fields of a protobuf message: number and content of those with a length, None of others."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 0x7F) << shift
            shift += 7
            at += 1
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        tag = number()
        if tag & 7 == 0:
            number()
            yield tag >> 3, None
        else:
            assert tag & 7 == 2, tag
            length = number()
            at += length
            yield tag >> 3, message[at - length:at]


class Collector:
    """For use in a with statement. `script`: what to do with the first requests, bytes to send or a
    function of the connection; later ones are taken."""

    def __init__(self, script=(), pem=None, then=OK, limits=None):
        self.script, self.then = list(script), then
        self.limits = limits or Limits()
        self.requests, self.accepted, self.lines = [], [], []
        self.changed = threading.Condition()
        self.tls = None
        if pem is not None:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(pathlib.Path(pem))
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.url = f"{'https://localhost' if pem else 'http://127.0.0.1'}:{self.port}"
        self.thread = threading.Thread(target=self.serve)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        for line in [self.server, *self.lines]:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()
        self.thread.join()

    def serve(self):
        while True:
            try:
                line, _ = self.server.accept()
            except OSError:
                return
            with contextlib.suppress(OSError):
                line.settimeout(DEADLINE_SECONDS)
                if self.tls is not None:
                    line = self.tls.wrap_socket(line, server_side=True)
                self.lines.append(line)
                self.serve_one(line)
            line.close()

    def serve_one(self, line):
        seen = b""
        while b"\r\n\r\n" not in seen:
            part = line.recv(65536)
            if not part:
                return
            seen += part
        head, _, body = seen.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", head)[1])
        while len(body) < length:
            part = line.recv(65536)
            if not part:
                return
            body += part
        self.answer(line, Request(head, body))

    def answer(self, line, request):
        reaction = self.script.pop(0) if self.script else self.then
        if reaction == OK and not self.limits.allow(request):
            reaction = answer(400)
        takes = isinstance(reaction, bytes) and reaction.startswith(b"HTTP/1.1 200") or reaction in self.taking
        with self.changed:
            self.requests.append(request)
            if takes:
                self.accepted.append(request)
            self.changed.notify_all()
        if callable(reaction):
            reaction(line, self)
        else:
            line.sendall(reaction)

    taking = ()  # functions whose answers begin with status 200

    def wait_for(self, what, count):
        """Wait until the list `what` has `count` requests."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(getattr(self, what)) >= count, DEADLINE_SECONDS), \
                f"{len(self.requests)} requests, {len(self.accepted)} taken"

# SPDX-License-Identifier: MIT
"""`cairn store serve` as a service: it gets a new certificate and new tokens while it serves, knows the end of its terminal,
serves behind nginx, and keeps up with slow clients.

Oracles: curl and openssl say which certificate they were shown; the store has what was sent."""
import contextlib
import http.client
import os
import pathlib
import pty
import re
import signal
import socket
import ssl
import subprocess

import pytest

from drawn import CAIRN, draw_to, environment
from fleet import Fleet, Store
from test_listen import ask_tls, certificate, nginx_of_the_guide
from test_store_serve import Served
from waiting import DEADLINE_SECONDS, read_until, wait_until


@pytest.fixture(name="served")
def fixture_served(tmp_path):
    certificate(tmp_path / "server.pem", "first")
    served = Served(tmp_path, tmp_path / "s.db", "--tls", str(tmp_path / "server.pem"))
    yield served
    served.stop()


def shown(served, role="read"):
    """The HTTP status of a request, and the organization of the certificate."""
    run = subprocess.run(["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code} %{certs}", "-H",
                          f"Authorization: Bearer {served.tokens[role]}",
                          f"https://localhost:{served.port}/api/v1/store/list"], capture_output=True, text=True,
                         check=True, timeout=DEADLINE_SECONDS)
    return run.stdout.partition(" ")[0], re.findall(r"Subject:O = (\w+)", run.stdout)


def reload(served):
    """What the server says of a SIGHUP."""
    served.process.send_signal(signal.SIGHUP)
    return read_until(served.process.stderr.fileno(), b"\n").decode()


def test_a_new_certificate_and_new_tokens_are_taken_at_a_signal(served, tmp_path):
    assert shown(served) == ("200", ["first"])
    certificate(tmp_path / "server.pem", "second")
    assert shown(served) == ("200", ["first"])  # not before the signal
    assert reload(served) == "cairn: reloaded\n"
    assert shown(served) == ("200", ["second"])
    (tmp_path / "read.token").write_text("1" * 32)
    assert reload(served) == "cairn: reloaded\n"
    assert shown(served)[0] == "401" and shown(served, "admin")[0] == "200"
    served.tokens["read"] = "1" * 32
    assert shown(served) == ("200", ["second"])


def test_files_that_are_unusable_change_nothing(served, tmp_path):
    pem, token = tmp_path / "server.pem", tmp_path / "add.token"
    good = pem.read_bytes()
    for bad in (b"", b"nonsense\n", good.partition(b"-----BEGIN PRIVATE")[0]):
        pem.write_bytes(bad)
        assert re.match(r"cairn: not reloaded: .*certificate", reload(served))
    pem.unlink()
    assert re.match(r"cairn: not reloaded: .*server\.pem", reload(served))
    pem.write_bytes(good)
    (tmp_path / "read.token").write_text("2" * 32)
    token.write_text("short\n")
    assert re.match(r"cairn: not reloaded: .*hexadecimal digits", reload(served))
    assert shown(served) == ("200", ["first"])  # not even the token that was fine
    token.write_text("3" * 32)
    assert reload(served) == "cairn: reloaded\n" and shown(served)[0] == "401"


def test_what_is_being_sent_arrives(served, tmp_path):
    """An agent has sent one half of a recording when two reloads come."""
    body = Fleet(tmp_path, 1).recordings[0]["path"].read_bytes()
    context = ssl._create_unverified_context()
    with contextlib.closing(http.client.HTTPSConnection("localhost", served.port, context=context,
                                                        timeout=DEADLINE_SECONDS)) as line:
        line.putrequest("PUT", "/api/v1/recordings?service=web")
        line.putheader("Authorization", f"Bearer {served.tokens['add']}")
        line.putheader("Content-Length", str(len(body)))
        line.endheaders(body[:len(body) // 2])
        wait_until(lambda: len(os.listdir(f"/proc/{served.process.pid}/task")) > 3, "the connection's thread")
        assert reload(served) == "cairn: reloaded\n"
        line.send(body[len(body) // 2:])
        assert line.getresponse().status == 200
    assert [row["service"] for row in Store(tmp_path / "s.db").rows("list")] == ["web"]


def test_reloads_keep_nothing(served):
    def kept():
        return len(os.listdir(f"/proc/{served.process.pid}/fd"))
    assert reload(served) == "cairn: reloaded\n"
    first = kept()
    for _ in range(5):
        assert reload(served) == "cairn: reloaded\n"
    assert kept() <= first
    assert shown(served) == ("200", ["first"])


def accepts(place):
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(place)) == 0


@pytest.mark.parametrize("words, ends", [([], True), (["nohup"], False)], ids=["its own", "nohup"])
def test_the_end_of_the_terminal_ends_it(tmp_path, words, ends):
    place = tmp_path / "socket"
    process, terminal = pty.fork()
    if process == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests may ignore it
        os.chdir(tmp_path)  # nohup writes a file
        os.execvpe("/usr/bin/env", ["env", *words, str(CAIRN), "store", "serve", "--listen", str(place)],
                   environment({"CAIRN_STORE": str(tmp_path / "s.db")}))
    try:
        read_until(terminal, b"nohup:" if words else b"serving")
        wait_until(lambda: accepts(place), "a server at the socket")  # it is bound before it listens
        os.close(terminal)
        if ends:
            assert os.waitpid(process, 0)[1] == 0 and not place.exists()
        else:
            wait_until(lambda: pathlib.Path(f"/proc/{process}/stat").read_text().split()[6] == "0", "no terminal")
            with socket.socket(socket.AF_UNIX) as line:
                line.connect(str(place))
                line.sendall(b"GET /ready HTTP/1.0\r\nHost: localhost\r\n\r\n")
                assert line.recv(15) == b"HTTP/1.1 200 OK"
            os.kill(process, signal.SIGTERM)
            assert os.waitpid(process, 0)[1] == 0
    finally:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(process, signal.SIGKILL)


def test_a_thousand_slow_clients_keep_no_agent_away(tmp_path):
    recording = Fleet(tmp_path, 1).recordings[0]["path"]
    served = Served(tmp_path, tmp_path / "s.db")
    with contextlib.ExitStack() as stack:
        stack.callback(served.stop)
        for number in range(1000):  # half a request each, from which the server hears no more
            line = stack.enter_context(socket.create_connection(("127.0.0.1", served.port), timeout=DEADLINE_SECONDS))
            with contextlib.suppress(ConnectionError):
                line.sendall(b"PUT /api/v1/recordings HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (number % 100))
        assert served.put(recording)[0] == 200
        assert len(served.ask("GET", "/api/v1/store/list")[1]["rows"]) == 1
        kept = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{served.process.pid}/status").read_text())[1])
        assert kept < 128 << 10, f"{kept} KiB"


def test_nginx_passes_recordings_of_any_size(tmp_path):
    """With the line that the guide adds; without it nginx refuses more than a mebibyte."""
    path = tmp_path / "large.cairn"
    draw_to(path, "main;call 1 64 0 0 0 0 1 64 64\n")
    with open(path, "ab") as file:
        file.write(bytes(2 << 20))  # as if a checkpoint had not been finished
    (line,) = set(re.findall(r"`(client_max_body_size \w+;)`", (pathlib.Path(__file__).parents[2] / "docs/user/production.md").read_text()))
    served = Served(tmp_path, tmp_path / "s.db")
    headers = {"Authorization": f"Bearer {served.tokens['add']}"}
    try:
        for more, status in (("", 413), (line, 200)):
            with nginx_of_the_guide(tmp_path, served.port, more) as port:
                assert ask_tls(port, "PUT", "/api/v1/recordings?service=web", headers, path.read_bytes())[0] == status
    finally:
        served.stop()
    assert len(Store(tmp_path / "s.db").rows("list")) == 1

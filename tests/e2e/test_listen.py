# SPDX-License-Identifier: MIT
"""`cairn record --listen`: what collectors get, from whom they are protected, and that nothing they
do reaches the recording. The figures are compared with `cairn report --json` of the same checkpoint,
and read by a strict parser of Prometheus' format and by `go tool pprof`."""
import base64
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment
from conversation import Conversation
from protoc import Decoded
from waiting import DEADLINE_SECONDS, read_until, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "formats"))
from exposition import parse, value  # noqa: E402

PEM = pathlib.Path(__file__).with_name("localhost.pem")  # a self-signed certificate for localhost
HEAP = {"cairn_heap_live_bytes": "live_bytes", "cairn_heap_live_blocks": "live_blocks",
        "cairn_heap_peak_bytes": "peak_bytes", "cairn_heap_allocations_total": "allocations",
        "cairn_heap_allocated_bytes_total": "allocated_bytes", "cairn_heap_frees_total": "frees"}


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=DEADLINE_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE_SECONDS)
        self.sock.connect(str(self.path))


class Listening(Conversation):
    """A conversation whose recorder serves; checkpoints are written on request only."""

    def __init__(self, path, address="127.0.0.1:0", options=(), **settings):
        super().__init__(path, ["--checkpoint-interval", "0", "--listen", str(address), *options], **settings)
        said = read_until(self.process.stderr.fileno(), b"\n").decode()
        if said.startswith("cairn: --tls: all users can read the key"):  # of the tests' own certificate
            said = said.partition("\n")[2] or read_until(self.process.stderr.fileno(), b"\n").decode()
        match = re.fullmatch(r"cairn: serving metrics (?:at (https?)://(.*):(\d+)/metrics|on the socket (.*?))"
                             r"(?:, token ([0-9a-f]{32}))?\n", said)
        assert match, said
        self.scheme, self.host, port, self.socket, self.token = match.groups()
        self.port = int(port or 0)

    def command(self, options, program):
        return [word for word in super().command(options, program) if word != "-q"]

    def connect(self):
        if self.socket:
            return UnixConnection(self.socket)
        if self.scheme == "https":
            return http.client.HTTPSConnection("localhost", self.port, timeout=DEADLINE_SECONDS,
                                               context=ssl.create_default_context(cafile=PEM))
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECONDS)

    def ask(self, target, headers=None, method="GET"):
        """(status, body, headers) of one request, with the token unless `headers` are given."""
        if headers is None:
            headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with contextlib.closing(self.connect()) as line:
            line.request(method, target, headers=headers)
            answer = line.getresponse()
            return answer.status, answer.read(), answer.headers

    def get(self, target):
        status, body, _ = self.ask(target)
        assert status == 200, body
        return body

    def end_with_message(self, words):
        _, errors = self.process.communicate(b"q\n", timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0 and words.encode() in errors, errors
        return Recording(self.path, self.process)

    def server(self):
        """The process id of the server."""
        pids = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in pids
                    if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cairn-metrics\n")


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def go_pprof(folder, form, url):
    """What `go tool pprof` prints of a profile that it fetches."""
    home = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PPROF_TMPDIR": str(folder), "GOCACHE": str(folder / "go"),
            "GO111MODULE": "off"}
    return subprocess.run(["/usr/bin/go", "tool", "pprof", "-symbolize=none", form, url], env=home, check=True,
                          capture_output=True, timeout=DEADLINE_SECONDS).stdout.decode()


def pprof_sums(folder, url):
    """The sums of a profile, as `go tool pprof` fetches and reads it."""
    text = go_pprof(folder, "-raw", url)
    types, *lines = text.split("Samples:\n")[1].split("Locations\n")[0].splitlines()
    rows = [[int(number) for number in match[1].split()]
            for match in (re.match(r" *((?:\d+ +)*\d+): ", line) for line in lines) if match]
    return types.split(), [sum(column) for column in zip(*rows)]


# --- the figures ----------------------------------------------------------------------------------


def test_metrics_and_profiles_are_those_of_the_report(scratch):
    with Listening(scratch / "c.cairn") as c:
        c.do("a 10 1000", "f 3", "t 4 50")
        c.ctl("checkpoint")
        families = parse(c.get("/metrics"))
        totals = Recording(c.path, None).totals
        assert {key: value(families, key) for key in HEAP} == {key: totals[name] for key, name in HEAP.items()}
        assert totals["live_bytes"] == 7000 and totals["allocations"] == 14  # what the program did
        assert value(families, "cairn_checkpoint_timestamp_seconds") > 1.5e9
        own = {labels: number for labels, number in families["cairn_own_cpu_seconds_total"].items()}
        assert [dict(labels)["process"] for labels in own] == ["recorder", "server"] and all(own.values())
        for kind, shown in (("heap", "inuse_space/bytes[dflt]"), ("allocs", "alloc_space/bytes[dflt]")):
            url = f"http://cairn:{c.token}@127.0.0.1:{c.port}/debug/pprof/{kind}"
            types, sums = pprof_sums(scratch, url)
            assert sums == [totals[key] for key in ("allocations", "allocated_bytes", "live_blocks",
                                                    "live_bytes")]
            assert shown in types and sum("[dflt]" in word for word in types) == 1
        c.do("a 1 24")
        c.ctl("checkpoint")
        wait_until(lambda: value(parse(c.get("/metrics")), "cairn_heap_live_bytes") == 7024, "the next checkpoint")
        c.end()


def test_resident_memory_is_that_of_the_report(scratch):
    with Listening(scratch / "c.cairn") as c:
        c.do("a 100 10000")
        c.ctl("snapshot")
        c.ctl("checkpoint")
        families = parse(c.get("/metrics"))
        run = subprocess.run([CAIRN, "report", "--json", "--rss", c.path], check=True, capture_output=True,
                             timeout=DEADLINE_SECONDS, env=environment())
        c.end()
    rss = json.loads(run.stdout)["rss"]
    last = rss["breakdowns"][-1]
    parts = {dict(labels)["kind"]: number for labels, number in families["cairn_resident_part_bytes"].items()}
    assert parts == {kind: last[f"{kind}_bytes"] for kind in parts} and len(parts) == 9
    assert sum(parts.values()) == last["rss_bytes"] > 1000000
    assert value(families, "cairn_resident_peak_bytes") == rss["peak_rss_bytes"]


def test_sampled_metrics_and_profiles_state_their_errors(scratch):
    with Listening(scratch / "c.cairn", options=["--sample=1KiB"]) as c:
        c.do("a 2000 100")
        c.ctl("checkpoint")
        families = parse(c.get("/metrics"))
        selection = Recording(c.path, None).report["selection"]
        error = selection["totals_errors"]["live_bytes"]
        assert value(families, "cairn_heap_live_bytes_error") == error > 0
        assert abs(value(families, "cairn_heap_live_bytes") - 200000) < 3 * error  # six standard errors
        run = go_pprof(scratch, "-top", f"http://cairn:{c.token}@127.0.0.1:{c.port}/debug/pprof/heap")
        share = 100 * error / selection["totals"]["live_bytes"]
        assert re.search(rf"^all figures are estimates: 1 of [0-9.]+ .*, inuse_space ±{share:.0f}%$", run, re.M), run
        c.end()


def test_nothing_is_ready_before_the_first_checkpoint(scratch):
    with Listening(scratch / "c.cairn") as c:
        assert [c.ask(target)[0] for target in ("/ready", "/metrics", "/debug/pprof/heap")] == [503] * 3
        c.ctl("checkpoint")
        assert c.get("/ready") == b"ready\n" and c.ask("/metrics")[0] == 200
        c.end()


def test_only_what_collectors_need_is_served(scratch):
    with Listening(scratch / "c.cairn") as c:
        c.ctl("checkpoint")
        for target in ("/api/v1/summary", "/api/v1/source?file_path=/etc/passwd", "/index.html", "/api/v1/token",
                       "/debug/pprof/heap/../../etc/passwd", "/debug/pprof/profile"):
            assert c.ask(target)[0] == 404, target
        assert [c.ask("/metrics", method=method)[0] for method in ("POST", "DELETE", "HEAD")] == [405, 405, 200]
        assert c.ask("/metrics", method="PUT")[2]["Allow"] == "GET, HEAD"
        assert c.ask("/debug/pprof/heap?seconds=3")[0] == c.ask("/debug/pprof/heap?debug=1")[0] == 400
        assert c.ask("/debug/pprof/heap?gc=1&debug=0")[0] == 200
        assert b'href="/debug/pprof/heap"' in c.get("/debug/pprof/")
        assert c.ask("/metrics")[2]["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        c.end()


def test_each_process_has_series_and_profiles_of_its_own(scratch):
    """A shell and the program that it started, whose blocks are known."""
    with Listening(scratch / "c.cairn", program=["sh", "-c", f"{PROGRAMS}/obedient; true"]) as c:
        c.do("a 10 1000")
        c.ctl("checkpoint")
        found = {dict(labels)["pid"]: (dict(labels)["executable"], number)
                 for labels, number in parse(c.get("/metrics"))["cairn_process_live_bytes"].items()}
        processes = {str(process["pid"]): process for process in Recording(c.path, None).report["processes"]}
        assert len(found) == 2 and (str(PROGRAMS / "obedient"), 10000) in found.values()
        for pid, (executable, live) in found.items():
            assert processes[pid]["executable"] == executable and processes[pid]["costs"]["live_bytes"] == live
            families = parse(c.get(f"/metrics?process={pid}"))
            assert value(families, "cairn_heap_live_bytes") == live and "cairn_recording_info" not in families
            assert Decoded(c.get(f"/debug/pprof/heap?process={pid}")).sums()["inuse_space"] == live
        assert [c.ask(f"/metrics?process={word}")[0] for word in ("1", "0", "x", "99999999999")] == [404, 400, 400, 400]
        c.end()


# --- who may read ---------------------------------------------------------------------------------


def test_the_token_opens_as_bearer_and_as_password(scratch):
    with Listening(scratch / "c.cairn") as c:
        c.ctl("checkpoint")
        for headers, status in [({}, 401), ({"Authorization": f"Bearer {c.token}"}, 200), (basic("any", c.token), 200),
                                (basic("", c.token), 200), (basic(c.token, ""), 401), (basic("any", c.token[:-1]), 401),
                                ({"Authorization": "Basic !"}, 401)]:
            assert c.ask("/metrics", headers)[0] == status, headers
        # A probe cannot send a token, so it learns one bit without. Requests of other sites and for other names are refused.
        assert c.ask("/ready", {})[0] == c.ask("/ready", {}, method="HEAD")[0] == 200
        assert c.ask("/ready", {"Host": "evil.example"})[0] == 421 and c.ask("/ready", {}, method="PUT")[0] == 401
        assert c.ask("/ready", {"Origin": "http://evil.example"})[0] == 403
        for path in ("/metrics", "/ready", "/debug/pprof/heap", "/"):  # addresses are in the logs of proxies
            assert c.ask(f"{path}?token={c.token}", {})[0] == 401, path
        host = {"Host": "evil.example", "Authorization": f"Bearer {c.token}"}
        assert c.ask("/metrics", host)[0] == 421
        c.end()


def test_a_token_file_is_made_once_and_read(scratch):
    path = scratch / "token"
    for _ in range(2):
        with Listening(scratch / "c.cairn", options=["--token-file", path]) as c:
            token = path.read_text().strip()
            assert c.token is None and stat.S_IMODE(path.stat().st_mode) == 0o600
            assert c.ask("/ready", basic("cairn", token))[0] == 503 and c.ask("/metrics", {})[0] == 401
            c.end()
    assert re.fullmatch("[0-9a-f]{32}", token)


def test_without_a_token_everybody_on_the_loopback_reads_but_no_web_page(scratch):
    with Listening(scratch / "c.cairn", options=["--no-token"]) as c:
        c.ctl("checkpoint")
        assert c.ask("/metrics", {})[0] == 200
        assert c.ask("/metrics", {"Host": "evil.example"})[0] == 421
        assert c.ask("/metrics", {"Origin": "http://evil.example"})[0] == 403
        c.end()


def test_a_unix_socket_is_for_its_owner(scratch):
    path = scratch / "cairn.sock"
    with Listening(scratch / "c.cairn", path) as c:
        c.ctl("checkpoint")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600 and c.token is None
        assert value(parse(c.get("/metrics")), "cairn_heap_is_estimate") == 0
        c.end()
    assert not path.exists()


def test_tls_with_a_certificate(scratch):
    with Listening(scratch / "c.cairn", "localhost:0", ["--tls", PEM]) as c:
        c.ctl("checkpoint")
        assert c.scheme == "https" and value(parse(c.get("/metrics")), "cairn_checkpoints_total") == 0
        c.end()


@pytest.mark.parametrize("mode, warns", [(0o644, True), (0o640, False), (0o600, False)])
def test_a_key_that_all_users_can_read_is_a_warning(scratch, mode, warns):
    pem = scratch / "server.pem"
    pem.write_bytes(pathlib.Path(PEM).read_bytes())
    pem.chmod(mode)
    run = subprocess.run([CAIRN, "record", "-q", "--listen", "localhost:0", "--tls", pem, "-o", scratch / "c.cairn", "true"],
                         env=environment(), capture_output=True, text=True, check=True, timeout=DEADLINE_SECONDS)
    assert (f"--tls: all users can read the key in '{pem}'; 'chmod o-r' ends that" in run.stderr) == warns, run.stderr


def certificate(path, name):
    """A new self-signed certificate for localhost, with `name` as its organization, and its key, in place of `path`."""
    key = path.with_suffix(".key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", key, "-out", path.with_suffix(".crt"), "-days", "2", "-subj", f"/O={name}/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True, timeout=DEADLINE_SECONDS)
    made = path.with_suffix(".made")
    made.write_bytes(path.with_suffix(".crt").read_bytes() + key.read_bytes())
    made.replace(path)


def curl(c, token, *options):
    """What curl says of its request: the exit status, and the HTTP status with the certificate's subject."""
    run = subprocess.run(["curl", "-sk", "-o", "/dev/null", "-w", "%{http_code} %{certs}", "-H", f"Authorization: Bearer {token}",
                          *options, f"https://localhost:{c.port}/metrics"], capture_output=True, text=True, check=False,
                         timeout=DEADLINE_SECONDS)
    return run.returncode, run.stdout.partition(" ")[0], re.findall(r"Subject:O = (\w+)", run.stdout)


def test_a_new_certificate_and_token_are_taken_at_a_reload(scratch):
    pem, token = scratch / "server.pem", scratch / "token"
    certificate(pem, "first")
    token.write_text("0" * 32 + "\n")
    with Listening(scratch / "c.cairn", "localhost:0", ["--tls", pem, "--token-file", token]) as c:
        c.ctl("checkpoint")
        assert curl(c, "0" * 32) == (0, "200", ["first"]) and curl(c, "1" * 32)[1] == "401"
        kept = http.client.HTTPSConnection("localhost", c.port, timeout=DEADLINE_SECONDS,
                                           context=ssl._create_unverified_context())
        kept.request("GET", "/ready", headers={"Authorization": "Bearer " + "0" * 32})
        assert kept.getresponse().read() is not None
        certificate(pem, "second")
        assert curl(c, "0" * 32)[2] == ["first"]  # not before the reload
        assert c.ctl("reload") == "reloaded\n"
        assert curl(c, "0" * 32) == (0, "200", ["second"])
        token.write_text("1" * 32 + "\n")
        assert c.ctl("reload") == "reloaded\n"
        assert curl(c, "1" * 32) == (0, "200", ["second"]) and curl(c, "0" * 32)[1] == "401"
        assert kept.sock.recv(1) == b""  # the connection that knew the old token has been closed

        descriptors = len(os.listdir(f"/proc/{c.server()}/fd"))
        good = pem.read_bytes()
        for bad in (b"", b"nonsense\n", good.partition(b"-----BEGIN PRIVATE")[0]):
            pem.write_bytes(bad)
            assert "certificate" in c.ctl("reload", status=1)
            assert curl(c, "1" * 32) == (0, "200", ["second"])
        pem.unlink()
        assert "server.pem" in c.ctl("reload", status=1)
        pem.write_bytes(good)
        for bad in ("", "short\n", "G" * 32):
            token.write_text(bad)
            assert "hexadecimal digits" in c.ctl("reload", status=1)
        token.unlink()
        assert "token" in c.ctl("reload", status=1) and not token.exists()
        assert curl(c, "1" * 32) == (0, "200", ["second"])
        token.write_text("2" * 32)
        for _ in range(3):
            assert c.ctl("reload") == "reloaded\n"
        assert curl(c, "2" * 32) == (0, "200", ["second"])
        wait_until(lambda: len(os.listdir(f"/proc/{c.server()}/fd")) <= descriptors, "the old descriptors are closed")
        c.end()


def test_what_cannot_be_reloaded_is_refused(scratch):
    with Listening(scratch / "c.cairn", options=["--no-token"]) as c:
        assert "neither --tls nor --token-file" in c.ctl("reload", status=1)
        c.end()
    with Conversation(scratch / "d.cairn") as c:
        assert "no --listen" in c.ctl("reload", status=1)
        c.end()
    with Listening(scratch / "e.cairn", options=["--token-file", scratch / "token"]) as c:
        os.kill(c.server(), signal.SIGKILL)
        assert "beside the recorder" in c.ctl("reload", status=1)
        c.ctl("checkpoint")


@pytest.mark.parametrize("options, words", [
    (["--listen", "nonsense"], "HOST:PORT"), (["--listen", "127.0.0.1:99999"], "HOST:PORT"),
    (["--listen", "/nowhere/at/all"], "cannot listen on '/nowhere/at/all'"),
    (["--listen", "0.0.0.0:0"], "needs --tls"), (["--listen", "127.0.0.1:0", "--tls", "/etc/hostname"], "certificate"),
    (["--no-token"], "need --listen"), (["--listen", "/x", "--no-token", "--token-file", "x"], "combined"),
    (["--listen", "127.0.0.1:0", "--token-file", "/etc/hostname"], "hexadecimal digits"),
    (["--listen", "BUSY"], "Address already in use"),
])
def test_what_cannot_be_served_is_refused_before_the_program_starts(options, words, scratch):
    with socket.create_server(("127.0.0.1", 0)) as busy:
        options = [f"127.0.0.1:{busy.getsockname()[1]}" if word == "BUSY" else word for word in options]
        run = subprocess.run([CAIRN, "record", *options, "-o", scratch / "c.cairn", "--", "echo", "started"],
                             capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS, env=environment())
    assert run.returncode == 2 and words in run.stderr and run.stdout == "", run.stderr
    assert run.stderr.count("\n") == 1 and not list(scratch.iterdir())


def test_a_stale_socket_is_replaced_and_another_file_is_not(scratch):
    path = scratch / "cairn.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with Listening(scratch / "c.cairn", path) as c:
        assert c.ask("/ready")[0] == 503
        c.end()
    path.write_text("mine")
    run = subprocess.run([CAIRN, "record", "--listen", path, "-o", scratch / "d.cairn", "--", "true"],
                         capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS, env=environment())
    assert run.returncode == 2 and path.read_text() == "mine"


# --- whatever clients do --------------------------------------------------------------------------


def raw(c, data):
    """Send bytes as they are; return all that comes back."""
    with socket.create_connection(("127.0.0.1", c.port), timeout=DEADLINE_SECONDS) as line:
        seen = b""
        with contextlib.suppress(ConnectionError):
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            while part := line.recv(65536):
                seen += part
        return seen


def test_a_thousand_slow_clients_hold_nothing_up(scratch):
    with contextlib.ExitStack() as stack, Listening(scratch / "c.cairn") as c:
        c.do("a 100 100")
        c.ctl("checkpoint")
        size = int(pathlib.Path(f"/proc/{c.server()}/statm").read_text().split()[1])
        for number in range(1000):  # half a request each, from which the server hears no more
            line = stack.enter_context(socket.create_connection(("127.0.0.1", c.port), timeout=DEADLINE_SECONDS))
            with contextlib.suppress(ConnectionError):
                line.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (number % 100))
        assert value(parse(c.get("/metrics")), "cairn_heap_live_bytes") == 10000
        grown = (int(pathlib.Path(f"/proc/{c.server()}/statm").read_text().split()[1]) - size) * 4096
        assert grown < 64 << 20
        c.do("a 1 100")
        recording = c.end()
    assert recording.totals["live_bytes"] == 10100
    recording.assert_whole()


NGINX = "/usr/sbin/nginx"
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/user/production.md"


def free_port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


@contextlib.contextmanager
def nginx_of_the_guide(scratch, served, more=""):
    """nginx with the guide's configuration before 127.0.0.1:`served`; gives its port. The ports and the certificate are
    those of the test."""
    (block,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(), re.S)
    port = free_port()
    for word, ours in (("9443", f"127.0.0.1:{port}"), ("127.0.0.1:9464", f"127.0.0.1:{served}"), ("server {", f"server {{ {more}"),
                       ("/etc/nginx/cairn.crt", str(PEM)), ("/etc/nginx/cairn.key", str(PEM))):
        assert block.count(word) == 1
        block = block.replace(word, ours)
    places = "".join(f"{kind}_temp_path {scratch}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (scratch / "nginx.conf").write_text(f"daemon off; master_process off; pid {scratch}/pid; error_log stderr; events {{}}\n"
                                        f"http {{ access_log {scratch}/access.log; {places}\n{block}}}\n")
    nginx = subprocess.Popen([NGINX, "-p", scratch, "-c", scratch / "nginx.conf"], stderr=subprocess.DEVNULL)

    def is_up():
        assert nginx.poll() is None
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", port)) == 0
    try:
        wait_until(is_up, "nginx")
        yield port
    finally:
        nginx.terminate()
        nginx.wait(DEADLINE_SECONDS)


def ask_tls(port, method, target, headers, body=None):
    """The status and the answer."""
    line = http.client.HTTPSConnection("localhost", port, timeout=DEADLINE_SECONDS,
                                       context=ssl.create_default_context(cafile=PEM))
    with contextlib.closing(line):
        line.request(method, target, body, headers)
        answer = line.getresponse()
        return answer.status, answer.read()


def test_nginx_ends_tls_as_the_guide_has_it(scratch):
    with Listening(scratch / "c.cairn") as c:
        c.do("a 100 100")
        c.ctl("checkpoint")
        with nginx_of_the_guide(scratch, c.port) as port:
            status, body = ask_tls(port, "GET", "/metrics", {"Authorization": f"Bearer {c.token}"})
            assert status == 200 and value(parse(body), "cairn_heap_live_bytes") == 10000
            assert ask_tls(port, "GET", "/metrics", basic("prometheus", c.token))[0] == 200
            assert ask_tls(port, "GET", "/metrics", {"Authorization": "Bearer 0"})[0] == 401
        assert c.token not in (scratch / "access.log").read_text()
        c.end()


def test_requests_that_are_none_do_no_harm(scratch):
    seed = int(os.environ.get("CAIRN_LISTEN_SEED", random.randrange(1 << 32)))
    print("CAIRN_LISTEN_SEED", seed)
    draw = random.Random(seed)
    with Listening(scratch / "c.cairn") as c:
        c.ctl("checkpoint")
        whole = (f"GET /debug/pprof/heap?debug=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {'0' * 32}\r\n"
                 f"X: y\r\n\r\n").encode()
        for _ in range(200):
            data = bytearray(whole)
            for _ in range(draw.randrange(1, 8)):
                at = draw.randrange(len(data))
                data[at:at + draw.randrange(3)] = draw.randbytes(draw.randrange(4))
            said = raw(c, bytes(data[:draw.randrange(len(data) + 1)]))
            assert b" 200 " not in said.split(b"\r\n")[0]
        server = c.server()
        assert c.get("/metrics") and c.server() == server
        c.end()


def has_closed_all(pid):
    """Whether a killed process has closed its files: its leader is a zombie, and its other threads are gone."""
    process = pathlib.Path(f"/proc/{pid}")
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] == "Z" and len(os.listdir(process / "task")) == 1
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize("who", ["recorder", "server", "program"])
def test_whoever_dies_the_others_end_well(who, scratch):
    path = scratch / "cairn.sock"
    with Listening(scratch / "c.cairn", path) as c:
        c.do("a 5 10")
        c.ctl("checkpoint")
        server, program = c.server(), c.status()["program_pid"]
        os.kill({"recorder": c.process.pid, "server": server, "program": program}[who], signal.SIGKILL)
        if who == "server":  # the recorder would end before it is dead, which is no early end
            wait_until(lambda: has_closed_all(server), "the server to end")
            recording = c.end_with_message("the server of --listen ended early")
            assert recording.totals["live_bytes"] == 50
        elif who == "program":
            assert c.process.wait(timeout=DEADLINE_SECONDS) == -signal.SIGKILL
        wait_until(lambda: has_closed_all(server), "the server to end")
        wait_until(lambda: not path.exists(), "the socket to be removed")

# SPDX-License-Identifier: MIT
"""The server itself: who is let in, caching, hostile requests, recordings that grow, a second
recording that is sent, and the command that starts it."""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading
import time

import pytest

from api_schema import ERROR, NO_SELECTION, ROUTES, WORK, check, check_answer, check_references
from drawings import OLD, SERVER
from reading import need_args
from serving import BUILD, CAIRN, DEADLINE_SECONDS, SANITIZED, Events, Server, draw, read_line, report


# Memory

def test_an_answer_without_memory_is_a_500_and_the_server_goes_on(serve, file, tmp_path):
    switch = tmp_path / "switch"
    server = serve(file, env={"LD_PRELOAD": str(BUILD / "tests" / "cli" / "failing_growth.so"), "FAILING_FROM": "1",
                              "FAILING_WHILE": str(switch), "FAILING_LEAST": "1024"})
    for route in ("summary", "tree", "functions", "rss"):
        whole = server.get(route)
        switch.touch()
        answer = server.try_get(route)
        switch.unlink()
        assert (answer.status, answer.json["error"]) == (
            500, {"code": "no memory", "parameter": None, "message": "not enough memory"}), route
        assert server.get(route) == whole


@pytest.mark.nightly
def test_an_answer_of_a_deep_recursion_is_refused_before_it_takes_all_memory(serve, tmp_path):
    """A chain of N frames with a row at each has N * N / 2 frames: 5790 rows exceed 128 MiB of JSON, and 8000 would be
    32 million frames of 8 bytes, of which the server takes 16 million."""
    drawing = "".join(";".join(["f"] * depth) + " 1 1\n" for depth in range(1, 8001))
    server = serve(draw(tmp_path / "deep.cairn", drawing))
    for limit in (8000, 5790):
        answer = server.try_get("stacks", sort="allocations", limit=limit)
        assert (answer.status, answer.json["error"]["message"]) == (
            413, "the answer is larger than 128 MiB: filter it, or ask for fewer rows")
        if limit == 8000:
            peak = re.search(r"VmHWM:\s+(\d+) kB", open(f"/proc/{server.process.pid}/status").read())
            assert int(peak[1]) < 330 << 10 or SANITIZED, peak
    stacks = server.get("stacks", sort="allocations", limit=1000)["stacks"]
    assert stacks["count"] == len(stacks["frame_count"]) == 1000


# Access

def test_nothing_is_answered_without_the_token(server):
    for target in ("/api/v1/meta", "/api/v1/events", "/api/v1/token", "/api/v1/nothing", "/assets/x.js",
                   "/api/v1/meta?token=", "/api/v1/token?token=" + "0" * 32,
                   f"/api/v1/meta?xtoken={server.token}"):
        answer = server.ask(target, with_token=False)
        assert answer.status == 401, target
        assert answer.headers["content-type"] == "application/json"
        assert server.token.encode() not in answer.raw
    for value in (server.token, f"Basic {server.token}", "Bearer", f"Bearer {server.token[:-1]}"):
        answer = server.ask("/api/v1/meta", with_token=False, headers={"Authorization": value})
        assert answer.status == 401, value
    # Browsers would send a cookie to the servers of other users on this machine, too.
    cookie = {"Cookie": f"a=b; cairn-{server.port}={server.token}; c=d"}
    assert server.ask("/api/v1/meta", with_token=False, headers=cookie).status == 401
    assert server.ask(f"/api/v1/meta?token={server.token}", with_token=False).status == 200
    assert server.ask(f"/api/v1/token?token={server.token}", with_token=False).json["token"] == server.token


@pytest.mark.parametrize("host, status", [
    ("127.0.0.1:{port}", 200), ("localhost:{port}", 200), ("localhost:9", 200), ("[::1]", 200),
    ("evil.example:{port}", 421), ("127.0.0.1.evil.example", 421), ("", 421),
])
def test_only_this_machine_is_served(server, host, status):
    assert server.ask("/api/v1/meta", host=host.format(port=server.port) or " ").status == status


def test_other_sites_are_turned_away(server):
    ours = f"http://127.0.0.1:{server.port}"
    for headers, status in (
            ({"Origin": ours}, 200), ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403), ({"Origin": ours.replace("http", "https")}, 403),
            ({"Sec-Fetch-Site": "same-origin"}, 200), ({"Sec-Fetch-Site": "none"}, 200),
            ({"Sec-Fetch-Site": "cross-site"}, 403)):
        assert server.ask("/api/v1/meta", headers=headers).status == status, headers
    for answer in (server.ask("/api/v1/meta"), server.ask("/"), server.ask("/nothing")):
        assert "access-control-allow-origin" not in answer.headers
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-frame-options"] == "DENY"
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy


def test_the_page_and_its_parts_are_there_for_everybody(server):
    """They are the same in each copy of cairn, and the page needs them before it can show a token."""
    page = server.ask(f"/?token={server.token}", with_token=False)
    assert page.status == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "set-cookie" not in page.headers and server.token.encode() not in page.raw
    assert page.raw == server.ask("/", with_token=False).raw
    parts = re.findall(r'(?:src|href)="\.?(/assets/[^"]+)"', page.body.decode())
    assert parts
    for part in parts:
        plain = server.ask(part, with_token=False)
        packed = server.ask(part, with_token=False,
                            headers={"Accept-Encoding": "gzip"})
        assert plain.status == packed.status == 200
        assert packed.headers["content-encoding"] == "gzip"
        assert plain.body == packed.body and len(packed.raw) < len(plain.raw)
        assert plain.headers["cache-control"] == "no-cache"
        again = server.ask(part, with_token=False,
                           headers={"If-None-Match": plain.headers["etag"]})
        assert (again.status, again.raw) == (304, b"")


def test_a_browser_gets_a_token_that_is_good_once(file, tmp_path):
    """Its command line can be seen by others."""
    seen = tmp_path / "seen"
    os.mkfifo(seen)
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    opener.chmod(0o755)
    environment = {**os.environ, "DISPLAY": ":77", "PATH": f"{opener.parent}:{os.environ['PATH']}"}
    # Open for reading and writing: neither side then waits for the other to open it.
    with open(os.open(seen, os.O_RDWR), "rb", buffering=0) as reported, \
            subprocess.Popen([CAIRN, "analyze", file], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment) as process:
        try:
            check_launch(process, reported)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=DEADLINE_SECONDS) == 0


def check_launch(process, reported):
    """The address on stdout is good for ever, that of the browser's command line once."""
    server = Server.__new__(Server)
    server.process = process
    printed = read_line(process.stdout)
    server.port, server.token = int(printed.split(":")[2].split("/")[0]), printed[-32:]
    given = read_line(reported)
    assert given.startswith(printed[:-32]) and given != printed
    target = given.split(str(server.port), 1)[1]
    assert server.ask(target.replace("/?", "/api/v1/meta?"), with_token=False).status == 401
    spent = server.ask(target.replace("/?", "/api/v1/token?"), with_token=False)
    assert spent.status == 200 and spent.json["token"] == server.token
    assert server.ask(target.replace("/?", "/api/v1/token?"), with_token=False).status == 401


# HTTP

def test_answers_are_compressed_and_kept(server):
    plain = server.ask("/api/v1/tree")
    packed = server.ask("/api/v1/tree", headers={"Accept-Encoding": "br, gzip"})
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert plain.body == packed.body
    assert plain.headers["etag"] == packed.headers["etag"]
    assert plain.headers["cache-control"] == "private, no-cache"
    again = server.ask("/api/v1/tree", headers={"If-None-Match": plain.headers["etag"]})
    assert (again.status, again.raw) == (304, b"")
    assert again.headers["etag"] == plain.headers["etag"]
    other = server.ask("/api/v1/tree?limit=5", headers={"If-None-Match": plain.headers["etag"]})
    assert other.status == 200
    head = server.ask("/api/v1/tree", "HEAD")
    assert (head.status, head.raw) == (200, b"")
    assert int(head.headers["content-length"]) == len(plain.raw)
    assert "etag" not in server.ask("/api/v1/source?file_path=/src/app.c").headers


@pytest.mark.parametrize("target, method, status", [
    ("/nothing", "GET", 404), ("/api/v1", "GET", 404), ("/api/v1/", "GET", 404),
    ("/api/v2/meta", "GET", 404), ("/api/v1/meta/", "GET", 404), ("/api/v1/META", "GET", 404),
    ("//api/v1/meta", "GET", 404), ("/api/v1/%6deta", "GET", 404), ("/../etc/passwd", "GET", 404),
    ("/assets/../../etc/passwd", "GET", 404), ("/assets/%2e%2e/index.html", "GET", 404),
    ("/api/v1/meta", "POST", 405), ("/api/v1/meta", "PUT", 405), ("/api/v1/meta", "DELETE", 405),
    ("/api/v1/meta", "OPTIONS", 405), ("/api/v1/meta", "BREW", 405), ("/", "POST", 405),
    ("/api/v1/baseline", "GET", 405), ("/api/v1/baseline", "POST", 405),
    ("/api/v1/meta?beauty=1", "GET", 400), ("/api/v1/summary?limit=x", "GET", 400),
    ("/api/v1/summary?function=%", "GET", 400), ("/api/v1/summary?function=%ff", "GET", 400),
    ("/api/v1/summary?function=a%00", "GET", 400), ("/api/v1/summary?diff=1", "GET", 409),
    ("/api/v1/summary?recording=old", "GET", 409), ("/api/v1/tree?sort=beauty", "GET", 400),
    ("/api/v1/series?from_ms=1", "GET", 400), ("/api/v1/summary?function_regex=(", "GET", 400),
    ("/api/v1/summary?function_regex=a{99999}", "GET", 400),
    ("/api/v1/summary?" + "&x=1" * 33, "GET", 400), ("/" + "x" * 9000, "GET", 414),
    ("/api/v1/summary?function=" + "x" * 2049, "GET", 400),
    ("/api/v1/summary?function_regex=" + "x" * 257, "GET", 400),
], ids=lambda value: str(value)[:40])
def test_mistakes_get_a_status_and_a_sentence(server, target, method, status):
    answer = server.ask(target, method)
    assert answer.status == status, answer.body
    check(answer.json, ERROR)
    assert answer.json["status"] == status
    message = answer.json["error"]["message"]
    assert message and not message.endswith(".") and "\n" not in message
    if status == 405:
        is_written = target.startswith("/api/v1/baseline")
        assert answer.headers["allow"] == ("PUT, DELETE" if is_written else "GET, HEAD")
    assert answer.headers["cache-control"] == "no-store"


def test_a_mistake_names_its_parameter(server):
    for params, parameter in (({"limit": "x"}, "limit"), ({"function_regex": "(("}, "function_regex"),
                              ({"file_regex": "[z-a]"}, "file_regex"), ({"to_ms": 0}, "to_ms")):
        assert server.try_get("summary", **params).json["error"]["parameter"] == parameter
    answer = server.try_get("tree", search_regex="((")
    assert answer.json["error"]["parameter"] == "search_regex"
    for name in ("from_ms", "to_ms", "classes"):  # of another route
        error = server.try_get("leaks", limit=5, **{name: 1}).json["error"]
        assert (error["parameter"], error["message"]) == (name, f"unknown parameter '{name}'")
    error = server.try_get("leaks", limit=5, beauty=1).json["error"]
    assert (error["parameter"], error["message"]) == (None, "unknown parameter 'beauty'")


@pytest.mark.parametrize("query, parameter, words", [
    ("function=a%00b", "function", "zero byte"), ("function=%ff", "function", "not UTF-8"),
    ("function=%c0%80", "function", "not UTF-8"), ("function=%", None, "invalid % escape"),
    ("function=a&function=b", "function", "twice"), ("function=&function=b", "function", "twice"),
    ("%66unction=a&function=b", "function", "twice"), ("Function=a", None, "'Function'"),
    ("function=%zz", None, "invalid % escape"), ("=1", None, "unknown parameter ''"),
    ("&".join(f"a{i}=1" for i in range(33)), None, "more than 32"),
    ("by=stack", "by", "'stack'"),
], ids=lambda value: str(value)[:30])
def test_what_no_query_may_hold_is_refused(server, query, parameter, words):
    answer = server.ask(f"/api/v1/tree?{query}")
    error = answer.json["error"]
    assert (answer.status, error["parameter"]) == (400, parameter) and words in error["message"]


@pytest.mark.parametrize("query, same", [
    ("limit=3&&&", "limit=3"), ("&limit=3&function", "limit=3"), ("limit=%33&function=", "limit=3"),
    ("search=a+b", "search=a%20b"), ("search=x%3dy", "search=x=y"), ("search=%2B", "search=%2b"),
    ("sear%63h=%C3%A4", "search=%c3%a4"), ("by=function", ""),
])
def test_queries_are_decoded(server, query, same):
    said = server.ask(f"/api/v1/tree?{query}")
    assert said.status == 200 and said.json == server.ask(f"/api/v1/tree?{same}").json


def test_a_range_of_a_recording_without_slices_is_refused_by_name(serve, tmp_path):
    server = serve(draw(tmp_path / "plain.cairn", "app!main;app!f 1 1\n"))
    assert not server.get("meta")["capabilities"]["time_range"]
    for name, value in (("from_ms", 1), ("to_ms", 1), ("classes", "in_in")):
        answer = server.try_get("summary", **{name: value})
        assert (answer.status, answer.json["error"]["parameter"]) == (409, name)


@pytest.mark.parametrize("expression", [
    "(((.{0,9}){0,9}){0,9})*y", "((a*)*)*x", "(a|aa)+$", "((((((a+)+)+)+)+)+)+z", "(.*){1,900}z",
    "b?(.*)((.(^^)[a-b])|\\b){1,30}z", "(a{99}){99}", "(" * 60 + "a" + ")*" * 60,
], ids=lambda value: value[:30])
def test_no_regular_expression_keeps_the_server_busy(server, expression):
    """It answers before the deadline that every question here has."""
    assert server.try_get("summary", function_regex=expression).status in (200, 400)


@pytest.mark.parametrize("data", [
    b"", b"\r\n\r\n", b"GET", b"GET / HTTP/1.1\r\n\r\n", b"GET /\r\n\r\n", b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", b"\0" * 1000,
    b"GET /api/v1/meta HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
    b"GET /api/v1/meta HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/meta HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
    b"GET /api/v1/meta?" + b"&" * 8000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
    b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
], ids=lambda data: repr(data[:40]))
def test_what_is_no_request_does_no_harm(server, data):
    said = server.raw(data, is_closed=True)
    assert b"200 OK" not in said
    assert server.ask("/api/v1/meta").status == 200


def test_a_question_has_no_body(server):
    answer = server.ask("/api/v1/meta", headers={"Content-Length": "5"})
    assert answer.status == 413


def test_what_is_sent_has_a_length_and_a_limit(server):
    """Both are refused before anything is sent."""
    for headers in (f"Content-Length: {(1 << 30) + 1}", "Content-Length: 99999999999999999999",
                    "Transfer-Encoding: chunked"):
        said = server.raw(f"PUT /api/v1/baseline?token={server.token} HTTP/1.1\r\n"
                          f"Host: localhost\r\n{headers}\r\n\r\n".encode())
        assert re.match(rb"HTTP/1\.1 (413|400) ", said), said
    assert server.ask("/api/v1/meta").status == 200


def test_a_length_beside_chunks_is_no_way_around_the_limit(server):
    said = server.raw(f"PUT /api/v1/baseline?token={server.token} HTTP/1.1\r\nHost: localhost\r\n"
                      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    assert re.match(rb"HTTP/1\.1 (413|400) ", said), said
    assert server.ask("/api/v1/meta").status == 200


@pytest.mark.nightly  # unit.server.http has the same with a second in place of the 30
def test_who_falls_silent_is_hung_up_on(server):
    """After 30 s, before the deadline."""
    beginnings = (b"", b"GET /api/v1/meta HTTP/1.1\r\nHost: loc",
                  f"PUT /api/v1/baseline?token={server.token} HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 99\r\n\r\nabc".encode())
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for said in pool.map(server.raw, beginnings):
            assert b"200 OK" not in said


def test_many_ask_at_once(server):
    targets = [f"tree?direction={direction}&limit={limit}" for limit in range(1, 21)
               for direction in ("top_down", "bottom_up")]
    with concurrent.futures.ThreadPoolExecutor(max_workers=20) as pool:
        answers = list(pool.map(lambda target: server.ask(f"/api/v1/{target}"), targets * 3))
    assert {answer.status for answer in answers} == {200}
    for target, answer in zip(targets * 3, answers):
        limit = int(target.split("=")[-1])
        assert answer.json["nodes"]["count"] == min(limit, answer.json["total_nodes"])


def begin_answer(server, target):
    """Asks, and returns the connection once the server has begun to work on the answer."""
    begun = server.get("work")["begun"]
    line = socket.create_connection(("127.0.0.1", server.port), timeout=DEADLINE_SECONDS)
    line.sendall(f"GET {target}&token={server.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    end = time.monotonic() + DEADLINE_SECONDS
    while server.get("work")["begun"] == begun:
        assert time.monotonic() < end
    return line


def await_rest(server):
    """The sums of /work once no answer is in the making."""
    end = time.monotonic() + DEADLINE_SECONDS
    while (work := server.get("work"))["begun"] != work["finished"] + work["abandoned"]:
        assert time.monotonic() < end
    check(work, WORK)
    return work


def test_work_stops_when_nobody_waits_for_it(serve, tmp_path):
    """An answer that was begun is given up when its client leaves, and the server tells so."""
    chance = random.Random(1)
    stacks = (";".join(f"app!f{chance.randrange(300)}(a.c:1)" for _ in range(25))
              for _ in range(5000 if SANITIZED else 35000))
    path = draw(tmp_path / "large.cairn", "".join(f"{stack} 1 10\n" for stack in stacks))
    server = serve(path)
    # Each its own tree, which is not kept: a filter that lets everything pass.
    targets = (f"/api/v1/tree?direction=bottom_up&limit=1&thread={'*' * n}" for n in range(1, 1000))
    # A client that hears nothing for a while may leave too late: then it is done once more.
    end = time.monotonic() + 2 * DEADLINE_SECONDS
    while True:
        begin_answer(server, next(targets)).close()
        if await_rest(server)["abandoned"] > 0:
            break
        assert time.monotonic() < end, "no answer was given up"
    finished = await_rest(server)["finished"]
    assert server.ask(next(targets)).status == 200
    assert await_rest(server)["finished"] == finished + 1
    # Nor does the end wait for an answer.
    line = begin_answer(server, next(targets))
    assert server.stop()[0] == 0
    line.close()


def test_idle_connections_leave_room(server):
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
    try:
        assert server.ask("/api/v1/meta").status == 200
    finally:
        for line in idle:
            line.close()


def test_who_sends_a_byte_now_and_then_keeps_nobody_out(server):
    """More lines than the server takes, none of which ever falls silent or shows the token."""
    lines = []
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.2):
            for line in list(lines):
                with contextlib.suppress(OSError):  # hung up on
                    line.send(b"G")
    sender = threading.Thread(target=trickle)
    sender.start()
    try:
        for _ in range(100):
            lines.append(socket.create_connection(("127.0.0.1", server.port), DEADLINE_SECONDS))
        for _ in range(5):
            assert server.ask("/api/v1/meta").status == 200
    finally:
        stop.set()
        sender.join()
        for line in lines:
            line.close()


# Names from strangers

NOT_DRAWN = set(";()=! \n%")
HOSTILE = ["<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", '"quoted"\\',
           "\u202egnp.exe", "a\tb\x01\x1b[31m", "\u2028line", "{}[],:", "%s%n%00", "x" * 900]


def test_hostile_names_come_as_text(serve, tmp_path):
    drawing = "".join(f"app!main;app!{name} 1 1\n" for name in HOSTILE
                      if not set(name) & NOT_DRAWN)
    server = serve(draw(tmp_path / "hostile.cairn", drawing))
    answer = server.ask("/api/v1/functions?limit=0")
    assert answer.headers["content-type"] == "application/json"
    check_references(answer.json)
    names = set(answer.json["code"]["functions"]["name"])
    for name in HOSTILE:
        if not set(name) & NOT_DRAWN:
            assert name in names
    # Whatever the echo of a filter says, it says it as text.
    for name in HOSTILE:
        if "\x00" not in name and len(name) < 2000:
            echo = server.get("summary", function=name)["selection"]["filter"]["function"]
            assert echo == name


# While recording

def test_a_recording_is_followed_while_it_grows(serve, tmp_path):
    path = draw(tmp_path / "live.cairn", SERVER.replace("!host", "!state 0\n!host"))
    server = serve(path)
    events = Events(server)
    hello = events.next("hello")
    assert hello == {"generation": 1, "state": "running", "runtime_ms": 1600}
    first = server.ask("/api/v1/summary")
    draw(path, SERVER.replace("!state 0", "").replace("!runtime_ms 1600", "!runtime_ms 1700"))
    assert events.next("recording") == {"generation": 2, "state": "finished", "runtime_ms": 1700}
    assert server.get("meta")["generation"] == 2
    second = server.ask("/api/v1/summary", headers={"If-None-Match": first.headers["etag"]})
    assert second.status == 200 and second.json["totals"]["runtime_ms"] == 1700
    # What cannot be read is reported, and what was read stays.
    beside = tmp_path / "beside"
    beside.write_bytes(b"this is not a recording\n" * 10)
    beside.rename(path)
    assert "not a recording" in events.next("problem")["message"]
    assert server.get("meta")["generation"] == 2
    draw(path, SERVER)
    assert events.next("recording")["generation"] == 3
    events.close()


def test_listeners_end_with_the_server(server):
    events = [Events(server) for _ in range(3)]
    for listener in events:
        listener.next("hello")
    status, said = server.stop(signal.SIGTERM)
    assert (status, "Ctrl-C" in said) == (0, True)
    for listener in events:
        assert listener.at_end()
        listener.close()


def test_only_so_many_pages_may_listen(server):
    events = [Events(server) for _ in range(16)]
    assert server.ask("/api/v1/events").status == 503
    for listener in events:
        listener.close()


def test_a_page_that_leaves_makes_room_at_once(server):
    """Were its place kept until the next comment line, this would take two minutes."""
    end = time.monotonic() + DEADLINE_SECONDS
    for _ in range(8 * 16):
        listener = None
        while listener is None:
            assert time.monotonic() < end
            with contextlib.suppress(AssertionError):  # 503: the place of one before is in use yet
                listener = Events(server)
        listener.next("hello")
        listener.close()


# A second recording

def test_a_second_recording_can_be_sent(server, tmp_path):
    content = draw(tmp_path / "old.cairn", OLD).read_bytes()
    events = Events(server)
    events.next("hello")
    answer = server.ask("/api/v1/baseline?name=old%20%3Cone%3E.cairn", "PUT", body=content)
    assert answer.status == 200, answer.body
    check_answer("meta", answer.json)
    assert answer.json["baseline"]["file"]["name"] == "old <one>.cairn"
    assert answer.json["generation"] == 2
    assert events.next("baseline") == {"generation": 2}
    assert server.get("summary", diff=1)["baseline_totals"]["allocations"] == 17
    for garbage in (b"", b"this is no recording", content[: len(content) // 8]):
        answer = server.ask("/api/v1/baseline", "PUT", body=garbage)
        assert answer.status == 422, answer.body
        assert "/proc/" not in answer.json["error"]["message"]
    assert server.get("summary", diff=1)["generation"] == 2  # what was there stays
    assert server.ask("/api/v1/baseline?beauty=1", "PUT", body=content).status == 400
    answer = server.ask("/api/v1/baseline", "DELETE")
    assert answer.status == 200 and answer.json["baseline"] is None
    assert server.try_get("summary", diff=1).status == 409
    assert events.next("baseline")["generation"] == 3
    events.close()


# The command

def test_it_listens_on_the_loopback_only(server):
    table = pathlib.Path(f"/proc/{server.process.pid}/net/tcp").read_text()
    listening = [line.split()[1] for line in table.splitlines()[1:] if line.split()[3] == "0A"]
    ours = [address for address in listening if address.endswith(f":{server.port:04X}")]
    assert ours == [f"0100007F:{server.port:04X}"]


@pytest.mark.parametrize("options, word", [
    (["--editor", "javascript:alert(1)"], "link"), (["--editor", "code"], "link"),
    (["--editor", "DATA:text/html,x"], "link"), (["--editor", "1code://x"], "link"),
    (["--editor", "a b://x"], "link"), (["--port", "65536"], "port"),
    (["--port", "0"], "port"), (["--diff", "/nowhere/old.cairn"], "/nowhere/old.cairn"),
])
def test_mistakes_end_it_with_a_sentence(file, options, word):
    run = subprocess.run([CAIRN, "analyze", file, "--no-browser", *options],
                         capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("cairn: ") and word in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_port_that_is_taken_is_reported(server, file):
    run = subprocess.run([CAIRN, "analyze", file, "--port", str(server.port)],
                         capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS)
    assert (run.returncode, run.stdout) == (2, "")
    assert f"127.0.0.1:{server.port}" in run.stderr and "in use" in run.stderr


def test_a_port_can_be_chosen_and_the_way_by_ssh_is_reported(serve, file):
    with socket.socket() as kept:  # nobody else is given the port meanwhile; a server that listens may share it
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        server = serve(file, "--port", str(port), "--editor", "vscode://file/%f:%l")
    assert server.port == port
    assert server.get("meta")["editor"] == "vscode://file/%f:%l"
    status, said = server.stop()
    assert status == 0
    assert f"ssh -L {port}:127.0.0.1:{port}" in said


def test_a_damaged_recording_is_served_as_far_as_it_goes(serve, file, tmp_path):
    content = file.read_bytes()
    cut = tmp_path / "cut.cairn"
    cut.write_bytes(content[:len(content) * 9 // 10])
    server = serve(cut)
    meta = server.get("meta")
    check_answer("meta", meta)
    assert meta["damage"] == report(cut)["damage"] and meta["damage"]
    for route in ROUTES:
        if route not in NO_SELECTION and not need_args(route):
            assert server.try_get(route).status in (200, 409)


def test_the_version_is_reported(server):
    said = subprocess.run([CAIRN, "--version"], capture_output=True, check=True,
                          text=True, timeout=DEADLINE_SECONDS).stdout.split()[1]
    assert server.get("meta")["tool_version"] == said
    assert json.loads(server.ask("/api/v1/meta").body)["version"] == 3


def test_the_chosen_rules_ignore_leaks_as_in_the_report(serve, tmp_path):
    path = draw(tmp_path / "rules.cairn", "!suppressions leak:^kept$\napp!main;app!kept 1 100\n"
                "app!main;app!lost 2 60\napp!main;app!known 1 7\n")
    (tmp_path / "rules.txt").write_text("leak:^known$\n")
    leaked = []
    for options in ([], ["--no-embedded-suppressions"], ["--suppressions", tmp_path / "rules.txt"]):
        leaks, reported = serve(path, *options).get("leaks", by="stack"), report(path, *options)
        leaked.append(reported["totals"]["live_bytes"])
        assert leaks["selection"]["totals"]["live_bytes"] == leaked[-1]
        assert leaks["suppressions"]["pattern"] == [rule["pattern"] for rule in reported["suppressions"]]
    assert leaked == [67, 167, 60]
    refused = subprocess.run([CAIRN, "analyze", "--suppressions", tmp_path / "none.txt", path], check=False,
                             capture_output=True, timeout=DEADLINE_SECONDS)
    assert refused.returncode == 2 and b"none.txt': No such file" in refused.stderr

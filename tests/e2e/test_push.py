# SPDX-License-Identifier: MIT
"""`cairn record --push`: what a collector gets, and that nothing it does reaches the recording.

Profiles are read by `go tool pprof` and protoc; their sums are compared with `cairn report --json`. Backoff and
the bound of the spool have unit tests with a clock of their own."""
import base64
import collections
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess

import pytest

from cairn_run import CAIRN, PROGRAMS, Recording, environment, some_of
from collector import Collector, Limits, answer, endless, stall
from conversation import Conversation
from protoc import Decoded
from waiting import DEADLINE_SECONDS, wait_until

PEM = pathlib.Path(__file__).with_name("localhost.pem")  # a self-signed certificate for localhost


class Pushing(Conversation):
    """A conversation that pushes; checkpoints, and so profiles, are made on request only."""

    def __init__(self, path, url, *options, timeout="60s"):
        super().__init__(path, ["--checkpoint-interval", "0", "--push", url, "--push-interval", "100ms",
                                "--push-timeout", timeout, *options])

    def pusher(self):
        """The process id of the process that pushes."""
        pids = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in pids
                    if pathlib.Path(f"/proc/{pid}/comm").read_text() == "cairn-push\n")

    def end_saying(self):
        """End; return the recording and what cairn said."""
        _, errors = self.process.communicate(b"q\n", timeout=DEADLINE_SECONDS)
        assert self.process.returncode == 0, errors
        return Recording(self.path, self.process), errors.decode()


def allocated(requests, folder):
    """The sums of the allocations of several profiles."""
    sums = [request.sums(folder) for request in requests]
    return tuple(sum(one[name] for one in sums) for name in ("alloc_objects", "alloc_space"))


def assert_allocated(requests, recording, folder):
    totals = recording.totals
    assert allocated(requests, folder) == (totals["allocations"], totals["allocated_bytes"])


# --- what a collector gets ------------------------------------------------------------------------


def test_changes_add_up_to_the_totals(scratch):
    with Collector() as collector, Pushing(scratch / "c.cairn", collector.url, "--label", "env=prod") as c:
        c.do("a 10 1000", "f 3")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 1)
        c.do("a 4 50")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 2)
        c.do("a 1 24")
        recording, said = c.end_saying()
        first, second, last = collector.accepted
    assert said == ""
    recording.assert_whole()
    assert_allocated(collector.accepted, recording, scratch)
    assert first.sums(scratch)["inuse_space"] == 7000 and second.sums(scratch)["inuse_space"] == 7200
    assert second.sums(scratch)["alloc_space"] == 200 and second.sums(scratch)["alloc_objects"] == 4
    assert last.sums(scratch)["inuse_space"] == recording.totals["live_bytes"] == 7224
    spans = [(int(request.query["from"]), int(request.query["until"])) for request in collector.accepted]
    assert all(start < end for start, end in spans) and [start for start, _ in spans] == sorted(s for s, _ in spans)
    notes = subprocess.run(["readelf", "-n", PROGRAMS / "obedient"], check=True, capture_output=True, text=True)
    name, labels = first.labels
    assert (first.method, first.path, name) == ("POST", "/ingest", "obedient")
    assert labels["env"] == "prod" and labels["host"] == os.uname().nodename
    assert f"Build ID: {labels['build_id']}\n" in notes.stdout


def test_the_last_profile_of_a_short_run_is_sent(scratch):
    with Collector() as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", f"{collector.url}/prefix/", "--label", "service_name=api",
                              "--push-timeout", "60s", "-o", scratch / "c.cairn", "--", "ls", "/"],
                             check=False, capture_output=True, env=environment(), timeout=DEADLINE_SECONDS)
    assert run.returncode == 0 and run.stderr == b"", run.stderr
    (request,) = collector.accepted
    assert request.labels[0] == "api" and request.path == "/prefix/ingest"
    assert_allocated([request], Recording(scratch / "c.cairn", run), scratch)


@pytest.mark.parametrize("name", [b"g++", b"caf\xe9 @2", b"x" * 200 + b"/" + b"\xc3\xa9" * 100],
                         ids=["plus", "latin", "long"])
def test_a_program_of_any_name_and_many_labels_are_taken(scratch, name):
    """Pyroscope refuses all profiles of a service whose name has other characters than letters, digits and _-./"""
    program = os.fsencode(scratch) + b"/" + name
    os.makedirs(os.path.dirname(program), exist_ok=True)
    shutil.copy("/usr/bin/true", program)
    labels = [f"--label=l{number}=é" for number in range(16)]
    with Collector() as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s", *labels, "-o",
                              scratch / "c.cairn", "--", program], capture_output=True, env=environment(), check=False,
                             timeout=DEADLINE_SECONDS)
    assert run.returncode == 0 and run.stderr == b"", run.stderr
    (request,) = collector.accepted
    assert len(request.label_names) >= 18 and "\ufffd" not in request.query["name"]
    assert Decoded(request.form["profile"]).strings


def test_blocks_of_processes_that_have_ended_are_not_in_use(scratch):
    commands = scratch / "commands"
    commands.write_text("a 7 100\nq\n")
    with Collector() as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s", "-o",
                              scratch / "c.cairn", "--", "sh", "-c", f"{PROGRAMS}/obedient {commands}; true"],
                             check=True, capture_output=True, env=environment(), timeout=DEADLINE_SECONDS)
    recording = Recording(scratch / "c.cairn", run)
    of_shell, of_child = (request.sums(scratch) for request in by_executable(collector.accepted, "sh", "obedient"))
    shell, child = (process["costs"] for process in recording.report["processes"])
    assert (of_shell["inuse_objects"], of_shell["inuse_space"]) == (shell["live_blocks"], shell["live_bytes"])
    assert child["live_blocks"] >= 7 and of_child["inuse_objects"] == 0


def by_executable(requests, *names):
    """The latest request of each of these programs."""
    return [[request for request in requests if pathlib.Path(request.labels[1]["executable"]).name == name][-1]
            for name in names]


def test_each_process_has_profiles_of_its_own(scratch):
    commands = scratch / "commands"
    commands.write_text("a 7 100\nq\n")
    with Collector() as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s", "-o",
                              scratch / "c.cairn", "--", "sh", "-c", f"{PROGRAMS}/obedient {commands}; ls >&2"],
                             check=True, capture_output=True, env=environment(), timeout=DEADLINE_SECONDS)
    recording = Recording(scratch / "c.cairn", run)
    assert_allocated(collector.accepted, recording, scratch)
    for process in recording.report["processes"]:
        own = [request for request in collector.accepted if request.labels[1]["pid"] == str(process["pid"])]
        assert allocated(own, scratch) == (process["costs"]["allocations"], process["costs"]["allocated_bytes"])
        name, labels = own[0].labels
        notes = subprocess.run(["readelf", "-n", labels["executable"]], check=True, capture_output=True, text=True)
        assert name == pathlib.Path(recording.report["processes"][0]["executable"]).name
        assert labels["executable"] == process["executable"] and f"Build ID: {labels['build_id']}\n" in notes.stdout
    assert len({request.labels[1]["pid"] for request in collector.accepted}) == 3


# --- the limits of a collector --------------------------------------------------------------------

MANY = [PROGRAMS / "distinct_stacks", "700", "1"]  # 700 stacks, each with one block
MERGED = 5  # stacks of `threads`, which has 17 rows


@pytest.mark.parametrize("limits, options", [
    (Limits(samples=100), ["--push-max-samples", "100"]), (Limits(unpacked=20000), ["--push-max-size", "20000B"]),
    (Limits(), [])])
def test_a_profile_keeps_to_the_limits_of_the_collector_and_every_sum(limits, options, scratch):
    with Collector(limits=limits) as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, *options, "--push-timeout", "60s", "-o",
                              scratch / "c.cairn", "--", *MANY], check=True, capture_output=True,
                             env=environment(), timeout=DEADLINE_SECONDS)
    assert run.stderr == b"" and len(collector.requests) == len(collector.accepted) == 1
    (request,) = collector.accepted
    recording = Recording(scratch / "c.cairn", run, stacks_max=1)
    assert_allocated([request], recording, scratch)
    profile = Decoded(request.form["profile"])
    notes = [note for note in profile.comments() if "[other]" in note]
    assert len(notes) == (1 if options else 0) and ("[other]" in profile.functions()) == bool(options)
    if options:
        assert re.fullmatch(r"the collector's limits: \d+ call stacks with little are added up as \[other\]", notes[0])


def test_threads_are_merged_before_stacks(scratch):
    """Four threads with the same stacks: within the limit once they are one."""
    with Collector(limits=Limits(samples=MERGED)) as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-max-samples", str(MERGED),
                              "--push-timeout", "60s", "-o", scratch / "c.cairn", "--", PROGRAMS / "threads"],
                             check=True, capture_output=True, env=environment(), timeout=DEADLINE_SECONDS)
    assert run.stderr == b"" and len(collector.requests) == len(collector.accepted) == 1
    profile = Decoded(collector.accepted[0].form["profile"])
    assert_allocated(collector.accepted, Recording(scratch / "c.cairn", run), scratch)
    assert "[other]" not in profile.functions() and "thread" not in profile.strings


def test_what_is_added_up_is_counted_in_the_recording(scratch):
    path = scratch / "c.cairn"
    with Collector() as collector:
        cairn = subprocess.Popen([CAIRN, "record", "-q", "--push", collector.url, "--push-max-samples", "100",
                                  "--push-interval", "100ms", "--checkpoint-interval", "100ms", "-o", path, "--",
                                  PROGRAMS / "distinct_stacks", "700", "100000000"], env=environment())
        wait_until(lambda: path.exists() and Recording(path, None, stacks_max=1).notes.get("reduced_profiles", 0) > 0,
                   "the note in the recording")
        cairn.terminate()
        cairn.wait(DEADLINE_SECONDS)
    assert len(collector.requests) == len(collector.accepted) > 0


def test_a_refused_profile_is_sent_smaller_once(scratch):
    """The limits of this collector are lower than cairn was told."""
    with Collector(limits=Limits(samples=300)) as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s", "-o",
                              scratch / "c.cairn", "--", *MANY], check=True, capture_output=True,
                             env=environment(), timeout=DEADLINE_SECONDS)
    assert run.stderr == b"" and (len(collector.requests), len(collector.accepted)) == (2, 1)
    assert_allocated(collector.accepted, Recording(scratch / "c.cairn", run, stacks_max=1), scratch)


def test_protoc_reads_what_is_pushed_and_exported(scratch):
    with Collector() as collector:
        subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s", "-o", scratch / "c.cairn",
                        "--", PROGRAMS / "obedient"], input=b"a 7 100\nf 2\nq\n", check=True, capture_output=True,
                       env=environment(), timeout=DEADLINE_SECONDS)
    exported = subprocess.run([CAIRN, "export", "--to", "pprof", "--at", "end", "-o", scratch / "c.pb.gz",
                               scratch / "c.cairn"], check=True, capture_output=True, env=environment(),
                              timeout=DEADLINE_SECONDS)
    assert exported.returncode == 0
    pushed = collections.Counter()
    for request in collector.accepted:
        profile = Decoded(request.form["profile"])
        pushed.update({name: value for name, value in profile.sums().items() if name.startswith("alloc")})
        assert profile.sums() == request.sums(scratch)
    whole = Decoded((scratch / "c.pb.gz").read_bytes())
    truth = {"alloc_objects": 7, "alloc_space": 700, "inuse_objects": 5, "inuse_space": 500}
    assert whole.sums() == truth and pushed == {name: truth[name] for name in ("alloc_objects", "alloc_space")}
    assert {"keep", "main"} <= whole.functions()


# Pyroscope's description of its API (docs/sources/reference-server-api), and its server's code for what that
# leaves open: pkg/ingester/pyroscope/ingest_handler.go, pkg/og/convert/pprof. The values are the rules.
QUERY = {"name": r"[^{}]+\{(\w+=[^{},=\"\s]+(,\w+=[^{},=\"\s]+)*)?\}", "from": r"\d{10}", "until": r"\d{10}",
         "spyName": r"cairn"}  # also units, aggregationType and sampleRate, which are ignored for pprof
CONFIG = {"units": {"samples", "objects", "bytes"}, "aggregation": {"sum", "average"}, "cumulative": {False}}
TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]


def test_each_field_is_as_pyroscope_describes_it(scratch):
    with Collector() as collector, Pushing(scratch / "c.cairn", collector.url, "--label", "env=prod") as c:
        c.do("a 10 1000", "f 3")
        recording, _ = c.end_saying()
    (request,) = collector.accepted
    assert request.query.keys() == QUERY.keys()
    assert all(re.fullmatch(rule, request.query[key]) for key, rule in QUERY.items()), request.query
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    # A part prev_profile is refused.
    assert request.form.keys() == {"profile", "sample_type_config"}
    config = json.loads(request.form["sample_type_config"])
    assert [*config] == [name for name, _ in TYPES]
    for fields in config.values():
        assert fields.keys() == CONFIG.keys() and all(value in CONFIG[key] for key, value in fields.items())
    assert {name: fields["aggregation"] for name, fields in config.items()} == {
        "alloc_objects": "sum", "alloc_space": "sum", "inuse_objects": "average", "inuse_space": "average"}
    profile = Decoded(request.form["profile"])
    assert profile.types("sample_type") == TYPES and profile.types("period_type") == [("space", "bytes")]
    start, end = (int(request.query[key]) for key in ("from", "until"))
    (started,) = profile.numbers("time_nanos")
    (duration,) = profile.numbers("duration_nanos") or [0]  # on a busy machine the clock may not have moved
    assert started // 10**9 == start and end == max((started + duration) // 10**9, start + 1)
    assert profile.numbers("period") == [1] and recording.totals["allocations"] == profile.sums()["alloc_objects"]
    assert [profile.strings[number] for number in profile.numbers("default_sample_type")] == ["inuse_space"]
    assert len(profile.comments()) == 1  # the command line
    # Each text label of a sample becomes a label of its series.
    labels = re.findall(r"^  label \{\n    key: (\d+)\n    str: \d+\n  \}$", profile.text, re.M)
    assert labels and {profile.strings[int(key)] for key in labels} == {"thread"}


def test_a_sampled_profile_states_the_errors_of_what_it_has(scratch):
    """The errors of allocations are those of the changes, not of the whole run: a later profile has others."""
    with Collector() as collector, Pushing(scratch / "c.cairn", collector.url, "--sample=1KiB") as c:
        c.do("a 2000 100")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 1)
        c.do("a 200 1000")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 2)
        c.end_saying()
    for request in collector.accepted[:2]:
        profile = Decoded(request.form["profile"])
        _, note = profile.comments()
        found = re.fullmatch(r"all figures are estimates: 1 of [0-9.]+ allocations was recorded, at least one in 1.00 KiB;"
                             r" errors: alloc_objects ±\d+%, alloc_space ±(\d+)%, inuse_objects ±\d+%, inuse_space ±(\d+)%",
                             note)
        assert found, note
        assert profile.numbers("period") == [1024]
        for name, stated in zip(("alloc_space", "inuse_space"), found.groups()):
            # Two standard errors of a sum of bytes (docs/accuracy.md).
            share = 100 * 2 * (1.125 * 1024 * profile.sums()[name]) ** 0.5 / profile.sums()[name]
            assert abs(int(stated) - share) <= 1, (name, note)


# --- whatever the collector does ------------------------------------------------------------------

endless_body = endless(b"x" * 65536, b"HTTP/1.1 200 OK\r\n\r\n")
Collector.taking = (endless_body,)


@pytest.mark.parametrize("reaction", some_of([
    answer(500), answer(429, "Retry-After: 1"), answer(503, "Retry-After: Wed, 21 Oct 2015 07:28:00 GMT"),
    b"garbage\r\n\r\n", b"", b"HTTP/1.1 2",
    endless(b"X: y\r\n", b"HTTP/1.1 200 OK\r\n"), endless_body,
], 3), ids=some_of(["500", "429", "503", "garbage", "closed", "half a line", "endless headers", "endless body"], 3))
def test_a_failure_delays_and_loses_nothing(reaction, scratch):
    with Collector([reaction]) as collector, Pushing(scratch / "c.cairn", collector.url) as c:
        c.do("a 10 1000")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 1)
        recording, said = c.end_saying()
    assert said == "" and len(collector.accepted) == 2
    recording.assert_whole()
    assert_allocated(collector.accepted, recording, scratch)


def test_the_reason_is_that_of_the_last_answer(scratch):
    """And not that time was up in the request at the end, to which no answer came."""
    with Collector([answer(500, "Retry-After: 60")], then=stall) as collector, \
            Pushing(scratch / "c.cairn", collector.url, timeout="15s") as c:
        c.ctl("checkpoint")
        collector.wait_for("requests", 1)
        _, said = c.end_saying()
    assert said.endswith(": the collector answered with status 500\n"), said


def test_a_trouble_that_is_over_is_no_reason(scratch):
    with Collector([answer(500), answer(200)], then=stall) as collector, \
            Pushing(scratch / "c.cairn", collector.url, timeout="4s") as c:
        c.ctl("checkpoint")
        collector.wait_for("requests", 2)
        _, said = c.end_saying()
    assert "--push: " in said and "status 500" not in said, said


def test_a_redirection_is_not_followed(scratch):
    auth = scratch / "auth"
    auth.write_text("secret\n")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        target = f"Location: http://127.0.0.1:{elsewhere.getsockname()[1]}/ingest"
        with Collector([answer(status, target) for status in (302, 307)]) as collector, \
                Pushing(scratch / "c.cairn", collector.url, "--push-auth", auth) as c:
            c.ctl("checkpoint")
            collector.wait_for("accepted", 1)
            c.end_saying()
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert len(collector.requests) == 4
    assert all(request.headers["authorization"] == "Bearer secret" for request in collector.requests)


def test_what_a_refusal_costs_is_counted(scratch):
    with Collector([answer(400)]) as collector, Pushing(scratch / "c.cairn", collector.url) as c:
        c.ctl("checkpoint")
        collector.wait_for("requests", 1)

        def is_noted():
            c.ctl("checkpoint")
            return Recording(c.path, None).notes.get("lost_profiles") == 1
        wait_until(is_noted, "the loss in the report")
        recording, said = c.end_saying()
    assert re.fullmatch(r"cairn: --push: 1 profile lost, 0 wait in the spool: .* status 400\n", said), said
    recording.assert_whole()


def test_the_spool_has_a_bound_and_every_loss_is_counted(scratch):
    with Collector(then=answer(500)) as collector, \
            Pushing(scratch / "c.cairn", collector.url, "--push-spool", scratch / "spool", "--push-spool-size", "1") as c:
        c.ctl("checkpoint")
        wait_until(lambda: c.ctl("checkpoint") is not None
                   and Recording(c.path, None).notes.get("lost_profiles", 0) >= 1, "the loss in the report")
        recording, said = c.end_saying()
    assert collector.requests == [] and re.search(r"--push: \d+ profiles? lost, 0 wait", said)
    assert list((scratch / "spool").iterdir()) == []
    recording.assert_whole()


def test_a_full_disk_of_the_spool_delays_nothing(scratch):
    """A file of the pusher takes no byte: what the collector takes arrives all the same, then room is used again."""
    folder = scratch / "spool"
    with Collector([answer(500)]) as collector, Pushing(scratch / "c.cairn", collector.url, "--push-spool", folder) as c:
        resource.prlimit(c.pusher(), resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        c.do("a 10 1000")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 1)
        assert not list(folder.glob("*.push"))
        resource.prlimit(c.pusher(), resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        recording, said = c.end_saying()
    assert said == "" and recording.notes.get("lost_profiles", 0) == 0
    assert_allocated(collector.accepted, recording, scratch)


def test_a_collector_that_stalls_holds_nothing_up_and_the_next_run_sends_the_rest(scratch):
    spool = ["--push-spool", scratch / "spool"]
    with Collector(then=stall) as collector, \
            Pushing(scratch / "c.cairn", collector.url, *spool, "--label", "run=1", timeout="100ms") as c:
        c.do("a 10 1000")
        c.ctl("checkpoint")
        collector.wait_for("requests", 1)
        c.do("a 10 1000")
        recording, said = c.end_saying()
    recording.assert_whole()
    assert re.search(r"--push: 0 profiles lost, (\d) waits? in the spool: ", said), said
    assert len(list((scratch / "spool").iterdir())) == int(re.search(r"(\d) waits?", said)[1])
    with Collector() as collector, Pushing(scratch / "d.cairn", collector.url, *spool, "--label", "run=2") as c:
        assert c.end_saying()[1] == ""
    earlier = [request for request in collector.accepted if request.labels[1]["run"] == "1"]
    assert_allocated(earlier, recording, scratch)
    assert list((scratch / "spool").iterdir()) == []


def test_a_spool_serves_one_recorder_and_its_other_files_stay(scratch):
    spool = scratch / "spool"
    spool.mkdir()
    (spool / "mine").write_text("mine")
    (spool / f"{7:020}.push").write_text("not a profile")
    (spool / f"{8:020}.push").symlink_to("mine")
    with Collector() as collector, Pushing(scratch / "c.cairn", collector.url, "--push-spool", spool) as c:
        run = subprocess.run([CAIRN, "record", "--push", collector.url, "--push-spool", spool, "-o", scratch / "d.cairn",
                              "--", "echo", "started"], capture_output=True, text=True, check=False, env=environment(),
                             timeout=DEADLINE_SECONDS)
        assert run.returncode == 2 and "is used by another cairn" in run.stderr and run.stdout == ""
        _, said = c.end_saying()
    assert "1 profile lost" in said and len(collector.requests) == 1
    assert sorted(path.name for path in spool.iterdir()) == [f"{8:020}.push", "mine"]


@pytest.mark.parametrize("who", ["recorder", "pusher"])
def test_the_death_of_one_does_not_hold_the_others_up(who, scratch):
    with Collector() as collector, Pushing(scratch / "c.cairn", collector.url) as c:
        c.do("a 10 1000")
        c.ctl("checkpoint")
        collector.wait_for("accepted", 1)
        pusher = c.pusher()
        if who == "recorder":
            os.kill(c.process.pid, signal.SIGKILL)
            c.process.wait(DEADLINE_SECONDS)
            wait_until(lambda: not pathlib.Path(f"/proc/{pusher}/maps").exists(), "the end of the pusher")
        else:
            os.kill(pusher, signal.SIGKILL)
            recording, said = c.end_saying()
            assert "ended early; the recording is not affected" in said
            recording.assert_whole()


# --- whom cairn trusts ----------------------------------------------------------------------------


@pytest.mark.parametrize("secret, header", [
    ("a token", "Bearer a token"), ("user:pass", "Basic " + base64.b64encode(b"user:pass").decode())])
@pytest.mark.parametrize("way", ["file", "environment"])
def test_credentials_come_from_a_file_or_the_environment(way, secret, header, scratch):
    (scratch / "auth").write_text(f"{secret}\n")
    options = ["--push-auth", scratch / "auth"] if way == "file" else []
    with Collector() as collector:
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, *options, "--push-timeout", "60s",
                              "-o", scratch / "c.cairn", "--", "env"], check=False, capture_output=True, text=True,
                             env=environment({"CAIRN_PUSH_AUTH": secret} if way == "environment" else {}),
                             timeout=DEADLINE_SECONDS)
    assert run.returncode == 0 and run.stderr == ""
    assert collector.accepted[0].headers["authorization"] == header
    assert "CAIRN_PUSH_AUTH" not in run.stdout  # the program does not inherit it


@pytest.mark.parametrize("variable", ["http_proxy", "all_proxy"])
def test_no_proxy_gets_what_is_for_this_machine(variable, scratch):
    """Credentials are sent to the loopback in clear text."""
    with Collector() as collector, Collector() as proxy:
        more = {variable: proxy.url, "CAIRN_PUSH_AUTH": "secret"}
        run = subprocess.run([CAIRN, "record", "-q", "--push", collector.url, "--push-timeout", "60s",
                              "-o", scratch / "c.cairn", "--", "true"], check=False, capture_output=True, text=True,
                             env=environment(more), timeout=DEADLINE_SECONDS)
    assert run.returncode == 0 and run.stderr == ""
    assert len(collector.accepted) == 1 and proxy.requests == []


def test_certificates_are_verified(scratch):
    with Collector(pem=PEM) as collector:
        with Pushing(scratch / "c.cairn", collector.url, "--push-ca", PEM) as c:
            recording, said = c.end_saying()
            assert said == ""
        assert_allocated(collector.accepted, recording, scratch)
        with Pushing(scratch / "d.cairn", collector.url, timeout="100ms") as c:
            _, said = c.end_saying()
        assert "1 profile lost" in said and len(collector.requests) == 1


@pytest.mark.parametrize("options, words", [
    (["--push", "ftp://localhost"], "must begin with http:// or https://"),
    (["--push", "http://a:b@localhost"], "credentials do not belong into the URL"),
    (["--push", "http://localhost/?x"], "must have no query"), (["--push", "http://"], "has no host"),
    (["--push", "http://collector", "--push-auth", "/etc/hostname"], "credentials need https://"),
    (["--push", "http://localhost", "--push-auth", "/nowhere"], "/nowhere"),
    (["--push", "http://localhost", "--label", "a b=c"], "is not NAME=VALUE"),
    (["--push", "http://localhost", "--label", "a=b,c"], "has a blank or one of"),
    (["--push", "http://localhost", "--push-interval", "0"], "the shortest time is 100ms"),
    (["--push", "http://localhost", "--push-spool", "/proc/spool"], "cannot create the folder"),
    (["--label", "a=b"], "need --push"), (["--push-spool", "x"], "need --push"),
])
def test_what_cannot_be_pushed_is_refused_before_the_program_starts(options, words, scratch):
    run = subprocess.run([CAIRN, "record", *options, "-o", scratch / "c.cairn", "--", "echo", "started"],
                         capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS, env=environment())
    assert run.returncode == 2 and words in run.stderr and run.stdout == "", run.stderr
    assert run.stderr.count("\n") == 1 and not list(scratch.iterdir())

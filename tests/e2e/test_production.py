# SPDX-License-Identifier: MIT
"""docs/user/production.md and contrib/: each command runs, each manifest is well-formed, and each
command line of cairn in it is accepted and records.

Paths, ports and the program are those of the test; all else is as it is printed."""
import configparser
import json
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import xml.etree.ElementTree

import pytest
import yaml

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from collector import Collector
from test_attach import Attachable
from test_follow import is_recorded, wanted
from waiting import DEADLINE_SECONDS, wait_until

CONTRIB = ROOT / "contrib"
GUIDE = ROOT / "docs/user/production.md"
MANIFESTS = sorted((CONTRIB / "kubernetes").glob("*.yaml"))
UNITS = sorted((CONTRIB / "systemd").iterdir())
CAPABILITIES = set(re.findall(r"#define (CAP_[A-Z_]+) ", pathlib.Path("/usr/include/linux/capability.h").read_text()))


KEPT_PORTS = []


def free_port():
    """A port that nobody else is given as long as these tests run; a server that listens may share it."""
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", 0))
    KEPT_PORTS.append(kept)
    return kept.getsockname()[1]


def our_environment(scratch):
    home = {"HOME": str(scratch), "PPROF_TMPDIR": str(scratch), "GOCACHE": str(scratch / "go"), "GO111MODULE": "off"}
    return environment({"PATH": f"{CAIRN.parent}:/usr/bin:/bin", **home})


def follow_once(words, output, scratch):
    """Run a command line with --follow, whose name is that of `wanted`, until it has recorded a run of
    the program."""
    recorder = subprocess.Popen(words, cwd=scratch, env=our_environment(scratch), stderr=subprocess.DEVNULL)
    try:
        with Attachable(scratch, [wanted(scratch)]) as program:
            wait_until(lambda: recorder.poll() is not None or is_recorded(program), "the recorder's answer")
            assert recorder.poll() is None
            program.do("a 3 100")
            program.end()
            wait_until(lambda: output.exists() and Recording(output, None).report["run"]["state"] == "finished",
                       "the recording")
        recorder.terminate()
        assert recorder.wait(DEADLINE_SECONDS) == 0
        assert Recording(output, None).totals["allocations"] == 3
    finally:
        recorder.kill()
        recorder.wait()


# --- the guide ------------------------------------------------------------------------------------


def commands_of(text):
    """The indented lines of a page, outside of fences, without their comments."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return [re.sub(r"\s+# .*", "", line[4:]) for line in text.splitlines() if line.startswith("    ")]


class Session:
    """A user at a terminal, with one recording in the background at a time."""

    def __init__(self, scratch, collector):
        self.scratch, self.recorder, self.port, self.collector = scratch, None, free_port(), collector
        (scratch / "lib").mkdir()
        (scratch / "run").mkdir()
        (scratch / "server").write_text("#!/bin/sh\nexec cat\n")  # until its input ends
        (scratch / "server").chmod(0o755)

    def here(self, command):
        for path, ours in (("/var/lib/cairn", "lib"), ("/run/cairn", "run")):
            command = command.replace(path, str(self.scratch / ours))
        command = re.sub(r"--name (\S+)", rf"--name {wanted(self.scratch).name}", command)
        command = command.replace("https://pyroscope.example.org", f"{self.collector.url} --push-timeout 60s")
        return command.replace("9464", str(self.port))

    def run(self, command):
        settings = {"shell": True, "cwd": self.scratch, "env": our_environment(self.scratch)}
        if command.startswith("cairn record"):
            self.stop()
            output = self.scratch / re.search(r"-o (\S+)", self.here(command))[1]
            output.unlink(missing_ok=True)  # of an earlier command
            if "--follow" in command:
                follow_once(shlex.split(self.here(command)), output, self.scratch)
                return
            self.recorder = subprocess.Popen("exec " + self.here(command), stdin=subprocess.PIPE, **settings)
            wait_until(lambda: output.exists() or self.recorder.poll(), "the first checkpoint")
            assert self.recorder.poll() is None
            return
        done = subprocess.run(self.here(command), capture_output=True, check=False, timeout=DEADLINE_SECONDS, **settings)
        # 1: a difference, or nothing in the range of a run that lasted seconds
        may_be_1 = command.startswith("cairn diff") or "--time" in command
        assert done.returncode == 0 or (may_be_1 and done.returncode == 1), (command, done)
        assert done.stdout, command

    def stop(self):
        if self.recorder is not None:
            self.recorder.communicate(timeout=DEADLINE_SECONDS)
            assert self.recorder.returncode == 0
        self.recorder = None


def test_each_command_of_the_guide_runs(scratch):
    with Collector() as collector:
        run_the_guide(Session(scratch, collector), scratch)
    assert len(collector.accepted) >= 2 and not list((scratch / "spool").iterdir())
    assert all("authorization" in request.headers for request in collector.accepted)


def run_the_guide(session, scratch):
    commands = commands_of(GUIDE.read_text())
    assert len([command for command in commands if command.startswith("cairn record")]) >= 3
    for command in commands:
        dated = re.findall(r"server\.\d{8}T\d{6}Z\.cairn", command)
        for name in dated:  # as if the hours had passed
            shutil.copy(scratch / "lib/server.cairn", scratch / name)
        if command.startswith("curl") and "--unix-socket" in command:
            session.run("cairn record --listen /run/cairn/server.sock -o socket.cairn ./server")
        elif command == "cairn ctl server.cairn reload":
            session.run(next(earlier for earlier in commands if "--listen 127.0.0.1" in earlier))
        elif command.startswith("cairn ctl") or dated:
            command = command.replace(" server.cairn", " /var/lib/cairn/server.cairn")
        session.run(command)
    session.stop()


def test_the_scrape_configuration_is_yaml_with_the_port_of_the_guide():
    text = GUIDE.read_text()
    (job,) = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.S)[1])["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9464"]}]
    assert any("--listen 127.0.0.1:9464 " in command for command in commands_of(text))


def test_collectors_read_the_endpoint_of_the_guide():
    (job,) = yaml.safe_load((CONTRIB / "collectors/parca.yaml").read_text())["scrape_configs"]
    profiles = job["profiling_config"]["pprof_config"]
    text = (CONTRIB / "collectors/config.alloy").read_text()
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9464"]}] and '"__address__" = "127.0.0.1:9464"' in text
    assert [profile["path"] for profile in profiles.values() if profile["enabled"]] == ["/debug/pprof/heap"]
    enabled = re.findall(r"profile\.(\w+) \{\s+enabled = true\s+path    = \"(\S+)\"", text)
    assert enabled == [("memory", "/debug/pprof/heap")] and text.count("{") == text.count("}")


# --- contrib --------------------------------------------------------------------------------------


def assert_records(words, scratch):
    """Run a command line of cairn with a program of ours instead of the named one."""
    assert words[0] == "record"
    words = [word for word in words[1:words.index("--") if "--" in words else None]]
    if "--follow" in words:
        words = [re.sub(r"^(--name=)?(?:server|%i)$", rf"\g<1>{wanted(scratch).name}", word) for word in words]
    words = [re.sub(r"/(?:var/lib/cairn|run/cairn|recordings)/", f"{scratch}/", word).replace("%i", "server")
             .replace("0.0.0.0:9464", "0.0.0.0:0") for word in words]
    if "--follow" in words:
        follow_once([CAIRN, "record", *words], scratch / "server.cairn", scratch)
        return
    done = subprocess.run([CAIRN, "record", *words, "--", "ls", "/"], capture_output=True, text=True, check=False,
                          env=environment(), timeout=DEADLINE_SECONDS)
    assert done.returncode == 0, done.stderr
    assert Recording(scratch / "server.cairn", None).totals["allocations"] > 0


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_units_are_well_formed_and_their_commands_work(path, scratch):
    unit = configparser.RawConfigParser(strict=False, delimiters="=", comment_prefixes="#")
    unit.optionxform = str
    unit.read_string(path.read_text())
    assert set(unit.sections()) <= {"Unit", "Service", "Install"}
    program, *words = shlex.split(unit["Service"]["ExecStart"])  # the last one, if there are several
    assert program == "/usr/bin/cairn"
    assert set(unit["Service"].get("CapabilityBoundingSet", "").split()) <= CAPABILITIES
    assert_records(words, scratch)


def pod_of(document):
    return document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_are_consistent_and_their_commands_work(path, scratch):
    (document,) = yaml.safe_load_all(path.read_text())
    assert (document["apiVersion"], document["kind"]) in [("v1", "Pod"), ("apps/v1", "DaemonSet")]
    pod = pod_of(document)
    assert pod.get("hostPID") or pod.get("shareProcessNamespace")
    cairn = next(container for container in pod["containers"] if container["name"] == "cairn")
    assert {f"CAP_{name}" for name in cairn["securityContext"]["capabilities"]["add"]} <= CAPABILITIES
    volumes = {volume["name"] for volume in pod["volumes"]}
    assert {mount["name"] for mount in cairn["volumeMounts"]} == volumes
    port = cairn["ports"][0]["containerPort"]
    assert f"--listen=0.0.0.0:{port}" in cairn["args"]
    template = document if document["kind"] == "Pod" else document["spec"]["template"]
    assert template["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    assert_records(cairn["args"], scratch)


def test_the_image_has_steps_that_exist():
    text = (CONTRIB / "container/Dockerfile").read_text()
    lines = [line for line in re.sub(r"\\\n", "", text).splitlines() if line and not line.startswith("#")]
    words = [line.split(None, 1) for line in lines]
    assert [word for word, _ in words if word == "FROM"] == ["FROM"] * 2
    assert {word for word, _ in words} <= {"ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT"}
    sets = re.search(r"tools/packages.sh install (.*)", text)[1].split()
    subprocess.run([ROOT / "tools/packages.sh", "list", *sets], check=True, capture_output=True, timeout=60)
    assert (ROOT / "CMakeLists.txt").read_text().count("CairnPackage") and "cpack -G DEB" in text


# --- Prometheus and Grafana -----------------------------------------------------------------------

DASHBOARD = CONTRIB / "grafana/cairn.json"
RULES = CONTRIB / "prometheus/cairn.rules.yml"


def promtool(scratch, *words, **settings):
    done = subprocess.run(["promtool", *words], cwd=scratch, capture_output=True, text=True, check=False,
                          timeout=DEADLINE_SECONDS, **settings)
    assert done.returncode == 0 and "WARNING" not in done.stdout + done.stderr, (words, done)
    return done.stdout


@pytest.fixture(scope="module", name="metrics")
def served_metrics(tmp_path_factory):
    """What /metrics serves of a sampled program: {name: set of labels}. cat holds its buffer until its input ends, so a
    checkpoint with a call site comes."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "server").write_text("#!/bin/sh\nexec cat\n")
    (folder / "server").chmod(0o755)
    with subprocess.Popen([CAIRN, "record", "-q", "--sample=16", "--checkpoint-interval", "200ms", "--listen", folder / "s",
                           "-o", folder / "x.cairn", folder / "server"], stdin=subprocess.PIPE, env=environment()) as recorder:
        fetched = []

        def fetch():
            assert recorder.poll() is None
            done = subprocess.run(["curl", "-s", "-f", "--unix-socket", folder / "s", "http://localhost/metrics"],
                                  capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS)
            fetched[:] = [done.stdout]
            return "cairn_call_site_live_bytes{" in done.stdout and "cairn_own_resident_bytes{" in done.stdout
        wait_until(fetch, "metrics with a call site")
        recorder.communicate(timeout=DEADLINE_SECONDS)
    (text,) = fetched
    promtool(folder, "check", "metrics", input=text)
    families = {name: set() for name in re.findall(r"^# TYPE (\S+)", text, re.M)}
    for name, labels in re.findall(r"^(\w+)\{(.*)\} \S+$", text, re.M):
        families[name] |= set(re.findall(r'(\w+)="', labels))
    return families


# Missing while a program is too young to have been measured.
RESIDENT = {"cairn_resident_part_bytes": {"kind"}, "cairn_resident_bytes": set()}


def assert_exist(expression, legend, metrics):
    names = re.findall(r"cairn_\w+", expression)
    assert names
    for name in names:
        assert name in metrics, expression
    labels = set().union(*(metrics[name] for name in names), {"instance"})
    assert set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", legend)) <= labels, (expression, legend)


def test_the_dashboard_asks_for_metrics_that_exist(scratch, metrics):
    dashboard = json.loads(DASHBOARD.read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    rules = []
    for number, target in enumerate(targets):
        assert_exist(target["expr"], target["legendFormat"], {**RESIDENT, **metrics})
        expression = target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".+")
        rules.append({"record": f"panel:{number}", "expr": expression})
    (scratch / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool(scratch, "check", "rules", "rules.yml")
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in dashboard["panels"]})
    variables = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert set(re.findall(r"\$\{?([a-z]\w*)", DASHBOARD.read_text())) == set(variables)


def test_the_alerts_ask_for_metrics_that_exist(scratch, metrics):
    """What fires, and when, is in test_alerts.py."""
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    for rule in group["rules"]:
        assert_exist(rule["expr"], rule["annotations"]["summary"], {**RESIDENT, **metrics})
    assert f"{len(group['rules'])} rules found" in promtool(scratch, "check", "rules", str(RULES))


# --- continuous integration -----------------------------------------------------------------------


def commands_of_jobs():
    github = yaml.safe_load((CONTRIB / "ci/github.yml").read_text())
    gitlab = yaml.safe_load((CONTRIB / "ci/gitlab.yml").read_text())
    (job,) = github["jobs"].values()
    steps = [step["run"] for step in job["steps"] if "run" in step]
    (other,) = gitlab.values()
    assert other["artifacts"]["reports"]["junit"] in other["script"][-1]
    return [line for line in steps + other["script"] if line.startswith("cairn ")]


@pytest.mark.parametrize("command", commands_of_jobs(), ids=["github", "gitlab"])
@pytest.mark.parametrize("limit, status", [("64MiB", 0), ("10", 1)])
def test_jobs_check_the_budgets_of_the_file(command, limit, status, scratch):
    shutil.copy(PROGRAMS / "malloc_family", scratch / "app")
    (scratch / "cairn.toml").write_text(f'[check]\nmax-peak = "{limit}"\n')
    done = subprocess.run(command, shell=True, cwd=scratch, env=our_environment(scratch), capture_output=True, text=True,
                          check=False, timeout=DEADLINE_SECONDS)
    assert done.returncode == status, done
    suite = xml.etree.ElementTree.parse(scratch / "memory.xml").getroot()
    assert len(suite.findall(".//testcase")) == 2 and len(suite.findall(".//failure")) == status
    assert ("::error" in done.stdout) == (status == 1 and "--github" in command)
    assert Recording(scratch / "memory.cairn", None).totals["allocations"] == 4

# SPDX-License-Identifier: MIT
"""docs/user/production.md and contrib/: each command runs, each manifest is well-formed, and each
command line of cairn in it is accepted and records.

Paths, ports and the program are those of the test; all else is as it is printed."""
import configparser
import pathlib
import re
import shlex
import shutil
import socket
import subprocess

import pytest
import yaml

from cairn_run import CAIRN, ROOT, Recording, environment
from collector import Collector
from waiting import DEADLINE_SECONDS, wait_until

CONTRIB = ROOT / "contrib"
GUIDE = ROOT / "docs/user/production.md"
MANIFESTS = sorted((CONTRIB / "kubernetes").glob("*.yaml"))
UNITS = sorted((CONTRIB / "systemd").iterdir())
CAPABILITIES = set(re.findall(r"#define (CAP_[A-Z_]+) ", pathlib.Path("/usr/include/linux/capability.h").read_text()))


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def our_environment(scratch):
    home = {"HOME": str(scratch), "PPROF_TMPDIR": str(scratch), "GOCACHE": str(scratch / "go"), "GO111MODULE": "off"}
    return environment({"PATH": f"{CAIRN.parent}:/usr/bin:/bin", **home})


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
        command = command.replace("https://pyroscope.example.org", f"{self.collector.url} --push-timeout 60s")
        return command.replace("9464", str(self.port))

    def run(self, command):
        settings = {"shell": True, "cwd": self.scratch, "env": our_environment(self.scratch)}
        if command.startswith("cairn record"):
            self.stop()
            self.recorder = subprocess.Popen("exec " + self.here(command), stdin=subprocess.PIPE, **settings)
            output = self.scratch / re.search(r"-o (\S+)", self.here(command))[1]
            wait_until(lambda: output.exists() or self.recorder.poll(), "the first checkpoint")
            assert self.recorder.poll() is None
            return
        done = subprocess.run(self.here(command), capture_output=True, check=False, timeout=DEADLINE_SECONDS, **settings)
        assert done.returncode == 0 or (command.startswith("cairn diff") and done.returncode == 1), (command, done)
        assert done.stdout, command

    def stop(self):
        if self.recorder is not None:
            self.recorder.communicate(timeout=DEADLINE_SECONDS)
            assert self.recorder.returncode == 0


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
        elif command.startswith("cairn ctl") or dated:
            command = command.replace(" server.cairn", " /var/lib/cairn/server.cairn")
        session.run(command)
    session.stop()


def test_the_scrape_configuration_is_yaml_with_the_port_of_the_guide():
    text = GUIDE.read_text()
    (job,) = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.S)[1])["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9464"]}] and "127.0.0.1:9464" in commands_of(text)[0]


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
    if "--name" in words:
        del words[words.index("--name"):words.index("--name") + 2]
    words = [word for word in words if not word.startswith("--name=")]
    words = [re.sub(r"/(?:var/lib/cairn|run/cairn|recordings)/", f"{scratch}/", word).replace("%i", "server")
             .replace("0.0.0.0:9464", "0.0.0.0:0") for word in words]
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
    assert {word for word, _ in words} <= {"FROM", "WORKDIR", "COPY", "RUN", "ENTRYPOINT"}
    sets = re.search(r"tools/packages.sh install (.*)", text)[1].split()
    subprocess.run([ROOT / "tools/packages.sh", "list", *sets], check=True, capture_output=True, timeout=60)
    assert (ROOT / "CMakeLists.txt").read_text().count("CairnPackage") and "cpack -G DEB" in text

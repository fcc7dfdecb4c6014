# SPDX-License-Identifier: MIT
"""docs/user/containers.md: each command runs.

There is no docker and no cluster here. Their commands are interpreted: options are checked against a
list, manifests are parsed, volumes are folders of the test, and what would run in a container of cairn
runs here, on a program of the test. Where podman runs containers, docker's lines are run by it, too."""
import re
import shlex
import shutil
import signal
import subprocess
import tempfile

import pytest
import yaml

from cairn_run import CAIRN, PROGRAMS, ROOT, Recording, environment
from test_attach import Attachable
from test_attach_containers import make_root
from test_follow import is_recorded, wanted
from test_production import commands_of, pod_of
from waiting import DEADLINE_SECONDS, wait_until

LIMITS = ["--network=none", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]  # that this user may set

GUIDE = ROOT / "docs/user/containers.md"
OPTIONS = {"--rm": 0, "--user": 1, "--cap-drop": 1, "--cap-add": 1, "-v": 1}


class Machine:
    """A machine with docker and kubectl, as far as the guide uses them."""

    def __init__(self, scratch):
        self.scratch, self.folders, self.recorder, self.program = scratch, {}, None, None

    def here(self, words):
        """The words with the paths and the name of the test; a volume is one folder, whatever its path."""
        words = [re.sub(r"(^|=)(?:/recordings|/var/lib/cairn)/", rf"\1{self.scratch}/volume/", word) for word in words]
        words = [word.replace("0.0.0.0:9464", "0.0.0.0:0") for word in words]
        name = wanted(self.scratch).name
        follows = [False, *[word == "--name" for word in words]]
        return [name if after else re.sub("^--name=server$", f"--name={name}", word)
                for word, after in zip(words, follows)]

    def cairn(self, words):
        words = [CAIRN, *["1s" if word == "30s" else word for word in self.here(words)]]
        done = subprocess.run(words, cwd=self.scratch, capture_output=True, text=True, check=False, env=environment(),
                              timeout=DEADLINE_SECONDS)
        assert done.returncode == 0, (words, done)
        return done.stdout

    def record(self, words):
        """Run a recorder: one that ends by itself, or one that follows, in the background."""
        self.stop()
        (self.scratch / "volume/server.cairn").unlink(missing_ok=True)  # of an earlier command
        self.program = Attachable(self.scratch, [wanted(self.scratch)])
        if "--follow" not in words:
            self.cairn(words)
        else:
            self.recorder = subprocess.Popen([CAIRN, *self.here(words)], env=environment(), stderr=subprocess.DEVNULL)
            wait_until(lambda: is_recorded(self.program) or self.recorder.poll() is not None, "the recorder's answer")
            assert self.recorder.poll() is None
            self.program.do("a 3 100")

    def stop(self):
        """End the program, then the recorder, and look at what it has recorded."""
        if self.program is not None:
            self.program.end()
            self.program.__exit__()
        if self.recorder is not None:
            path = self.scratch / "volume/server.cairn"
            wait_until(lambda: path.exists() and Recording(path, None).report["run"]["state"] == "finished",
                       "the recording")
            self.recorder.send_signal(signal.SIGTERM)
            assert self.recorder.wait(DEADLINE_SECONDS) == 0
            assert Recording(path, None).totals["allocations"] == 3
        self.program = self.recorder = None

    # --- commands ---

    def docker(self, action, *words):
        if action == "build":
            assert words[:1] == ("-f",) and (ROOT / words[1]).exists() and words[2:] == ("-t", "cairn", ".")
            return
        assert action == "run"
        words = list(words)
        given = {}
        while words[0].startswith("-"):
            option, _, value = words.pop(0).partition("=")
            if option == "--pid":
                assert value == "host" or value.startswith("container:")
                continue
            given.setdefault(option, []).extend(words.pop(0) for _ in range(OPTIONS[option]))
        assert set(given) >= {"--rm", "-v"} and given["--user"] == ["0"] and given["--cap-drop"] == ["ALL"]
        assert given["--cap-add"] == ["SYS_PTRACE", "DAC_OVERRIDE"] and words.pop(0) == "cairn"
        self.record(words)

    def kubectl(self, action, *words):
        words = [word for word in words if word not in ("-c", "cairn")] if action == "cp" else list(words)
        if action == "apply":
            assert words[0] == "-f"
            (document,) = yaml.safe_load_all((ROOT / words[1]).read_text())
            (container,) = [each for each in pod_of(document)["containers"] if each["name"] == "cairn"]
            self.record(container["args"])
        elif action == "exec":
            program, *rest = words[words.index("--") + 1:]
            assert program == "cairn" and (words[0] == "daemonset/cairn" or words[:3] == ["server", "-c", "cairn"])
            path = self.scratch / "volume/server.cairn"
            wait_until(lambda: rest[0] == "ctl" or path.exists(), "the first checkpoint")
            assert self.cairn(rest)
        else:
            assert action == "cp"
            (source,) = self.here([words[0].removeprefix("server:")])
            shutil.copy(source, self.scratch / words[1])


def test_each_command_of_the_guide_runs(scratch):
    machine = Machine(scratch)
    commands = [shlex.split(command) for command in commands_of(GUIDE.read_text())]
    assert {words[0] for words in commands} == {"docker", "kubectl", "cairn"}
    try:
        for program, *words in commands:
            {"docker": machine.docker, "kubectl": machine.kubectl,
             "cairn": lambda *words: machine.cairn(words)}[program](*words)
        machine.stop()
    finally:
        for process in (machine.recorder, machine.program and machine.program.process):
            if process is not None:
                process.kill()
                process.wait()


def import_image(podman, root, entry):
    """Make the image with that root and entry point; its name is the folder's."""
    archive = root.with_suffix(".tar")
    subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
    subprocess.run([*podman, "import", "--change", f'ENTRYPOINT ["{entry}"]', archive, root.name], check=True,
                   capture_output=True)


@pytest.fixture
def podman(scratch):
    """podman with the images "cairn", which has the program, its library and what they need, and "server"."""
    with tempfile.TemporaryDirectory(prefix="cairn-") as state:  # podman wants a short name
        command = ["env", "-u", "XDG_CONFIG_HOME", "podman", "--root", scratch / "store", "--runroot", state,
                   "--storage-driver=vfs", *(["--runtime=runc"] if shutil.which("runc") else [])]
        for name, program in (("server", PROGRAMS / "obedient"), ("cairn", CAIRN)):
            root = scratch / name
            root.mkdir()
            inside = root / make_root(root, program)[1:]
            (root / "bin").mkdir()
            inside.rename(root / "bin" / name)
        libraries = scratch / "cairn/lib/cairn"
        shutil.copytree(CAIRN.parent.parent / "lib/cairn", libraries, dirs_exist_ok=True)
        for name in ("server", "cairn"):
            import_image(command, scratch / name, f"/bin/{name}")
        yield command


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed")
def test_docker_s_lines_record_in_podman(scratch, podman):
    """Word by word, but for the folder of the volume, and the time."""
    lines = [shlex.split(line)[2:] for line in commands_of(GUIDE.read_text()) if line.startswith("docker run ")]
    trial = subprocess.run([*podman, "run", "--rm", *LIMITS, "server"], capture_output=True, check=False, timeout=60,
                           stdin=subprocess.DEVNULL)
    if trial.returncode != 0:
        pytest.skip(f"podman runs no containers here: {trial.stderr.decode()}")
    volume = scratch / "volume"
    volume.mkdir()
    path = volume / "server.cairn"
    started = [*podman, "run", "--rm", "-i", *LIMITS, "--name", "server", "--security-opt", "seccomp=unconfined", "server"]
    assert len(lines) == 2
    for words in lines:
        words = [{"30s": "3s"}.get(word, word.replace("/var/lib/cairn", str(volume))) for word in words]
        path.unlink(missing_ok=True)
        with Attachable(scratch, started) as program:
            recorder = subprocess.Popen([*podman, "run", *LIMITS, *words], stderr=subprocess.PIPE)

            def has_counted():
                program.do("a 1 100")
                return recorder.poll() is not None or (path.exists() and Recording(path, None).totals["allocations"] > 0)
            wait_until(has_counted, "a checkpoint with blocks")
            if "--follow" in words:
                recorder.send_signal(signal.SIGTERM)
            _, errors = recorder.communicate(timeout=DEADLINE_SECONDS)
            assert recorder.returncode == 0, errors
            program.end()
        recording = Recording(path, None)
        assert recording.report["run"]["state"] != "running" and recording.totals["allocations"] > 0
        assert any("keep" in [frame["function"] for frame in frames] for _, frames in recording.stacks())

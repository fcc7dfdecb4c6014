# SPDX-License-Identifier: MIT
"""sandbox: runs unknown programs as a user without rights.

For root, each run has its own namespaces (processes, mounts, network, IPC), the user nobody without
privileges, an empty HOME in its own /tmp, no input, no terminal, and limits on time, processes and
output. All processes that it starts die with it. Without the right to make namespaces, a mark in
the environment finds the processes that a run leaves behind. cairn runs inside the sandbox.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import typing

NOBODY = 65534
FILE_BYTES_MAX = 64 << 20
OUTPUT_BYTES_MAX = 4 << 20
RUNS_ON = "runs on"
TOO_MUCH = "writes too much"

# In the namespaces cairn is at a path that the program's own /tmp does not hide.
ENTER = """
set -e
mount -t tmpfs -o mode=755 sandbox /mnt
mkdir /mnt/cairn
mount --bind "$1" /mnt/cairn
for folder in /tmp /var/tmp /dev/shm; do
    mount -t tmpfs -o size=256m,mode=1777 sandbox $folder
done
mkdir -m 700 /tmp/home
chown NOBODY:NOBODY /tmp/home
cd /tmp/home
shift
exec setpriv --reuid=NOBODY --regid=NOBODY --clear-groups --inh-caps=-all --bounding-set=-all \\
    --no-new-privs "$@"
""".replace("NOBODY", str(NOBODY))

NAMESPACES = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--net", "--ipc"]

LIMITS = ["prlimit", "--core=0", "--nproc=1000", f"--fsize={FILE_BYTES_MAX}:unlimited", "--cpu=60", "--"]

# The first process of a pid namespace is special, so it is neither the program nor its parent. $1
# processes start before these two, so that a program that prints their numbers prints other ones
# in each run.
PARENT = '"$@"; exit $?'
FIRST = 'i=0; while [ $i -lt "$1" ]; do /bin/true; i=$((i + 1)); done; shift; "$@"; exit $?'


class Outcome(typing.NamedTuple):
    """How a run ended: a shell's status, RUNS_ON or TOO_MUCH; and its output as bytes."""
    status: typing.Union[int, str]
    out: bytes
    err: bytes


def read_back(stream):
    stream.seek(0)
    return stream.read(OUTPUT_BYTES_MAX + 1)


def kill_marked(mark):
    """End the processes that a run without namespaces has left behind."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"SANDBOX={mark}\0".encode() in (entry / "environ").read_bytes() + b"\0":
                os.kill(int(entry.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass  # it has ended, or belongs to another user


class Sandbox:
    """The environment in which programs run. `build` is the build directory that holds cairn."""

    def __init__(self, build):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="cairn-sandbox-"))
        self.place.chmod(0o755)
        for name in ("bin/cairn", "lib/cairn/libcairn_preload.so"):
            (self.place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pathlib.Path(build) / name, self.place / name)
        self.is_root = os.geteuid() == 0
        self.has_namespaces = self.is_root and subprocess.run(
            [*NAMESPACES, "true"], check=False, capture_output=True).returncode == 0
        self.cairn = "/mnt/cairn/bin/cairn" if self.has_namespaces else str(self.place / "bin/cairn")
        self.count = 0

    def close(self):
        shutil.rmtree(self.place, ignore_errors=True)

    def _command(self, command, behind):
        inner = [*LIMITS, "sh", "-c", FIRST, "sh", str(behind), "sh", "-c", PARENT, "sh", *command]
        if self.has_namespaces:
            return [*NAMESPACES, "sh", "-c", ENTER, "sh", str(self.place), *inner]
        if self.is_root:
            return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                    "--no-new-privs", *inner]
        return inner

    def run(self, command, limit_s, behind=0):
        """Run the command to its end, or for limit_s seconds."""
        self.count += 1
        mark = f"{os.getpid()}.{self.count}.{id(command)}"
        with tempfile.TemporaryDirectory(prefix="cairn-home-") as home:
            if self.is_root:
                os.chown(home, NOBODY, NOBODY)
            return self._run_in(home, mark, command, limit_s, behind)

    def _run_in(self, home, mark, command, limit_s, behind):
        environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "USER": "nobody",
                       "HOME": "/tmp/home" if self.has_namespaces else home, "SANDBOX": mark}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(self._command(command, behind), stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=environment, cwd=home,
                                       start_new_session=True)
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                status = RUNS_ON
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if not self.has_namespaces:
                kill_marked(mark)
            said = [read_back(stream) for stream in (out, err)]
        if any(len(text) > OUTPUT_BYTES_MAX for text in said):
            status = TOO_MUCH
        return Outcome(status, *said)

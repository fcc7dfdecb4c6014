# SPDX-License-Identifier: MIT
"""cargo_run: Debian's cargo and rustc without a network, and what they build."""
import json
import os
import subprocess

from cairn_run import BUILD, ROOT, environment
from waiting import DEADLINE_SECONDS

RUST = ROOT / "rust"
TARGET = BUILD / "tests" / "rust" / "target"
BUILD_SECONDS = 4 * DEADLINE_SECONDS  # the compiler has its share of a busy machine only
NEWER = os.path.expanduser("~/.cargo/bin")  # rustup's, where the machine has one


def rust_environment(more=None):
    """Nothing of the user's own configuration, no network, and one folder for all that is built."""
    paths = f"{BUILD / 'bin'}:/usr/bin:/bin"
    return environment({"PATH": paths, "CARGO_HOME": str(BUILD / "tests" / "rust" / "home"), "CARGO_NET_OFFLINE": "true",
                        "CARGO_TARGET_DIR": str(TARGET), "CARGO_TERM_COLOR": "never", **(more or {})})


def run(command, cwd=RUST, status=0, env=None):
    """Run a command that ends with this status; return what it has said on both streams."""
    done = subprocess.run(command, cwd=cwd, env=rust_environment(env), capture_output=True, text=True, check=False,
                          timeout=BUILD_SECONDS)
    assert done.returncode == status, (command, done.stdout, done.stderr)
    return done.stdout + done.stderr


def cargo(*words, **settings):
    return run(["cargo", *map(str, words)], **settings)


def built(*words, cwd=RUST, env=None):
    """Build; return {target: its executable}."""
    done = subprocess.run(["cargo", *words, "--message-format=json"], cwd=cwd, env=rust_environment(env),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=BUILD_SECONDS)
    assert done.returncode == 0, done.stderr
    messages = map(json.loads, done.stdout.splitlines())
    return {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}

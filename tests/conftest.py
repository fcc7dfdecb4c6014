# SPDX-License-Identifier: MIT
"""No test reads the options of the user who runs it (src/cli/user_options.h), none hides its failure
behind a child that it would wait for, and none depends on which signals its caller ignores. A case with
the mark `nightly` takes long: it runs if CAIRN_NIGHTLY is set, as `make nightly` does. Then there is no
cache of names either, so that every name is read from debug information."""
import os
import pathlib
import signal
import subprocess
import sys

os.environ["XDG_CONFIG_HOME"] = "/dev/null"
os.environ.pop("CAIRN_OPTIONS", None)
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", pathlib.Path(__file__).parents[1] / "build")).resolve()
if os.environ.get("CAIRN_NIGHTLY"):
    os.environ["XDG_CACHE_HOME"] = str(BUILD / "tests" / "no_cache")

# The tests' own modules are compiled once for all entries, and beside the build, not beside the sources.
sys.pycache_prefix = str(BUILD / "tests" / "pycache")
sys.dont_write_bytecode = False

# `make test &` in a script starts us with these ignored, and a program that is started keeps that: a test
# that sends one would wait for ever. (nohup's SIGHUP stays ignored, as the user wishes.)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)



def pytest_collection_modifyitems(config, items):
    if not os.environ.get("CAIRN_NIGHTLY"):
        late = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=late)
        items[:] = [item for item in items if item not in late]


wait_at_exit = subprocess.Popen.__exit__


def kill_at_failure(self, kind, *error):
    """`with Popen(...)` waits for its child at the end. After a failure the child may run for ever."""
    if kind is not None and self.poll() is None:
        self.kill()
    wait_at_exit(self, kind, *error)


subprocess.Popen.__exit__ = kill_at_failure

PATIENCE = int(os.environ.get("CAIRN_DEADLINE_SECONDS", "0"))
communicate, wait_for_end = subprocess.Popen.communicate, subprocess.Popen.wait


def longer(seconds):
    """What stands for "long enough" in a test is not on an emulated machine."""
    return seconds if seconds is None or seconds < 30 else max(seconds, PATIENCE)


if PATIENCE > 0:
    subprocess.Popen.communicate = lambda self, data=None, timeout=None: communicate(self, data, longer(timeout))
    subprocess.Popen.wait = lambda self, timeout=None: wait_for_end(self, longer(timeout))

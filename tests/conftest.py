# SPDX-License-Identifier: MIT
"""No test reads the options of the user who runs it (src/cli/user_options.h), and none hides its
failure behind a child that it would wait for."""
import os
import subprocess

os.environ["XDG_CONFIG_HOME"] = "/dev/null"
os.environ.pop("CAIRN_OPTIONS", None)

wait_at_exit = subprocess.Popen.__exit__


def kill_at_failure(self, kind, *error):
    """`with Popen(...)` waits for its child at the end. After a failure the child may run for ever."""
    if kind is not None and self.poll() is None:
        self.kill()
    wait_at_exit(self, kind, *error)


subprocess.Popen.__exit__ = kill_at_failure

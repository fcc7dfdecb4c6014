# SPDX-License-Identifier: MIT
"""Programs in a pid namespace of their own, as in containers and sandboxes: the pids that they know
themselves by mean other processes to the recorder, or none."""
import os
import subprocess

import pytest

from cairn_run import PROGRAMS, truth_of

# With a /proc of its own; for those who are not root, in a user namespace, too.
OWN = ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc"]
WAYS = {"root": OWN, "user": [*OWN, "--user", "--map-root-user"],
        # Where neither is allowed there is no way into another one either.
        "same": ["/usr/bin/env"]}


def is_allowed(way):
    return subprocess.run([*WAYS[way], "/bin/true"], capture_output=True, check=False,
                          timeout=60).returncode == 0


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_processes_of_another_namespace_are_told_apart(record, way):
    recording = record(*WAYS[way], "/bin/sh", "-c", f"{PROGRAMS / 'fork_both'}; exit 3",
                       is_compared=False)
    assert recording.finished.returncode == 3
    images = recording.report["processes"]
    (shell,) = [image for image in images if os.path.basename(image["executable"]) == "dash"]
    (parent,) = [image for image in images
                 if os.path.basename(image["executable"]) == "fork_both"]
    (child,) = [image for image in images if image["forked"] and image["executable"] == ""]
    assert parent["parent_pid"] == shell["pid"]
    assert child["parent_pid"] == parent["pid"]
    truth = truth_of("fork_both")
    for cost in ("allocations", "frees", "allocated_bytes"):
        assert parent["costs"][cost] + child["costs"][cost] == truth[cost]

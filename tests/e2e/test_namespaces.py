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


# As it is in a container without /proc, or after a chroot: nobody can name his namespace.
NO_PROC = {"root": [*OWN, "/bin/sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"],
           "user": [*OWN, "--user", "--map-root-user", "/bin/sh", "-c",
                    'mount -t tmpfs none /proc && exec "$@"', "sh"],
           "same": ["/usr/bin/env"]}


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_processes_without_proc_are_found_by_their_memory(record, way):
    """Taken for pid 1 of the recorder's namespace, the program would never end."""
    recording = record(*NO_PROC[way], PROGRAMS / "fork_both", is_compared=False)
    assert recording.finished.returncode == 0
    truth = truth_of("fork_both")
    images = recording.report["processes"]
    (child,) = [image for image in images if image["forked"] and image["costs"]["allocations"]
                and image["executable"] == ""]
    parents = [image for image in images if image["pid"] == child["parent_pid"]]
    parent = sorted(parents, key=lambda image: image["start_ms"])[-1]  # the shell was it before
    for cost in ("allocations", "frees", "allocated_bytes"):
        assert parent["costs"][cost] + child["costs"][cost] == truth[cost]


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_processes_of_another_namespace_are_told_apart(record, way):
    recording = record(*WAYS[way], "/bin/sh", "-c", f"{PROGRAMS / 'fork_both'}; exit 3",
                       is_compared=False)
    assert recording.finished.returncode == 3
    images = recording.report["processes"]
    (shell,) = [image for image in images if os.path.basename(image["executable"]) == "sh"]
    (parent,) = [image for image in images
                 if os.path.basename(image["executable"]) == "fork_both" and not image["forked"]]
    (child,) = [image for image in images
                if image["forked"] and image["executable"] == parent["executable"]]
    assert parent["parent_pid"] == shell["pid"]
    assert child["parent_pid"] == parent["pid"]
    truth = truth_of("fork_both")
    for cost in ("allocations", "frees", "allocated_bytes"):
        assert parent["costs"][cost] + child["costs"][cost] == truth[cost]

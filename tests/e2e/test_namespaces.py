# SPDX-License-Identifier: MIT
"""Programs in their own pid namespace, as in containers and sandboxes: their pids are different
processes, or none, in the recorder's namespace."""
import os
import subprocess

import pytest

from cairn_run import PROGRAMS, truth_of

# With its own /proc; for users other than root, in a user namespace too.
OWN = ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc"]
WAYS = {"root": OWN, "user": [*OWN, "--user", "--map-root-user"],
        # if neither is allowed, there is no other way into a namespace
        "same": ["/usr/bin/env"]}


def is_allowed(way):
    return subprocess.run([*WAYS[way], "/bin/true"], capture_output=True, check=False,
                          timeout=60).returncode == 0


# As in a container without /proc, or after a chroot: the namespace cannot be identified.
NO_PROC = {"root": [*OWN, "/bin/sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"],
           "user": [*OWN, "--user", "--map-root-user", "/bin/sh", "-c",
                    'mount -t tmpfs none /proc && exec "$@"', "sh"],
           "same": ["/usr/bin/env"]}


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_processes_without_proc_are_found_by_their_memory(record, way):
    """If the program were taken for pid 1 of the recorder's namespace, it would never end."""
    recording = record(*NO_PROC[way], PROGRAMS / "fork_both", is_compared=False)
    assert recording.finished.returncode == 0
    truth = truth_of("fork_both")
    images = recording.report["processes"]
    (child,) = [image for image in images if image["forked"] and image["costs"]["allocations"]
                and image["executable"] == ""]
    parents = [image for image in images if image["pid"] == child["parent_pid"]]
    parent = sorted(parents, key=lambda image: image["start_ms"])[-1]  # after the shell
    for cost in ("allocations", "frees", "allocated_bytes"):
        assert parent["costs"][cost] + child["costs"][cost] == truth[cost]


@pytest.mark.parametrize("way", [next(filter(is_allowed, WAYS))])
def test_processes_of_another_namespace_are_distinguished(record, way):
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

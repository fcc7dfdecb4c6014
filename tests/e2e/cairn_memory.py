# SPDX-License-Identifier: MIT
"""cairn_memory: what cairn's processes take together, as the kernel states it: each shared page once."""
import pathlib
import re


def tree_of(pid, program):
    """A process and all below it, except the recorded program."""
    found = [pid]
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text() != f"{program}\n":
                found += tree_of(int(child), program)
    return found


def proportional_bytes(pid, program):
    """The sum for cairn's processes; those that end meanwhile are left out."""
    total = 0
    try:
        processes = tree_of(pid, program)
    except OSError:
        return 0
    for process in processes:
        try:
            total += int(re.search(r"^Pss: +(\d+)", pathlib.Path(f"/proc/{process}/smaps_rollup").read_text(), re.M)[1]) * 1024
        except (OSError, TypeError):
            continue
    return total

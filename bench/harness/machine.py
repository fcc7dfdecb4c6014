# SPDX-License-Identifier: MIT
"""machine: describes this computer, and whether it is quiet enough to measure."""
import dataclasses
import datetime
import os
import pathlib
import platform
import re
import subprocess

QUIET_LOAD = 0.3


@dataclasses.dataclass(frozen=True)
class Machine:
    """The data that a reader needs to judge a figure."""

    cpu: str
    cores: int
    memory_gib: float
    kernel: str
    libc: str
    system: str
    virtual: bool
    date: str
    commit: str
    load: float  # 1-minute average when the measurements began


def _first_match(pattern, path):
    try:
        match = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        return "unknown"
    return match.group(1).strip().strip('"') if match else "unknown"


def _commit(root):
    found = subprocess.run(
        ["git", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def available_memory_bytes():
    """Memory that can be used without evicting other programs."""
    return int(_first_match(r"^MemAvailable:\s+(\d+)", "/proc/meminfo")) * 1024


def describe_machine(root):
    """Describe the present machine; `root` is the repository."""
    model = _first_match(r"^model name\s*:\s*(.+)$", "/proc/cpuinfo")
    family = _first_match(r"^cpu family\s*:\s*(.+)$", "/proc/cpuinfo")
    return Machine(
        cpu=f"{model} (family {family})",
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(int(_first_match(r"^MemTotal:\s+(\d+)", "/proc/meminfo")) / 2**20, 1),
        kernel=platform.release(),
        libc=" ".join(platform.libc_ver()),
        system=_first_match(r"^PRETTY_NAME=(.+)$", "/etc/os-release"),
        virtual="hypervisor" in _first_match(r"^flags\s*:\s*(.+)$", "/proc/cpuinfo"),
        date=datetime.date.today().isoformat(),
        commit=_commit(root),
        load=os.getloadavg()[0],
    )


def quietness_warning(machine):
    """A sentence if other work runs, else None."""
    if machine.load < QUIET_LOAD:
        return None
    return (f"load average {machine.load:.2f} before the first run: other work was going on, "
            "so the figures below are too high and too scattered")

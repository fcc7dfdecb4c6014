#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_symbols: holds the symbols of compiled objects against the layers of check_layers.py.

usage: tools/check_symbols.py ROOT BUILD

A file may call only functions, and use only data, that its own folder, a folder below it or a module
that its module may use defines. Includes alone do not show this: a lower folder can declare what an
upper one defines. And no function of ours has a name that a library of cairn exports: the linker would
take one for the other. Exit status 1 and one line per finding.

Files do not call each other in a circle, except for those of CIRCLES.

Files that a profiled process names are opened by host/os/target_file.c alone: in the folders that handle
processes only the objects of OPENERS call anything that opens a path.

Two names are looked up elsewhere: those of libc, which the hooks define too, and those of a way
into the target (session/way), which the agent or the preload library defines.
"""
import collections
import functools
import pathlib
import re
import subprocess
import sys

import check_layers

SAME_NAMES_AS_LIBC = ("target/preload/exports/", "target/agent/freestanding.c")
WAYS = "target/agent/"
OBJECTS_AT_ONCE = 200
OPENS = ("open", "openat", "creat", "fopen", "freopen", "opendir", "scandir", "mmap", "dlopen", "file_read",
         "file_open_read", "openat2", "open_by_handle_at", "ftw", "nftw")
OPENS = {f"{name}{bits}" for name in OPENS for bits in ("", "64")} | {"__open_2", "__open64_2", "__openat_2",
                                                                      "__openat64_2"}
HANDLE_PROCESSES = ("symbols/", "attach/", "inject/", "cli/names/", "profile/", "recorder/")
OPENERS = {
    "inject/process/kernel_calls.c": "files of /proc",
    "inject/process/proc_files.c": "folders of /proc",
    "inject/process/target_refusal.c": "settings of the kernel",
    "profile/select/suppressions.c": "a file of rules that the user names",
    "recorder/control/control_client.c": "the kernel's list of sockets",
    "recorder/launch/preflight.c": "what the user starts",
    "recorder/launch/preload_path.c": "the folder of cairn's library",
    "recorder/memory/memory_areas.c": "files of /proc",
    "recorder/memory/own_memory.c": "files of /proc",
    "recorder/output/checkpoint.c": "memory of its own",
    "recorder/output/rotation.c": "the folder of the recording",
    "recorder/processes/pending_processes.c": "files of /proc",
    "recorder/processes/pid_lookup.c": "files of /proc",
    "recorder/session/session_create.c": "memory of its own, and a setting of the kernel",
    "symbols/elf/debuginfod.c": "a library of the system",
    "symbols/name_cache.c": "its own folder",
}

ARCHITECTURE = re.compile(r"arch/\w+/")
# Circles of calls that there are, with what would cut each.
CIRCLES = {
    ("recorder/recorder_aside.c", "recorder/recorder_attach.c", "recorder/recorder_breakdown.c",
     "recorder/recorder_control.c", "recorder/recorder_detach.c", "recorder/recorder_follow.c",
     "recorder/recorder_join.c", "recorder/recorder_loop.c", "recorder/recorder_modules.c",
     "recorder/recorder_reading.c", "recorder/recorder_rest.c", "recorder/recorder_snapshots.c",
     "recorder/recorder_state.c"): "one table of processes; a round of the loop as the only caller of its steps",
    ("target/agent/agent_calls.c", "target/agent/agent_modules.c", "target/agent/agent_process.c",
     "target/agent/agent_thread.c", "target/agent/arch/abi_hooks.c",
     "target/agent/arch/agent_entries.c"): "the agent's page in a file of its own",
    ("target/preload/record/record.c", "target/preload/record/record_guard.c",
     "target/preload/record/record_mapping.c"): "the deferred events in a file below the guard",
}


def source_of(entry, root, build):
    """The source of an object below BUILD, from src/ on; None if it is no product code of ROOT."""
    parts = pathlib.PurePath(entry).relative_to(build).parts
    if "CMakeFiles" not in parts or parts[0] != "src":
        return None
    at = parts.index("CMakeFiles")
    name = pathlib.PurePath(*parts[1:at], *parts[at + 2:]).as_posix().removesuffix(".o")
    is_old = not (root / "src" / name).is_file()  # left over from a source that has moved
    return None if is_old or check_layers.TEST.search(name) or not name.endswith(".c") else name


@functools.cache
def symbols(root, build):
    """({symbol: sources that define it}, {symbol: sources that use it})."""
    defined, used = collections.defaultdict(set), collections.defaultdict(set)
    objects = [str(path) for path in (build / "src").rglob("*.o") if source_of(path, root, build)]
    for first in range(0, len(objects), OBJECTS_AT_ONCE):
        listing = subprocess.run(["nm", "-A", "-g", "-P", *objects[first:first + OBJECTS_AT_ONCE]],
                                 capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            entry, _, rest = line.partition(": ")
            name, kind = rest.split()[:2]
            (used if kind in "Uw" else defined)[name].add(source_of(entry, root, build))
    return defined, used


def findings(root, build, modules):
    """Uses of symbols that only folders above the user's define."""
    defined, used = symbols(root, build)
    if not defined:
        yield f"{build}: there are no objects"
    for name in sorted(used):
        definitions = sorted(source for source in defined[name] if not source.startswith(SAME_NAMES_AS_LIBC))
        for user in sorted(used[name]) if definitions else ():
            place = check_layers.place_of(user, modules)
            places = [check_layers.place_of(source, modules) for source in definitions]
            by_way = user.startswith("target/") and all(source.startswith(WAYS) for source in definitions)
            if place and not by_way and not any(
                    other and check_layers.may_use(place, other, False, modules) for other in places):
                yield f"src/{user}: may not use {name} of {definitions[0]}"


def circles(root, build):
    """Files that call each other in a circle, and entries of CIRCLES that are none."""
    defined, used = symbols(root, build)
    uses = collections.defaultdict(set)
    for name, users in used.items():
        definitions = {source for source in defined.get(name, ()) if not source.startswith(SAME_NAMES_AS_LIBC)}
        for user in users if len(definitions) == 1 else ():
            uses[user] |= definitions - {user}
    reached = {source: check_layers.reach(uses, source) for source in list(uses)}
    found = {tuple(sorted(ARCHITECTURE.sub("arch/", other) for other in reached[source]
                          if source in reached.get(other, ())))
             for source in reached if source in reached[source]}
    for circle in sorted(found):
        if not any(set(circle) <= set(known) for known in CIRCLES):
            yield f"src/{circle[0]}: calls itself by way of {', '.join(circle[1:])}"
    built = {ARCHITECTURE.sub("arch/", source) for sources in defined.values() for source in sources}
    for known in sorted(CIRCLES):
        if built.issuperset(known) and known not in found:
            yield f"src/{known[0]}: CIRCLES has a circle with {', '.join(known[1:])} that is none"


def opens(root, build):
    """Objects that may handle what a process names, and open a path; and entries of OPENERS that open none."""
    _, used = symbols(root, build)
    openers = {source for name in OPENS for source in used.get(name, ()) if source.startswith(HANDLE_PROCESSES)}
    for source in sorted(openers - OPENERS.keys()):
        yield f"src/{source}: host/os/target_file.h opens what a process names"
    for source in sorted(OPENERS.keys() - openers):
        if (root / "src" / source).exists():
            yield f"src/{source}: opens nothing, and is in OPENERS"


def exported(program):
    """{symbol: library} of the libraries that PROGRAM loads; none if it does not run on this machine."""
    loads = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    names = {}
    for library in (word for word in loads.split() if word.startswith("/")):
        listing = subprocess.run(["nm", "-D", "--defined-only", "-P", library],
                                 capture_output=True, text=True, check=False).stdout
        names |= {line.split()[0].partition("@")[0]: library for line in listing.splitlines()}
    return names


def clashes(root, build):
    """Symbols outside of the target that a library of cairn has, too."""
    defined, _ = symbols(root, build)
    for name, library in sorted(exported(build / "bin" / "cairn").items()):
        for source in sorted(source for source in defined[name] if not source.startswith("target/")):
            yield f"src/{source}: {name} is also a name of {pathlib.Path(library).name}"


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    found = [*findings(root, build, check_layers.MODULES), *circles(root, build),
             *opens(root, build), *clashes(root, build)]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

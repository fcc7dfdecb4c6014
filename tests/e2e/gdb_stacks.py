# SPDX-License-Identifier: MIT
"""gdb_stacks: runs inside gdb and writes the stacks at chosen points as JSON.

GDB_STACKS_OUT names the output file, GDB_STACKS_AT the functions to stop at (separated by colons).
Each is stopped at its beginning, where its first argument, the size, is still in its register.
Result: {size: [frame, ...]}, innermost first, from the caller of the chosen function outwards.
"""
import json
import os

import gdb

SIZE_REGISTER = {"i386:x86-64": "$rdi", "aarch64": "$x0"}


def frame_facts(frame):
    place = frame.find_sal()
    return {
        "function": frame.name() or "",
        "file": os.path.basename(place.symtab.filename) if place.symtab else "",
        "line": place.line if place.symtab else 0,
        "module": os.path.basename(gdb.solib_name(frame.pc()) or
                                   gdb.current_progspace().filename),
        "inlined": frame.type() == gdb.INLINE_FRAME,
    }


def stack_here(chosen):
    frames = []
    frame = gdb.newest_frame()
    # The beginning of a function may already belong to a function that is inlined there.
    while frame.name().split("::")[-1] not in chosen:
        frame = frame.older()
    frame = frame.older()
    while frame is not None and frame.is_valid():
        if frame.type() != gdb.TAILCALL_FRAME:  # gdb's guess at tail-called frames
            frames.append(frame_facts(frame))
        frame = frame.older()
    return frames


def main():
    for setting in ("pagination off", "confirm off", "breakpoint pending on",
                    "backtrace past-main on", "backtrace limit unlimited",
                    "debuginfod enabled off", "auto-solib-add on"):
        gdb.execute("set " + setting)
    chosen = os.environ["GDB_STACKS_AT"].split(":")
    for function in chosen:
        gdb.execute(f"break {function}")
    stacks = {}
    gdb.execute("run", to_string=True)
    register = SIZE_REGISTER[gdb.selected_inferior().architecture().name()]
    while gdb.selected_inferior().pid != 0:
        size = int(gdb.parse_and_eval(register)) & 0xffffffff
        stacks[size] = stack_here(chosen)
        gdb.execute("continue", to_string=True)
    with open(os.environ["GDB_STACKS_OUT"], "w", encoding="utf-8") as out:
        json.dump(stacks, out)


main()

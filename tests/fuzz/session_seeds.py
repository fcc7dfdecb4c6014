#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""session_seeds: writes the seeds of fuzz_session.

usage: tests/fuzz/session_seeds.py FOLDER

Each seed is a short life of a process in the steps of src/recorder/ingest/fuzz_session.c, with the records of
src/session/wire.h that a well-behaved one would send. The fuzzer misbehaves from there.
"""
import pathlib
import struct
import sys

JOIN, OPEN, SEND, SCRIBBLE, TICK, CLOSE = range(6)
PAD, TICKED, FREE, ALLOC, REALLOC, ALLOC_LARGE, REALLOC_LARGE, STACK, MODULE, TEXT = range(1, 11)
EVENT, QUERY = 24, 25
HAS_SLOT = 1
LANES_OFFSET, STRIDE = 256 << 10, 1 << 20


def join(slot=0, flags=0, is_alive=True):
    return bytes([JOIN, slot, flags, 0 if is_alive else 1])


def open_lane(lane=0, slot=0):
    return bytes([OPEN, lane, slot])


def send(lane, *words):
    return bytes([SEND, lane, len(words)]) + struct.pack(f"<{len(words)}Q", *words)


def tick(milliseconds=1):
    return bytes([TICK, milliseconds])


def scribble(where, word):
    return bytes([SCRIBBLE]) + struct.pack("<IQ", where, word)


def word(tag, rest):
    return tag | rest << 8


def stack(slot, *frames, base=0):
    return [word(STACK, len(frames) | HAS_SLOT << 8 | slot << 16), base, *frames]


def sized(slot, size):
    return slot << 40 | size


def module(slot, path):
    raw = path.encode()
    padded = raw + bytes(-len(raw) % 8)
    head = word(MODULE, slot | 0 << 16 | len(raw) << 24)
    return [head, 0x400000, 0x400000, 0x500000, *struct.unpack(f"<{len(padded) // 8}Q", padded)]


def text(kind, content):
    padded = content + bytes(-len(content) % 8)
    return [word(TEXT, kind | len(content) << 16), *struct.unpack(f"<{len(padded) // 8}Q", padded)]


START = join() + open_lane()
BLOCKS = send(0, word(TICKED, 1), *stack(3, 0x1000, 0x2000), word(ALLOC, 0x5000), sized(3, 100),
              word(ALLOC, 0x6000), sized(3, 40), word(FREE, 0x5000), word(REALLOC, 0x7000), sized(3, 90), 0x6000)

SEEDS = {
    "blocks": START + BLOCKS + tick() + send(0, word(TICKED, 2), word(FREE, 0x7000)) + tick() + bytes([CLOSE, 0]),
    "large": START + send(0, *stack(1, 0x10), word(ALLOC_LARGE, 0x5000), sized(1, 0), 1 << 41,
                          word(REALLOC_LARGE, 0x6000), sized(1, 0), 0x5000, 1 << 42) + tick(),
    "modules": START + send(0, *module(1, "/usr/bin/app"), *stack(1, 1 << 52 | 0x10, 1 << 52 | 0x20),
                            word(ALLOC, 0x5000), sized(1, 8)) + tick(),
    "texts": START + send(0, *text(1, b"/usr/bin/app"), *text(2, b"app\0-x\0"), *text(3, b"main"), *text(5, b"/lib/libc"),
                          *text(6, b"2.36"), *text(7, b"a mark"), *text(8, b"a phase"), word(TICKED, 1),
                          *text(7, b"another")) + tick(),
    "custom": START + send(0, *stack(1, 0x10), word(ALLOC, 0x5000), sized(1, 64), word(ALLOC, 1 << 55 | 0x5000),
                           sized(1, 8), word(FREE, 0x5000), word(FREE, 1 << 55 | 0x5000)) + tick(),
    "adhoc": START + send(0, *stack(1, 0x10), word(ALLOC, 0x5000), sized(1, 64), word(EVENT, 1), 500,
                          word(QUERY, 1), word(EVENT, 1), 0xffffffffffffffff,
                          word(QUERY, 2 | 1 << 32)) + tick() + tick(5) + tick(),
    "two_lanes": join(0) + join(1, 1) + open_lane(0, 0) + open_lane(1, 1) + BLOCKS +
                 send(1, word(TICKED, 1), *stack(2, 0x30), word(ALLOC, 0x5000), sized(2, 7), word(FREE, 0x6000)) +
                 tick() + tick(250),
    "dead": join(0, 0, False) + open_lane() + BLOCKS + tick(200) + tick(200) + join(0) + open_lane() + BLOCKS + tick(),
    "positions": START + BLOCKS + scribble(LANES_OFFSET + 64, 1 << 40) + tick() + scribble(LANES_OFFSET + 128, 8) + tick(),
    "slots": START + BLOCKS + scribble(4096, 0) + scribble(4104, 0xffffffff) + tick(),
    "state": START + BLOCKS + scribble(LANES_OFFSET + 4096, ~0 & 0xffffffffffffffff) + tick(),
    "pads": START + send(0, word(PAD, 2), 0, word(PAD, 1), *stack(1, 0x10), word(ALLOC, 1), sized(1, 1)) + tick(),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, seed in SEEDS.items():
        (folder / name).write_bytes(seed)


main()

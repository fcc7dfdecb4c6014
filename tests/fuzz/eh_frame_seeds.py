#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""eh_frame_seeds: writes the seeds of fuzz_eh_frame.

usage: tests/fuzz/eh_frame_seeds.py FOLDER

Each seed is one image with a header, a CIE and a function for each of the programs below, after the
two bytes that say where the header is and which pc is looked for (src/target/unwind/cfi/fuzz_eh_frame.c).
"""
import pathlib
import struct
import sys

IMAGE = 0x400000
FRAMES = 256  # offset of .eh_frame in the image; the header is at 0
PROGRAMS = [
    bytes.fromhex("410e10 8602 430d06"),                    # push fp; mov sp, fp
    bytes.fromhex("0f03767806 1006027600"),                 # gcc's realigned frame
    bytes.fromhex("0f0b770880003f1a3b2a332422"),            # the PLT
    bytes.fromhex("0a 410e20 0b 0710"),                     # remember, restore; the last frame
    bytes.fromhex("0f0477a00106 10070377a001 10060377f800 10100377a801"),  # a signal frame
    bytes.fromhex("050303 110c7e 140d02 150e7f 09030c 160f0130 2e10 2f0302"),  # all the rest
]
SEEDS = {
    "indexed": (b"zR", b"\x1b", True),
    "unindexed": (b"zR", b"\x1b", False),
    "signal": (b"zRS", b"\x1b", True),
    "personality": (b"zPLR", b"\x9b\0\0\0\0\x1b\x1b", True),
}


def entry(body):
    body += bytes(-(len(body) + 4) % 8)
    return struct.pack("<I", len(body)) + body


def image(letters, augmentation, indexed):
    cie = b"\0\0\0\0\x01" + letters + b"\0\x01\x78\x10"
    frames = entry(cie + bytes([len(augmentation)]) + augmentation + b"\x0c\x07\x08\x90\x01")
    rows = b""
    for i, program in enumerate(PROGRAMS):
        offset = FRAMES + len(frames)
        start = 0x1000 + i * 0x100
        frames += entry(struct.pack("<IiI", offset + 4 - FRAMES, start - (offset + 8), 0x80)
                        + b"\0" + program)
        rows += struct.pack("<ii", start, offset)
    header = bytes([1, 0x1b]) + (b"\x03\x3b" if indexed else b"\xff\xff")
    header += struct.pack("<i", FRAMES - 4)
    header += struct.pack("<I", len(PROGRAMS)) + rows if indexed else b""
    return header.ljust(FRAMES, b"\0") + frames + b"\0\0\0\0"


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, kind in SEEDS.items():
        (folder / name).write_bytes(b"\x00\x05" + image(*kind))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: MIT
"""The symbolizer and two strangers of its kind, asked the same and answering in the same shape.

An answer is {address: [(function, file, line), ...]}, innermost frame first; unknown is "" and 0.
"""
import os
import random
import re
import subprocess
from typing import Dict, List, NamedTuple, Tuple

Answer = Dict[int, List[Tuple[str, str, int]]]

SYMBOLIZE = os.path.join(os.environ["CAIRN_BUILD"], "tests", "symbols", "symbolize")
GAPS = ["none", "not resolved", "no file", "file changed", "damaged", "no debug info", "stripped"]


class Coverage(NamedTuple):
    asked: int
    functions: int
    lines: int
    inlined: int
    gap: str
    source: str
    advice: str


def run(command, addresses, timeout=120):
    text = "".join(f"{address:#x}\n" for address in addresses)
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace",
                          timeout=timeout, check=False)
    assert done.returncode == 0, (command, done.returncode, done.stderr)
    return done.stdout.splitlines()


def counts_of(answer):
    """What the coverage counts: addresses, and those with a function, a line, an inlined function."""
    chains = [chain for chain in answer.values() if chain]
    return [len(answer), sum(chain[-1][0] != "" for chain in chains),
            sum(chain[0][1] != "" and chain[0][2] != 0 for chain in chains), sum(len(chain) > 1 for chain in chains)]


def ask_ours(file, addresses, *options) -> Tuple[Answer, Coverage]:
    answer: Answer = {}
    frames: list = []
    for line in run([SYMBOLIZE, *options, file], addresses):
        fields = line.split("\t")
        if len(fields) == 1:
            frames = answer.setdefault(int(line, 16), [])
        elif fields[0] == "coverage":
            numbers = [int(field) for field in fields[1:6]]
            assert numbers[:4] == counts_of(answer) or len(answer) < len(addresses)
            return answer, Coverage(*numbers[:4], GAPS[numbers[4]], *fields[6:])
        else:
            frames.append((fields[0], fields[1], int(fields[2])))
    raise AssertionError("no coverage line")


def parse_gnu(lines) -> Answer:
    """The format that addr2line prints and llvm-symbolizer imitates."""
    answer: Answer = {}
    frames: list = []
    lines = [line for line in lines if line]
    at = 0
    while at < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[at]):
            frames = answer.setdefault(int(lines[at], 16), [])
            at += 1
            continue
        place = re.fullmatch(r"(.*):(\d+|\?)( \(discriminator \d+\))?", lines[at + 1])
        file = "" if place[1] == "??" else place[1]
        function = "" if lines[at] == "??" else lines[at]
        frames.append((function, file, 0 if place[2] == "?" else int(place[2])))
        at += 2
    return answer


def ask_addr2line(file, addresses) -> Answer:
    return parse_gnu(run(["addr2line", "-a", "-i", "-f", "-C", "-e", file], addresses))


def ask_llvm(file, addresses) -> Answer:
    return parse_gnu(run(["llvm-symbolizer-14", "--output-style=GNU", "--addresses", "-i", "-f", "-C",
                          "-e", file], addresses))


def function_addresses(file, count, seed=1) -> List[int]:
    """Addresses inside functions that have a size; between them lies only padding, which has no name
    although addr2line gives it that of the function before."""
    listing = subprocess.run(["nm", "-S", "--defined-only", file], capture_output=True, text=True,
                             check=True).stdout
    addresses = set()
    for line in listing.splitlines():
        symbol = re.fullmatch(r"([0-9a-f]+) ([0-9a-f]+) [tTwWi] .*", line)
        if symbol:
            begin, size = int(symbol[1], 16), int(symbol[2], 16)
            addresses.update(range(begin, begin + size))
    ordered = sorted(addresses)
    return sorted(random.Random(seed).sample(ordered, min(count, len(ordered))))


def places(frames):
    """What must agree between any two symbolizers: depth, file names and lines."""
    return [(os.path.basename(file), line) for _, file, line in frames]


def plain(name) -> str:
    """A name without what symbolizers spell differently: blanks, and marks of copied functions."""
    return re.sub(r"\[clone [^]]*\]|\s", "", name)

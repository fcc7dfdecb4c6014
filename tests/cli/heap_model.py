# SPDX-License-Identifier: MIT
"""heap_model: a naive model of a run: a list of blocks, each with its stack, size and times.

Every figure is a sum over blocks, computed here without any of cairn's tables. The tests compare
cairn's answers with it. The model also draws itself as a recording.
"""
import collections
import dataclasses
import random

SLICE_MS = 100
NAMES = ("main", "load", "parse", "cache", "emit", "walk", "grow")


@dataclasses.dataclass(frozen=True)
class Block:
    thread: str
    stack: tuple  # of frames as drawn, outermost first
    size: int
    born_ms: int
    freed_ms: object = None  # None: never
    temporary: bool = False

    @property
    def site(self):
        return self.stack[-1]

    def lives_at(self, time_ms):
        return self.born_ms <= time_ms and (self.freed_ms is None or self.freed_ms > time_ms)


def bucket_of(value):
    """docs/format/recording.md: one bucket for each value below 8, then four buckets per octave."""
    if value < 8:
        return value
    octave = value.bit_length() - 1
    return 8 + (octave - 3) * 4 + (value >> (octave - 2)) % 4


def within(value, low, high):
    """Return whether the value is in a range that was rounded outwards to whole buckets."""
    return bucket_of(low) <= bucket_of(value) <= (10 ** 9 if high is None else bucket_of(high))


class Heap:
    """The blocks of one run."""

    def __init__(self, blocks, runtime_ms=2000):
        self.blocks = blocks
        self.runtime_ms = runtime_ms
        moments = sorted({0} | {b.born_ms for b in blocks})
        self.peak_ms = max(moments, key=lambda t: (self.live_bytes(blocks, t), -t))

    @staticmethod
    def live_bytes(blocks, time_ms):
        return sum(b.size for b in blocks if b.lives_at(time_ms))

    def costs(self, blocks=None):
        """All additive costs of some of the blocks."""
        blocks = self.blocks if blocks is None else blocks
        freed = [b for b in blocks if b.freed_ms is not None]
        leaked = [b for b in blocks if b.freed_ms is None]
        peak = [b for b in blocks if b.lives_at(self.peak_ms)]
        temporary = [b for b in blocks if b.temporary]
        return {"allocations": len(blocks), "allocated_bytes": sum(b.size for b in blocks),
                "frees": len(freed), "freed_bytes": sum(b.size for b in freed),
                "temporary": len(temporary), "temporary_bytes": sum(b.size for b in temporary),
                "peak_blocks": len(peak), "peak_bytes": sum(b.size for b in peak),
                "live_blocks": len(leaked), "live_bytes": sum(b.size for b in leaked)}

    def by(self, key):
        groups = collections.defaultdict(list)
        for block in self.blocks:
            groups[key(block)].append(block)
        return {name: self.costs(blocks) for name, blocks in groups.items()}

    def draw(self):
        """The text that draw_recording reads."""
        lines = ["process app"]
        for thread in sorted({b.thread for b in self.blocks}):
            lines.append(f"thread {thread}")
            stacks = sorted({b.stack for b in self.blocks if b.thread == thread})
            for stack in stacks:
                own = [b for b in self.blocks if (b.thread, b.stack) == (thread, stack)]
                lines += self.draw_row(stack, own)
        lines += ["!program /opt/app", "!command_line app --run", f"!runtime_ms {self.runtime_ms}",
                  f"!peak_time_ms {self.peak_ms}"]
        return "\n".join(lines) + "\n"

    def draw_row(self, stack, blocks):
        costs = self.costs(blocks)
        own_peak = max(self.live_bytes(blocks, b.born_ms) for b in blocks)
        order = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary",
                 "temporary_bytes", "peak_blocks", "peak_bytes")
        yield ";".join(stack) + " " + " ".join(str(costs[c]) for c in order) + f" {own_peak}"
        cells = collections.defaultdict(lambda: [0] * 5)
        buckets = {"size": collections.defaultdict(lambda: [0, 0]),
                   "life": collections.defaultdict(lambda: [0, 0])}
        cohorts = collections.defaultdict(lambda: [0, 0])
        for block in blocks:
            born = block.born_ms // SLICE_MS
            add(cells[born], 1, block.size, 0, 0, block.temporary)
            add(buckets["size"][bucket_of(block.size)], 1, block.size)
            freed = "-"
            if block.freed_ms is not None:
                freed = block.freed_ms // SLICE_MS
                add(cells[freed], 0, 0, 1, block.size, 0)
                add(buckets["life"][bucket_of(block.freed_ms - block.born_ms)], 1, block.size)
            if freed != born:
                add(cohorts[(born, freed)], 1, block.size)
        for slice_number, cell in sorted(cells.items()):
            yield f"@{slice_number} " + " ".join(map(str, cell))
        for kind, table in buckets.items():
            for bucket, (count, size) in sorted(table.items()):
                yield f"{kind} {bucket} {count} {size}"
        for (born, freed), (count, size) in sorted(cohorts.items(), key=str):
            yield f"cohort {born} {freed} {count} {size}"


def add(amounts, *more):
    for index, value in enumerate(more):
        amounts[index] += int(value)


def frame(name, line=None, module="app"):
    return f"/opt/{module}!{name}(/src/{name}.c:{line or NAMES.index(name) * 10 + 1})"


def random_heap(seed, count=900, runtime_ms=2000):
    """A run of some threads and stacks; births at different times, so that the peak is one
    moment."""
    chance = random.Random(seed)
    stacks = []
    for _ in range(30):
        depth = chance.randint(1, 4)
        path = ["main"] + [chance.choice(NAMES[1:]) for _ in range(depth)]
        stacks.append(tuple(frame(name) for name in path))
    births = sorted(chance.sample(range(runtime_ms), count))
    blocks = []
    for born_ms in births:
        stack = chance.choice(stacks)
        size = chance.choice((16, 24, 100, 4096, 70000)) if hash_of(stack) % 3 else 64
        freed_ms = None
        if chance.random() < 0.8:
            freed_ms = min(born_ms + chance.choice((0, 1, 5, 40, 300, 900)), runtime_ms - 1)
        temporary = freed_ms is not None and freed_ms - born_ms <= 1 and chance.random() < 0.5
        blocks.append(Block(chance.choice(("main", "worker-1", "worker-2")), stack, size, born_ms,
                            freed_ms, temporary))
    return Heap(blocks, runtime_ms)


def hash_of(stack):
    """A hash that is equal in every run of Python."""
    return sum(map(ord, "".join(stack)))

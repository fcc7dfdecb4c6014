#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mini_reader: prints a recording as JSON, read only as docs/format/recording.md specifies.

usage: tools/mini_reader.py FILE

It checks the specification against the C reader: it was written from that page alone and shares no
code with src/recording. It is strict where the C reader repairs: a violation of the format is an
error; a truncated file is read up to its end. Needs only Python and the `zstd` program (Debian's
package zstd). A small recording takes tenths of a second.

Output: {"generation", "complete", and each table by name: a list of entries (of texts for
"strings"; each byte is the character of the same number)}.
"""
import json
import struct
import subprocess
import sys

MAGIC = b"\x8bcairn\r\n"
END_MAGIC = b"\n\rnriac\x8b"
MASK = (1 << 64) - 1
NONE = 0xFFFFFFFF

# chunk type: (name, one field per line: id, name, bits, default)
TABLES = {
    "META": ("meta", [
        (1, "state", 32, 0), (2, "page_bytes", 32, 0), (3, "cpu_count", 32, 0), (4, "pid", 32, 0),
        (5, "exit_status", 32, NONE), (6, "max_frames", 32, 0), (7, "start_unix_ns", 64, 0),
        (8, "runtime_ms", 64, 0), (9, "memory_bytes", 64, 0), (10, "checkpoint_count", 64, 0),
        (11, "tool_version", 32, 0), (12, "host", 32, 0), (13, "kernel", 32, 0),
        (14, "libc", 32, 0), (15, "program", 32, 0), (16, "command_line", 32, 0),
        (17, "source_format", 32, 0), (18, "slice_ms", 64, 0),
        (19, "checkpoint_interval_ms", 64, 0),
        (20, "unknown", 32, 0), (21, "suppressions", 32, 0), (22, "oom_limit_bytes", 64, 0)]),
    "TOTL": ("totals", [
        (1, "allocations", 64, 0), (2, "allocated_bytes", 64, 0), (3, "frees", 64, 0),
        (4, "freed_bytes", 64, 0), (5, "temporary", 64, 0), (6, "temporary_bytes", 64, 0),
        (7, "peak_bytes", 64, 0), (8, "peak_error_bytes", 64, 0), (9, "peak_time_ms", 64, 0),
        (10, "peak_blocks", 64, 0), (11, "unknown_frees", 64, 0), (12, "events", 64, 0),
        (13, "unsampled_allocations", 64, 0), (14, "unsampled_bytes", 64, 0),
        (15, "unsampled_frees", 64, 0), (16, "sampled_allocations", 64, 0),
        (17, "represented_allocations", 64, 0), (18, "represented_bytes", 64, 0),
        (19, "max_weight", 64, 0), (20, "peak_standard_error_bytes", 64, 0),
        (21, "peak_at_least_bytes", 64, 0), (22, "sample_bytes", 64, 0),
        (23, "interval_bytes", 64, 0), (24, "peak_flight_bytes", 64, 0)]),
    "CNTR": ("counters", [
        (1, "name", 32, 0), (2, "text", 32, 0), (3, "kind", 32, 0), (4, "value", 64, 0)]),
    "PROC": ("processes", [
        (1, "pid", 32, 0), (2, "parent_pid", 32, 0), (3, "parent", 32, NONE), (4, "epoch", 32, 0),
        (5, "flags", 32, 0), (6, "exit_status", 32, NONE), (7, "start_ms", 64, 0),
        (8, "end_ms", 64, 0), (9, "peak_bytes", 64, 0), (10, "peak_rss_bytes", 64, 0),
        (11, "executable", 32, 0), (12, "command_line", 32, 0), (13, "allocator", 32, 0),
        (14, "left_ms", 64, 0), (15, "killed_threads", 64, 0), (16, "runtime", 32, 0),
        (17, "end_error_ms", 64, 0)]),
    "THRD": ("threads", [
        (1, "process", 32, NONE), (2, "thread_id", 32, 0), (3, "flags", 32, 0),
        (4, "merged_count", 32, 1), (5, "start_ms", 64, 0), (6, "end_ms", 64, 0),
        (7, "name", 32, 0)]),
    "MODS": ("modules", [
        (1, "path", 32, 0), (2, "build_id", 32, 0), (3, "symbol_source", 32, 0),
        (4, "symbol_advice", 32, 0), (5, "is_executable", 32, 0), (6, "frames", 32, 0),
        (7, "frames_with_function", 32, 0), (8, "frames_with_line", 32, 0)]),
    "SLIC": ("slices", [
        (1, "allocations", 64, 0), (2, "allocated_bytes", 64, 0), (3, "frees", 64, 0),
        (4, "freed_bytes", 64, 0), (5, "temporary", 64, 0), (6, "live_bytes", 64, 0),
        (7, "live_max_bytes", 64, 0)]),
    "RSSS": ("rss_samples", [
        (1, "time_ms", 64, 0), (2, "process", 32, NONE), (3, "rss_bytes", 64, 0),
        (4, "anonymous_bytes", 64, 0), (5, "file_bytes", 64, 0), (6, "shmem_bytes", 64, 0),
        (7, "swap_bytes", 64, 0), (8, "minor_faults", 64, 0), (9, "major_faults", 64, 0),
        (10, "break_bytes", 64, 0), (11, "data_bytes", 64, 0), (12, "mapped_bytes", 64, 0),
        (13, "repeated_anonymous_bytes", 64, 0), (14, "repeated_file_bytes", 64, 0),
        (15, "repeated_shmem_bytes", 64, 0), (16, "doubted_bytes", 64, 0)]),
    "FRAM": ("frames", [
        (1, "module", 32, NONE), (2, "flags", 32, 0), (3, "offset", 64, 0),
        (4, "symbol_first", 32, 0), (5, "symbol_count", 32, 0),
        (6, "function_start", 64, 0)]),
    "NODE": ("nodes", [(1, "parent", 32, NONE), (2, "frame", 32, NONE)]),
    "ROWS": ("rows", [
        (1, "thread", 32, NONE), (2, "node", 32, NONE), (3, "allocations", 64, 0),
        (4, "allocated_bytes", 64, 0), (5, "frees", 64, 0), (6, "freed_bytes", 64, 0),
        (7, "temporary", 64, 0), (8, "temporary_bytes", 64, 0), (9, "peak_blocks", 64, 0),
        (10, "peak_bytes", 64, 0), (11, "own_peak_bytes", 64, 0)]),
    "SYMB": ("symbols", [(1, "function", 32, 0), (2, "file", 32, 0), (3, "line", 32, 0)]),
    "CELL": ("cells", [
        (1, "row", 32, NONE), (2, "slice", 32, 0), (3, "allocations", 64, 0),
        (4, "allocated_bytes", 64, 0), (5, "frees", 64, 0), (6, "freed_bytes", 64, 0),
        (7, "temporary", 64, 0)]),
    "SIZB": ("size_buckets", [
        (1, "row", 32, NONE), (2, "bucket", 32, 0), (3, "count", 64, 0), (4, "bytes", 64, 0)]),
    "LIFB": ("lifetime_buckets", [
        (1, "row", 32, NONE), (2, "bucket", 32, 0), (3, "count", 64, 0), (4, "bytes", 64, 0)]),
    "COHO": ("cohorts", [
        (1, "row", 32, NONE), (2, "born_slice", 32, 0), (3, "freed_slice", 32, NONE),
        (4, "blocks", 32, 0), (5, "bytes", 64, 0)]),
    "MAPS": ("mappings", [
        (1, "process", 32, NONE), (2, "node", 32, NONE), (3, "kind", 32, 0),
        (4, "mappings", 64, 0), (5, "mapped_bytes", 64, 0), (6, "unmapped_bytes", 64, 0),
        (7, "own_peak_bytes", 64, 0)]),
    "ADHC": ("adhoc", [
        (1, "process", 32, NONE), (2, "node", 32, NONE), (3, "events", 64, 0),
        (4, "weight", 64, 0)]),
    "RALC": ("reallocs", [
        (1, "row", 32, NONE), (2, "reallocs", 64, 0), (3, "moved_bytes", 64, 0),
        (4, "grown_bytes", 64, 0), (5, "largest_bytes", 64, 0)]),
    "LOOK": ("memory_snapshots", [
        (1, "time_ms", 64, 0), (2, "process", 32, NONE), (3, "flags", 32, 0),
        (4, "rss_bytes", 64, 0), (5, "swap_bytes", 64, 0), (6, "requested_bytes", 64, 0),
        (7, "live_bytes", 64, 0), (8, "rounding_bytes", 64, 0), (9, "kept_bytes", 64, 0),
        (10, "mapped_bytes", 64, 0), (11, "stack_bytes", 64, 0), (12, "file_bytes", 64, 0),
        (13, "shared_bytes", 64, 0), (14, "own_bytes", 64, 0), (15, "rest_bytes", 64, 0),
        (16, "empty_page_bytes", 64, 0), (17, "sparse_page_bytes", 64, 0),
        (18, "sparse_block_bytes", 64, 0), (19, "repeated_live_bytes", 64, 0),
        (20, "repeated_rounding_bytes", 64, 0), (21, "repeated_kept_bytes", 64, 0),
        (22, "repeated_mapped_bytes", 64, 0), (23, "repeated_stack_bytes", 64, 0),
        (24, "repeated_file_bytes", 64, 0), (25, "repeated_shared_bytes", 64, 0),
        (26, "repeated_own_bytes", 64, 0), (27, "repeated_rest_bytes", 64, 0)]),
    "PART": ("parts", [
        (1, "snapshot", 32, NONE), (2, "kind", 32, 0), (3, "node", 32, NONE), (4, "path", 32, 0),
        (5, "areas", 32, 0), (6, "is_estimate", 32, 0), (7, "virtual_bytes", 64, 0),
        (8, "rss_bytes", 64, 0), (9, "swap_bytes", 64, 0), (10, "repeated_bytes", 64, 0),
        (11, "allocator", 32, 0), (12, "released_bytes", 64, 0), (13, "huge_bytes", 64, 0),
        (14, "blank_bytes", 64, 0)]),
    "SURV": ("survivors", [
        (1, "snapshot", 32, NONE), (2, "node", 32, NONE), (3, "blocks", 64, 0),
        (4, "block_bytes", 64, 0), (5, "held_bytes", 64, 0), (6, "oldest_ms", 64, 0),
        (7, "newest_ms", 64, 0)]),
    "BLCK": ("blocks", [
        (1, "address", 64, 0), (2, "size_bytes", 64, 0), (3, "born_ms", 64, 0),
        (4, "freed_ms", 64, 0), (5, "row", 32, NONE), (6, "flags", 32, 1)]),
    "MARK": ("marks", [(1, "time_ms", 64, 0), (2, "kind", 32, 0), (3, "text", 32, 0)]),
    "UNRC": ("unrecorded", [
        (1, "program", 32, 0), (2, "reason", 32, 0), (3, "text", 32, 0), (4, "execs", 64, 0),
        (5, "descendants", 64, 0), (6, "pid", 32, 0)]),
    "HOOK": ("hooks", [
        (1, "module", 32, 0), (2, "function", 32, 0), (3, "allocator", 32, 0), (4, "reason", 32, 0),
        (5, "processes", 32, 0)]),
}

# Fields that may be stored as shares: id: id of the blocks.
SHARES = {"ROWS": {6: 5, 8: 7, 10: 9}, "CELL": {4: 3, 6: 5}, "COHO": {5: 4}, "SIZB": {4: 3},
          "LIFB": {4: 3}}


class FormatError(Exception):
    """The bytes violate the format."""


def require(condition, what):
    if not condition:
        raise FormatError(what)


def xxh64(data):
    """XXH64 with seed 0, from its public description."""
    p1, p2, p3, p4, p5 = (11400714785074694791, 14029467366897019727, 1609587929392839161,
                          9650029242287828579, 2870177450012600261)

    def rotate(x, r):
        return (x << r | x >> (64 - r)) & MASK

    def mix(lane, word):
        return rotate((lane + word * p2) & MASK, 31) * p1 & MASK

    at, size = 0, len(data)
    if size >= 32:
        lanes = [(p1 + p2) & MASK, p2, 0, -p1 & MASK]
        while at + 32 <= size:
            words = struct.unpack_from("<4Q", data, at)
            lanes = [mix(lane, word) for lane, word in zip(lanes, words)]
            at += 32
        h = sum(rotate(lane, r) for lane, r in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ mix(0, lane)) * p1 + p4) & MASK
    else:
        h = p5
    h = (h + size) & MASK
    while at + 8 <= size:
        h = (rotate(h ^ mix(0, struct.unpack_from("<Q", data, at)[0]), 27) * p1 + p4) & MASK
        at += 8
    if at + 4 <= size:
        h = (rotate(h ^ struct.unpack_from("<I", data, at)[0] * p1 & MASK, 23) * p2 + p3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * p5 & MASK, 11) * p1 & MASK
    h = (h ^ h >> 33) * p2 & MASK
    h = (h ^ h >> 29) * p3 & MASK
    return h ^ h >> 32


class Chunk:
    def __init__(self, offset, head, body):
        (kind, self.flags, self.stored, self.raw, self.generation, self.part,
         self.hash) = struct.unpack("<4sIQQIIQ", head)
        self.offset, self.head, self.body = offset, head, body
        self.kind = kind.decode("ascii")

    def payload(self):
        require(xxh64(self.body) == self.hash, f"{self.kind}: wrong hash")
        require(self.flags & 0xFFFE == 0, f"{self.kind}: unknown flags")
        require(self.raw <= 16 << 20, f"{self.kind}: too long")
        if self.flags & 1 == 0:
            require(self.stored == self.raw, f"{self.kind}: lengths differ")
            return self.body
        require(self.stored < self.raw, f"{self.kind}: not smaller for being compressed")
        raw = subprocess.run(["zstd", "-dcq"], input=self.body, stdout=subprocess.PIPE,
                             check=True).stdout
        require(len(raw) == self.raw, f"{self.kind}: wrong raw length")
        return raw


def read_header(data):
    require(len(data) >= 24 and data[:8] == MAGIC, "not a recording")
    major, _, flags, check = struct.unpack_from("<HHIQ", data, 8)
    require(check == xxh64(data[:16]), "the header is damaged")
    require(major <= 2 and flags & 0xFFFF == 0, "a newer version")


def read_footer(data):
    """The offset of the contents chunk, or None if the file has no footer."""
    contents, size, check, magic = struct.unpack_from("<QQQ8s", data, len(data) - 32)
    is_there = magic == END_MAGIC and check == xxh64(data[-32:-16]) and size == len(data)
    return contents if is_there else None


def walk(data):
    """The chunks from the first to the end, or to the end of a truncated file."""
    contents = read_footer(data) if len(data) >= 56 else None
    end = len(data) - (32 if contents is not None else 0)
    chunks, at = [], 24
    while at + 48 <= end:
        head = data[at:at + 40]
        require(struct.unpack_from("<Q", data, at + 40)[0] == xxh64(head), f"bad head at {at}")
        stored = struct.unpack_from("<Q", head, 8)[0]
        if at + 48 + stored > end:
            break
        chunks.append(Chunk(at, head, data[at + 48:at + 48 + stored]))
        at += 48 + stored
    if contents is not None:
        require(at == end, "bytes that belong to no chunk")
        check_contents(chunks, contents)
    return chunks, contents is not None


def check_contents(chunks, offset):
    table = chunks.pop()
    require(table.kind == "CONT" and table.offset == offset, "no table of contents")
    lines = b"".join(struct.pack("<Q", chunk.offset) + chunk.head for chunk in chunks)
    require(table.payload() == lines, "the table of contents does not fit the chunks")


def is_whole(snapshot):
    return (snapshot[0].kind == "SBEG" and snapshot[-1].kind == "SEND" and
            [chunk.part for chunk in snapshot] == list(range(len(snapshot))))


def choose_snapshot(chunks):
    snapshots = {}
    for chunk in chunks:
        if chunk.generation != 0:
            snapshots.setdefault(chunk.generation, []).append(chunk)
    require(snapshots, "no snapshot")
    whole = [generation for generation in snapshots if is_whole(snapshots[generation])]
    generation = max(whole) if whole else max(snapshots, key=lambda g: len(snapshots[g]))
    snapshot = snapshots[generation]
    if is_whole(snapshot):
        end = struct.unpack("<QII", snapshot[-1].payload())
        require(end == (snapshot[0].offset, len(snapshot) - 1, generation), "SEND contradicts")
    return generation, snapshot


def leb128(data, at):
    value, shift = 0, 0
    while True:
        require(at < len(data) and shift < 70, "a number is not whole")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            require(value <= MASK, "a number is over 64 bits")
            return value, at


def unzigzag(number):
    return (number >> 1) ^ (-(number & 1) & MASK)


def decode(data, encoding, first, count, reference, shares):
    numbers, at = [], 0
    while at < len(data):
        number, at = leb128(data, at)
        numbers.append(number)
    require(len(numbers) == (1 if encoding == 1 else count), "not a number for each entry")
    if encoding == 1:
        return numbers * count
    if encoding == 2:
        return numbers
    values, before = [], 0
    for i, number in enumerate(numbers):
        base = {3: before, 4: reference[i] if encoding == 4 else 0, 5: first + i,
                7: shares[i] if encoding == 7 else 0}[encoding]
        step = unzigzag(number)
        before = (base + step if encoding == 3 else base - step) & MASK
        values.append(before)
    return values


def lowest(bucket):
    """The lowest value in a bucket of a histogram."""
    if bucket < 8:
        return bucket
    return MASK if bucket == 252 else (4 + bucket % 4) << (bucket // 4 - 1)


def share(kind, blocks, columns, i, rows):
    """The bytes of the blocks of entry i if they have the mean size."""
    if kind == "SIZB":
        low = columns[2][i] if 2 in columns else 0
        middle = lowest(low) + (lowest(low + 1) - lowest(low)) // 2 if low < 252 else 0
        return blocks * middle & MASK
    if kind == "ROWS":
        of, size = (columns[ident][i] if ident in columns else 0 for ident in (3, 4))
    else:
        row = columns[1][i] if 1 in columns else NONE
        of, size = ((rows[row]["allocations"], rows[row]["allocated_bytes"])
                    if row < len(rows) else (0, 0))
    return 0 if of == 0 else (blocks * (size // of) + (blocks * (size % of) & MASK) // of) & MASK


def shares_of(kind, ident, columns, count, rows):
    if ident not in SHARES.get(kind, {}):
        return None
    blocks = columns.get(SHARES[kind][ident], [0] * count)
    return [share(kind, blocks[i], columns, i, rows) for i in range(count)]


def columns_of(payload, expected_first, kind="", rows=()):
    """(entries, {id: values, or bytes for text}) of a table's chunk."""
    first, count, column_count = struct.unpack_from("<QII", payload)
    require(first == expected_first and 1 <= count <= 65536, "not the next group of its table")
    columns, at = {}, 16
    for _ in range(column_count):
        ident, encoding, reference, _, size = struct.unpack_from("<BBBBI", payload, at)
        data = payload[at + 8:at + 8 + size]
        require(len(data) == size, "a column is not whole")
        shares = shares_of(kind, ident, columns, count, rows) if encoding == 7 else None
        columns[ident] = (data if encoding == 6 else
                          decode(data, encoding, first, count, columns.get(reference), shares))
        at += 8 + size
    require(at == len(payload), "bytes after the last column")
    return count, columns


def strings_of(payload, known):
    count, columns = columns_of(payload, len(known))
    lengths, text = columns[1], columns[2]
    require(sum(lengths) == len(text), "lengths and text of strings differ")
    strings, at = [], 0
    for i in range(count):
        strings.append(text[at:at + lengths[i]].decode("latin-1"))
        at += lengths[i]
    return strings


def entries_of(payload, fields, known, kind="", rows=()):
    count, columns = columns_of(payload, len(known), kind, rows)
    for ident, name, bits, default in fields:
        columns.setdefault(ident, [default] * count)
        require(all(value >> bits == 0 for value in columns[ident]), f"{name} does not fit")
    return [{name: columns[ident][i] for ident, name, _, _ in fields} for i in range(count)]


def read(data):
    read_header(data)
    chunks, is_finished = walk(data)
    generation, snapshot = choose_snapshot(chunks)
    tables = {name: [] for name, _ in TABLES.values()}
    tables["strings"] = []
    stored = {}
    for chunk in snapshot:
        kind = chunk.kind
        if kind == "STRS":
            tables["strings"] += strings_of(chunk.payload(), tables["strings"])
            stored[kind] = len(tables["strings"])
        elif kind in TABLES:
            name, fields = TABLES[kind]
            tables[name] += entries_of(chunk.payload(), fields, tables[name], kind, tables["rows"])
            stored[kind] = len(tables[name])
    announced = announcement(snapshot[0].payload())
    if is_whole(snapshot):
        require(announced == stored, "not as announced")
    return {"generation": generation, "complete": is_finished and is_whole(snapshot),
            **tables}


def announcement(payload):
    return {kind.decode("ascii"): count for kind, _, count in struct.iter_unpack("<4sIQ", payload)}


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: mini_reader.py FILE")
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    try:
        json.dump(read(data), sys.stdout)
    except (FormatError, struct.error, KeyError, TypeError) as error:
        sys.exit(f"mini_reader: {sys.argv[1]}: {error!r}")
    print()


if __name__ == "__main__":
    main()

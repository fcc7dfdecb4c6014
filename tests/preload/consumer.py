# SPDX-License-Identifier: MIT
"""consumer: a naive recorder, written from src/session/{layout,wire,session_env}.h alone.

Makes a session, runs programs under the preload library, drains every lane and decodes it, without
any of cairn's own code: the oracle of the preload library's tests. Every name of every stack node is
recomputed and every rule of wire.h is asserted while decoding. Slow and simple on purpose.

The session asks for a record of each block that is allocated or freed, as around a peak that never
ends. So there are two accounts of each row: its blocks one by one, and the sums in the threads' books.
"""
import ctypes
import gc
import mmap
import os
import re
import socket
import struct
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

BUILD = os.environ.get("CAIRN_BUILD", "build")
LIBRARY = os.path.join(BUILD, "lib/cairn/libcairn_preload.so")
PROGRAMS = os.path.join(BUILD, "tests/preload/programs")
DEADLINE_SECONDS = 120  # a full ring takes seconds to decode on a busy machine
EMULATOR = os.environ.get("CAIRN_EMULATOR", "").split()  # what programs of another machine run under

PROCESSES, LANES = 1024, 4096
PROCESS_OFFSET, LANES_OFFSET, STRIDE = 4096, 256 << 10, (1 << 20) + (256 << 10)
RING_MIN, RING_MAX, RING_OFFSET = 16 << 10, 512 << 10, STRIDE - (512 << 10)
SESSION_BYTES = LANES_OFFSET + LANES * STRIDE
MAGIC, VERSION = 0x6E7269616373, 27
STATE_WORD, CLOCK, WAKE, COUNTERS, BITMAP = 32 // 4, 64 // 8, 128 // 4, 192 // 8, None
COUNTER_NAMES = re.findall(
    r"^ +X\((\w+),",
    open(os.path.join(os.path.dirname(__file__), "../../src/session/layout.h")).read(), re.M)
BITMAP = (192 + 8 * len(COUNTER_NAMES) + 63) // 64 * 64 // 8
ENDED_LANES, RECYCLED_LANES = 2 * (BITMAP + 64), 2 * (BITMAP + 64) + 1
NAMESPACE, MAIN_PID = 36 // 4, 2 * (BITMAP + 64) + (64 + 16 + 4 + 100 + 16 + 4) // 4
SEEN_PEAK = ((4 * MAIN_PID + 12 + 192 + 63) // 64 * 64 + 3 * 64) // 8  # behind the address and the shared sum
NO_BIRTH_IS_LATER = 0xFFFFFFFF
UNKNOWN_FREES, BOOK_MARK = 352 // 8, 280 // 8
BOOK_OFFSET, BOOK_COUNTERS, COUNTER_BYTES = RING_OFFSET - (192 << 10), 512, 384
WORDS_OFFSET, WORDS_MAGIC = SESSION_BYTES, 0x7364726F77
REGION_BYTES = (4 + 8 + 8 << 14) + (8 << 18) + (8 << 21) + (8 << 23)  # of words, for 64 MiB
FILE_BYTES = WORDS_OFFSET + (256 << 10) + 16384 * REGION_BYTES
LOSSES = COUNTER_NAMES[:COUNTER_NAMES.index("corrupt_counter") + 1]

FOLLOW, CHECK_UNWIND, BLOCKS = 1, 4, 32
RUNNING, ENDED, ABANDONED = 1, 2, 3
FORKED, OWN_ALLOCATOR, OF_ALL = 1, 2, 16 | 64  # each notes its exit, and tells what its environment has
PAD, TICK, STACK, MODULE, TEXT, MAPPING, GREW = 1, 2, 8, 9, 10, 16, 27
BOOK, ROW, BLOCK_BORN, BLOCK_FREED = range(28, 32)
HAS_BEFORE, HAS_TEMPORARY = 1, 2
MAPPING_KINDS = {1: "anonymous", 2: "file", 3: "shared", 4: "break", 5: "same"}
GREW_MIN = 4096
TEXT_KINDS = {1: "executable", 2: "command_line", 3: "thread_name", 4: "working_directory",
              5: "allocator", 6: "libc"}
MASK64 = (1 << 64) - 1
CUT = 0xFFF << 52

SYS_FUTEX, FUTEX_WAKE = {"x86_64": 202, "aarch64": 98}[os.uname().machine], 1
LIBC = ctypes.CDLL(None, use_errno=True)
FETCH_AND = getattr(ctypes.CDLL("libatomic.so.1"), "__atomic_fetch_and_8")


def stack_name(parent, pc):
    """base/hash.h, again."""
    product = (parent ^ 0x9E3779B97F4A7C15) * ((((pc << 1) | 1) * 0xD6E8FEB86659FD93) & MASK64)
    name = (product & MASK64) ^ (product >> 64)
    return name or 1


@dataclass
class Event:
    """One heap event; `frames` of an allocation innermost first, as (path of the module or None, offset)."""
    kind: str
    address: int
    size: int
    frames: list
    tick: int
    unfinished: bool = False


@dataclass
class Mapping:
    """One change of mappings; `kind` is None if nothing was mapped."""
    kind: str
    address: int
    size: int
    number: int
    old_address: int
    old_size: int
    old_number: int
    frames: list


@dataclass
class Process:
    pid: int
    parent: int
    flags: int
    events: list = field(default_factory=list)
    mappings: list = field(default_factory=list)
    texts: dict = field(default_factory=dict)
    threads: set = field(default_factory=set)
    thread_names: dict = field(default_factory=dict)
    rows: dict = field(default_factory=dict)
    lanes: list = field(default_factory=list)
    # (row, what is counted) -> blocks, bytes: what books say, and what the single blocks add up to
    booked: Counter = field(default_factory=Counter)
    listed: Counter = field(default_factory=Counter)

    @property
    def unknown_frees(self):
        """Frees of blocks without a word: another process allocated them, or nobody."""
        return sum(lane.unknown_frees for lane in self.lanes)

    def books_are_right(self, but=None):
        """Whether the sums are those of the blocks, `but` for what is counted otherwise. Call it when the session is
        over."""
        booked, listed = ({key: n for key, n in counter.items() if key[1] != but and n != 0}
                          for counter in (self.booked, self.listed))
        return booked == listed and bool(booked)


def cell(word):
    """Blocks and bytes."""
    return word & 0xFFFF, word >> 16


def count(counter, row, what, blocks, size):
    counter[row, what, "blocks"] += blocks
    counter[row, what, "bytes"] += size


class Lane:
    """The decoder of one lane, and the recorder's side of its dictionaries."""

    def __init__(self, header, process):
        self.thread = header
        self.process = process
        self.tick = None
        self.slots = {}
        self.nodes = {0: None}
        self.modules = {}
        self.text_parts = {}
        self.latest = None
        self.unknown_frees = 0
        process.lanes.append(self)

    def pc_of(self, frame):
        slot, offset = frame >> 52, frame & ((1 << 52) - 1)
        if frame == CUT:
            return CUT
        return offset if slot == 0 else (self.modules[slot][0] + offset) & MASK64

    def place_of(self, frame):
        slot, offset = frame >> 52, frame & ((1 << 52) - 1)
        if frame == CUT:
            return ("...", 0)
        return (None, offset) if slot == 0 else (self.modules[slot][3], offset)

    def stack(self, word, base, frames):
        count, flags, slot = word >> 8 & 0xFF, word >> 16 & 0xFF, word >> 24 & 0xFFFFFF
        assert count == len(frames) and count <= 128
        assert base in self.nodes, "the base was introduced before"
        name = base
        for frame in frames:
            parent, name = name, stack_name(name, self.pc_of(frame))
            self.nodes[name] = (parent, self.place_of(frame))
        if flags & 1:
            self.slots[slot] = (self.path_to(name), bool(flags & 2))

    def module(self, words):
        slot, id_len, path_len, flags = struct.unpack("<HBHB2x", words[0][1:] + b"\0")
        bias, start, end = (int.from_bytes(w, "little") for w in words[1:4])
        data = b"".join(words[4:])
        id_words = (id_len + 7) // 8 * 8
        path = data[id_words:id_words + path_len].decode()
        assert 1 <= slot <= 4094 and start < end
        if flags & 1:
            self.slots, self.nodes, self.modules = {}, {0: None}, {}
        self.modules[slot] = (bias, start, end, path if not flags & 2 else "<main>",
                              data[:id_len].hex())

    def text(self, word, data):
        kind, flags, length = word >> 8 & 0xFF, word >> 16 & 0xFF, word >> 24 & 0xFFFF
        whole = self.text_parts.pop(kind, b"") + data[:length]
        if flags & 1:
            self.text_parts[kind] = whole
        elif kind == 3:
            self.process.thread_names[self.thread] = whole.decode()
        else:
            assert TEXT_KINDS[kind] not in self.process.texts, "said once"
            self.process.texts[TEXT_KINDS[kind]] = whole

    def path_to(self, name):
        frames = []
        while name != 0:
            name, place = self.nodes[name]
            frames.append(place)
        return frames

    def block(self, tag, address, words):
        """A block that was allocated or freed."""
        row, birth, size = words[0] >> 40, words[0] & ((1 << 40) - 1), words[1]
        assert self.tick is not None and birth <= self.tick, "a TICK comes first"
        if tag == BLOCK_BORN:
            frames, unfinished = self.process.rows[row]
            self.process.events.append(Event("alloc", address, size, frames, self.tick, unfinished))
            count(self.process.listed, row, "allocated", 1, size)
            self.latest = (address, row)
        else:
            self.process.events.append(Event("free", address, size, [], self.tick))
            count(self.process.listed, row, "freed", 1, size)
            if self.latest == (address, row):
                count(self.process.listed, row, "temporary", 1, size)
            self.latest = None

    def row(self, rest):
        slot, row, level = rest & 0xFFFFFF, rest >> 24 & 0xFFFFFF, rest >> 48
        assert row > 0 and level == 0, "every block is recorded"
        assert row not in self.process.rows, "numbers of rows are unique"
        self.process.rows[row] = self.slots[slot]

    def book(self, words):
        """A BOOK that begins there. Returns its number of words."""
        row, sizes, lives, cohorts, flags = struct.unpack("<3s4B", struct.pack("<Q", words[0])[1:])
        row, at = int.from_bytes(row, "little"), 2
        assert row > 0 and sizes + lives > 0 and flags & ~(HAS_BEFORE | HAS_TEMPORARY) == 0
        at += bool(flags & HAS_BEFORE)
        if flags & HAS_TEMPORARY:
            count(self.process.booked, row, "temporary", *cell(words[at]))
            at += 1
        at += (sizes + lives + 7) // 8
        for i in range(sizes + lives):
            count(self.process.booked, row, "allocated" if i < sizes else "freed", *cell(words[at + i]))
        return at + sizes + lives + 2 * cohorts

    def take_rest(self, counters, sent_to, mark):
        """The book of a thread that was ended before it could send it."""
        for at in range(0, BOOK_COUNTERS * COUNTER_BYTES, COUNTER_BYTES):
            row, sizes, lives, temporary, is_sending = struct.unpack_from("<I28xIB91xQI", counters, at)
            if row == 0 or (is_sending and sent_to >= mark):
                continue
            if temporary:
                count(self.process.booked, row, "temporary", *cell(temporary))
            for what, used, first in (("freed", lives, 64), ("allocated", sizes, 240)):
                for i in range(used.bit_length()):
                    (word,) = struct.unpack_from("<Q", counters, at + first + 8 * i)
                    if used >> i & 1 and word:
                        count(self.process.booked, row, what, *cell(word))

    def mapping(self, address, words):
        slot, kind = words[0] >> 40, words[0] & ((1 << 40) - 1)
        size, number, old_address, old_size, old_number = words[1:]
        assert self.tick is not None, "a TICK comes first"
        assert size or old_size, "something changes"
        frames = self.slots[slot][0] if size else []
        self.process.mappings.append(
            Mapping(MAPPING_KINDS[kind] if size else None, address, size, number, old_address,
                    old_size, old_number, frames))

    def decode(self, data):
        """Whole records, as published."""
        words = struct.unpack(f"<{len(data) // 8}Q", data)
        i = 0
        while i < len(words):
            word = words[i]
            tag, rest = word & 0xFF, word >> 8
            if tag == PAD:
                i += rest
            elif tag == TICK:
                assert self.tick is None or rest > self.tick, "time moves on"
                self.tick = rest
                i += 1
            elif tag in (BLOCK_BORN, BLOCK_FREED):
                self.block(tag, rest, words[i + 1:i + 4])
                i += 4
            elif tag == BOOK:
                i += self.book(words[i:i + 64])
            elif tag == ROW:
                self.row(rest)
                i += 1
            elif tag == GREW:
                assert words[i + 1] >> 40 in self.slots and words[i + 1] & ((1 << 40) - 1) >= GREW_MIN
                i += 2
            elif tag == STACK:
                count = rest & 0xFF
                self.stack(word, words[i + 1], words[i + 2:i + 2 + count])
                i += 2 + count
            elif tag == MODULE:
                count = 4 + ((rest >> 16 & 0xFF) + 7) // 8 + ((rest >> 24 & 0xFFFF) + 7) // 8
                self.module([data[8 * k:8 * k + 8] for k in range(i, i + count)])
                i += count
            elif tag == TEXT:
                length = rest >> 16 & 0xFFFF
                count = 1 + (length + 7) // 8
                assert length <= 4096
                self.text(word, data[8 * i + 8:8 * (i + count)])
                i += count
            elif tag == MAPPING:
                self.mapping(rest, words[i + 1:i + 7])
                i += 7
            else:
                raise AssertionError(f"unknown tag {tag} at word {i}")
        assert i == len(words), "records are whole when they are published"


class Session:
    """A session and the thread that drains it. Use as a context manager."""

    def __init__(self, flags=FOLLOW, max_frames=512, by_path=True, version=VERSION):
        self.fd = os.memfd_create("session")
        os.ftruncate(self.fd, FILE_BYTES)
        os.pwrite(self.fd, struct.pack("<Q", WORDS_MAGIC), WORDS_OFFSET)
        self.bytes = mmap.mmap(self.fd, SESSION_BYTES)
        view = memoryview(self.bytes)
        self.u64, self.u32 = view.cast("Q"), view.cast("I")
        self.u64[SEEN_PEAK] = NO_BIRTH_IS_LATER
        struct.pack_into("<QIIQIII", self.bytes, 0, MAGIC, version, flags | BLOCKS, SESSION_BYTES,
                         max_frames, os.getpid(), RUNNING)
        self.socket_name = f"cairn-test-{os.getpid()}-{self.fd}-{id(self):x}"
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind("\0" + self.socket_name)
        self.listener.listen(64)
        path = f"/proc/{os.getpid()}/fd/{self.fd}" if by_path else "/proc/0/none"
        self.place = f"{path}:{self.socket_name}"
        self.processes, self.lanes, self.errors = [], {}, []
        self.by_slot, self.lanes_in_use, self.most_lanes, self.served = {}, 0, 0, 0
        self.paused = self.stopping = False
        self.rounds, self.rings = 0, set()
        self.started = time.monotonic()

    def __enter__(self):
        # It would look at a million events again and again, and hold the clock for seconds meanwhile.
        gc.disable()
        self.threads = [threading.Thread(target=self.serve, daemon=True),
                        threading.Thread(target=self.drain_always, daemon=True),
                        threading.Thread(target=self.tick_always, daemon=True)]
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        for thread in self.threads[1:]:
            thread.join()
        gc.enable()
        for index, lane in self.lanes.items():
            self.take_rest(lane, LANES_OFFSET + index * STRIDE)
        self.listener.close()
        os.close(self.fd)
        assert not self.errors, self.errors

    def serve(self):
        """Answers every connection with the memfd."""
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.served += 1
            socket.send_fds(peer, [b"s"], [self.fd])
            peer.close()

    def tick_always(self):
        """The clock, by which producers see that somebody lives: to decode a full ring takes long here."""
        while not self.stopping:
            if not self.paused:
                self.u64[CLOCK] = int((time.monotonic() - self.started) * 1000)
            time.sleep(0.0005)

    def drain_always(self):
        while not self.stopping:
            if not self.paused:
                self.drain()
                self.rounds += 1
            time.sleep(0.0005)
        self.drain()

    def drain(self):
        try:
            self.drain_lanes()
        except Exception as error:  # the thread must not die unseen
            self.errors.append(repr(error))
            self.stopping = True
            self.u32[STATE_WORD] = ENDED
            raise

    def process_of(self, index):
        at = PROCESS_OFFSET + 64 * index
        if index not in self.by_slot:
            state, pid, parent, flags = struct.unpack_from("<4I", self.bytes, at)
            assert state == 2, "a lane's process is active"
            self.by_slot[index] = Process(pid, parent, flags)
            self.processes.append(self.by_slot[index])
        return self.by_slot[index]

    def exit_ms_of(self, index):
        """When a process began to exit; 0: that was not noted."""
        return struct.unpack_from("<Q", self.bytes, PROCESS_OFFSET + 64 * index + 24)[0]

    def drain_lanes(self):
        for index in range(PROCESSES):
            if self.u32[(PROCESS_OFFSET + 64 * index) // 4] == 2:
                self.process_of(index)
            elif self.u32[(PROCESS_OFFSET + 64 * index) // 4] == 0:
                break
        in_use = 0
        for word in range(LANES // 64):
            bits = self.u64[BITMAP + word]
            if bits == 0:
                continue
            in_use += bin(bits).count("1")
            for bit in range(64):
                if bits >> bit & 1:
                    self.drain_lane(word * 64 + bit)
        self.lanes_in_use = in_use
        self.most_lanes = max(self.most_lanes, in_use)

    def drain_lane(self, index):
        at = LANES_OFFSET + index * STRIDE
        state = self.u32[at // 4]
        if state == 0:
            return
        if index not in self.lanes:
            process = self.process_of(self.u32[at // 4 + 1])
            process.threads.add(self.u32[at // 4 + 2])
            self.lanes[index] = Lane(self.u32[at // 4 + 2], process)
        lane = self.lanes[index]
        lane.unknown_frees = self.u64[at // 8 + UNKNOWN_FREES]
        write, read = self.u64[at // 8 + 8], self.u64[at // 8 + 16]
        ring = self.u32[at // 4 + 18]
        assert ring & (ring - 1) == 0 and RING_MIN <= ring <= RING_MAX
        assert read <= write <= read + ring and write % 8 == 0
        self.rings.add(ring)
        if write != read:
            base, first = at + RING_OFFSET, read % ring
            length = write - read
            head = min(length, ring - first)
            data = self.bytes[base + first:base + first + head] + self.bytes[base:base + length - head]
            lane.decode(data)
            self.u64[at // 8 + 16] = write
            self.wake_producer(at)
        if state == 2 or self.is_gone(lane):
            if write == self.u64[at // 8 + 8]:
                self.take_rest(lane, at)
                self.recycle(index, at)

    def take_rest(self, lane, at):
        lane.take_rest(self.bytes[at + BOOK_OFFSET:at + BOOK_OFFSET + BOOK_COUNTERS * COUNTER_BYTES],
                       self.u64[at // 8 + 8], self.u64[at // 8 + BOOK_MARK])

    def is_gone(self, lane):
        """A thread that ended without closing its lane. Looked at now and then; it is one stat."""
        if self.rounds % 16 != 0 or not lane.process.events:
            return False
        return not os.path.exists(f"/proc/{lane.process.pid}/task/{lane.thread}")

    def wake_producer(self, at):
        if self.u32[at // 4 + 48]:
            self.u32[at // 4 + 48] = 0
            word = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes, at + 192))
            LIBC.syscall(SYS_FUTEX, ctypes.c_void_p(word), FUTEX_WAKE, 1, None, None, 0)

    def recycle(self, index, at):
        del self.lanes[index]
        self.bytes.madvise(mmap.MADV_REMOVE, at, STRIDE)
        word = ctypes.addressof(ctypes.c_char.from_buffer(self.bytes, 8 * (BITMAP + index // 64)))
        FETCH_AND(ctypes.c_void_p(word), ctypes.c_uint64(~(1 << index % 64) & MASK64), 5)
        self.u32[RECYCLED_LANES] = self.u32[ENDED_LANES]  # so that no thread waits for it

    def environment(self, **more):
        env = dict(os.environ, LD_PRELOAD=LIBRARY, CAIRN_SESSION=self.place)
        env.update(more)
        return env

    def run(self, *command, timeout=DEADLINE_SECONDS, env=None, **options):
        """Runs a program to its end and drains what it left. Returns the CompletedProcess."""
        result = subprocess.run([*EMULATOR, *command], env=env or self.environment(), timeout=timeout,
                                capture_output=True, text=True, **options)
        self.wait_until_drained()
        return result

    def wait_until_drained(self):
        """Waits until all that was published before the call is decoded: two whole rounds."""
        wanted, deadline = self.rounds + 2, time.monotonic() + DEADLINE_SECONDS
        while self.rounds < wanted and not self.paused:
            assert time.monotonic() < deadline and not self.errors, f"not drained: {self.errors}"
            time.sleep(0.001)

    def wait_for_lanes(self, most):
        """Waits until no more than so many lanes are in use."""
        self.wait_until_drained()
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.lanes_in_use > most:
            assert time.monotonic() < deadline and not self.errors, f"not given back: {self.errors}"
            time.sleep(0.001)

    def counters(self):
        return {name: self.u64[COUNTERS + i] for i, name in enumerate(COUNTER_NAMES)}

    def lost(self):
        return {name: value for name, value in self.counters().items() if name in LOSSES and value}

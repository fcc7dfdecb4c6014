# SPDX-License-Identifier: MIT
"""Allocates blocks of distinct sizes in Python functions of many kinds, and writes what Python's own
traceback says about each: one JSON object a line, {size: [[function, file, line], ...]}, innermost
first. Lines come from tracemalloc too, which notes them inside the allocation.

TRUTH: each size of the output is the size of exactly one block, and its frames are the Python frames
of the block's stack."""
import asyncio
import contextlib
import ctypes
import functools
import itertools
import json
import os
import sys
import threading
import tracemalloc

LIBC = ctypes.CDLL(None)
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
SIZES = itertools.count(1_000_003, 1009)
TRUTH = {}
NAME = "co_qualname" if sys.version_info >= (3, 11) else "co_name"


def note(size, block=None):
    """Note the frames of the caller, which has just allocated."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.append([getattr(frame.f_code, NAME), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    if block is not None:
        traced = [line.lineno for line in reversed(tracemalloc.get_object_traceback(block))]
        assert traced == [line for _, _, line in found], (traced, found)
    TRUTH[size] = found


def allocate(size=None):
    size = size or next(SIZES)
    block = bytearray(size - 1); note(size, block)  # it has one byte more


def allocate_without_lock(size=None):
    size = size or next(SIZES)
    LIBC.malloc(size); note(size)  # ctypes releases the interpreter's lock


def make(times):
    for _ in range(times):
        allocate()
        yield


def allocate_when_thrown():
    try:
        yield
    except KeyError:
        allocate()
        raise


def pass_on(generator):
    for _ in range(2):
        yield from generator


def throw_through_generators():
    generator = pass_on(pass_on(allocate_when_thrown()))
    next(generator)
    with contextlib.suppress(KeyError):
        generator.throw(KeyError())


async def wait():
    await asyncio.sleep(0)
    allocate()


@contextlib.contextmanager
def context():
    allocate()
    yield
    allocate()


class Base:
    def method(self):
        allocate_without_lock()

    @classmethod
    def of_class(cls):
        allocate()

    @property
    def value(self):
        allocate()

    def __lt__(self, other):
        allocate()
        return False

    def __del__(self):
        allocate()


class Derived(Base):
    def method(self):
        super().method()

        def inner():
            allocate()
        inner()


def recurse(depth):
    if depth == 0:
        allocate()
    else:
        recurse(depth - 1)


def recurse_natively(depth):
    allocate() if depth == 0 else list(map(recurse_natively, [depth - 1]))


def größe_und_名前():
    allocate()


def spread_over(*_):
    allocate(
        next(
            SIZES
        )
    )


def code_that_replaces_code():
    """Each code object gets the memory of the previous one."""
    for i in range(60):
        names = {"allocate": allocate}
        exec(compile("\n" * (i % 7) + f"def made_{i}():\n  allocate()\nmade_{i}()", f"<made {i % 5}>", "exec"), names)


def in_thread(count, begin):
    begin.wait()
    for _ in range(count):
        exec(compile(f"def of_thread_{threading.get_ident()}_{_}():\n  allocate()\n"
                     f"of_thread_{threading.get_ident()}_{_}()", __file__, "exec"), {"allocate": allocate})


def main():
    allocate()
    allocate_without_lock()
    list(make(1))
    for _ in make(1):
        pass
    with context():
        pass
    throw_through_generators()
    asyncio.run(wait())
    thing = Derived()
    thing.method()
    thing.of_class()
    thing.value
    sorted([thing, Base()])
    del thing
    recurse(150)
    recurse_natively(30)
    größe_und_名前()
    spread_over(1,
                2)
    (lambda:
        allocate())()
    [[allocate() for _ in (1,)] for _ in (2,)]
    functools.partial(allocate, next(SIZES))()
    functools.reduce(lambda one, other: allocate(), [1, 2])
    code_that_replaces_code()
    begin = threading.Barrier(4)
    threads = [threading.Thread(target=in_thread, args=(20, begin)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write():
    os.write(1, (json.dumps(TRUTH) + "\n").encode())
    TRUTH.clear()


tracemalloc.start(500)
main()
write()
SIZES = itertools.count(9_000_011, 1009)
if (child := os.fork()) == 0:
    exec(compile("def of_child():\n  allocate()\nof_child()", "<child>", "exec"), {"allocate": allocate})
    recurse(3)
    write()
    os._exit(0)
os.waitpid(child, 0)
SIZES = itertools.count(12_000_017, 1009)
exec(compile("def of_parent():\n  allocate()\nof_parent()", "<parent>", "exec"), {"allocate": allocate})
write()

# SPDX-License-Identifier: MIT
"""Keeps objects of several kinds, and ends without freeing them. With tracemalloc it writes
[[line, bytes, blocks], ...]: what each of its lines holds.

TRUTH: with PYTHONMALLOC=malloc and PYTHONHASHSEED=0 each line holds the same without tracemalloc."""
import json
import os
import sys
import tracemalloc


class Node:
    def __init__(self, value):
        self.value = bytearray(value)


def words(count):
    return ["word number %d" % i for i in range(count)]


def table(keys):
    return {key: len(key) for key in keys}


def nodes(count):
    return [Node(i % 300 + 100) for i in range(count)]


def main():
    kept = [words(5000), nodes(2000)]
    kept.append(table(kept[0]))
    kept.append(json.dumps(kept[2]))
    if tracemalloc.is_tracing():
        lines = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)]).statistics("lineno")
        print(json.dumps([[line.traceback[0].lineno, line.size, line.count] for line in lines if line.size > 50_000]))
    sys.stdout.flush()
    os._exit(0)


main()

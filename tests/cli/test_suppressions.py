# SPDX-License-Identifier: MIT
"""Suppressed leaks: rules of a file, of the program and of cairn, compared with a naive model."""
import json

import pytest

from drawn import cairn, json_of, text_of
from heap_model import Block, Heap, frame, random_heap

COSTS = ("allocations", "allocated_bytes", "frees", "freed_bytes", "temporary", "peak_bytes")


@pytest.fixture(scope="module")
def run(draw_once):
    heap = random_heap(21)
    return heap, draw_once(heap.draw() + "!suppressions leak:^emit$\x03# no rule\x03bad line\x03leak:nope\n")


@pytest.fixture
def rules(tmp_path):
    def write(text):
        path = tmp_path / "rules.txt"
        path.write_text(text)
        return path
    return write


def name_of(some_frame):
    return some_frame.partition("!")[2].partition("(")[0]


def rule_of(block, wanted):
    """The rule of the innermost frame that one matches: [(name, test of a frame)]."""
    for some_frame in reversed(block.stack):
        for name, matches in wanted:
            if matches(some_frame):
                return name
    return None


def check(heap, report, wanted):
    left = [b for b in heap.blocks if rule_of(b, wanted) is None]
    gone = [b for b in heap.blocks if rule_of(b, wanted) and b.freed_ms is None]
    whole, counted = heap.costs(), heap.costs(left)
    totals = report["totals"]
    for cost in COSTS:
        assert totals[cost] == whole[cost], cost
    for cost in ("live_bytes", "live_blocks"):
        assert totals[cost] == counted[cost]
        assert report["selection"]["suppressed"][cost] == whole[cost] - counted[cost]
        assert sum(site["costs"][cost] for site in report["top"]["live_bytes"]) == counted[cost]
        assert sum(thread["costs"][cost] for thread in report["threads"]) == counted[cost]
    found = {r["pattern"]: (r["stack_count"], r["live_bytes"], r["live_blocks"])
             for r in report["suppressions"] if r["stack_count"]}
    for name in {rule_of(b, wanted) for b in gone}:
        own = [b for b in gone if rule_of(b, wanted) == name]
        assert found.pop(name) == (len({(b.thread, b.stack) for b in own}),
                                   sum(b.size for b in own), len(own))
    assert found == {}
    assert gone, "the case says nothing"


def test_rules_of_the_program(run):
    heap, path = run
    emit = [("^emit$", lambda f: name_of(f) == "emit")]
    check(heap, json_of("-n", "0", path), emit)
    off = json_of("--no-embedded-suppressions", path)
    assert off["selection"]["suppressed"]["live_bytes"] == 0
    assert off["totals"]["live_bytes"] == heap.costs()["live_bytes"]
    sources = {r["pattern"]: r["source"] for r in json_of(path)["suppressions"]}
    assert sources["^emit$"] == sources["nope"] == "embedded"
    assert "built-in" in sources.values() and "bad line" not in sources


@pytest.mark.parametrize("text, wanted", [
    ("leak:^load$\n", [("^load$", lambda f: name_of(f) == "load")]),
    ("# mine\n  leak:ar*e \nleak:alk\n", [("ar*e", lambda f: name_of(f) == "parse"),
                                         ("alk", lambda f: name_of(f) == "walk")]),
    ("leak:/src/grow.c$\n", [("/src/grow.c$", lambda f: name_of(f) == "grow")]),
    ("leak:^/opt/app$\n", [("^/opt/app$", lambda f: True)]),
    ("leak:^cache$\nleak:^load$", [("^cache$", lambda f: name_of(f) == "cache"),
                                 ("^load$", lambda f: name_of(f) == "load")]),
])
def test_rules_of_a_file(run, rules, text, wanted):
    heap, path = run
    check(heap, json_of("-n", "0", "--no-embedded-suppressions", "--suppressions", rules(text),
                        path), wanted)


def test_suppressions_compose_with_filters(run, rules):
    heap, path = run
    options = ["--no-embedded-suppressions", "--suppressions", rules("leak:^load$\n"),
               "--thread", "main"]
    report = json_of(*options, path)
    left = [b for b in heap.blocks if b.thread == "main"
            and not any(name_of(f) == "load" for f in b.stack)]
    assert report["totals"]["live_bytes"] == heap.costs(left)["live_bytes"]
    early = [b for b in left if b.born_ms < 1000]
    alive = [b.size for b in early if b.freed_ms is None or b.freed_ms >= 1000]
    cut = json_of("--time", "0..1s", *options, path)
    assert cut["totals"]["live_bytes"] == sum(alive)


def test_the_built_in_rules(draw):
    def leak(name):
        return Block("main", (frame("main"), f"/lib/libc.so.6!{name}(x.c:1)"), 100, len(name))
    heap = Heap([leak("__new_exitfn"), leak("tzset_internal"), leak("my__new_exitfn"),
                 leak("__GI__IO_file_doallocate"), leak("my_IO_file_doallocate_too"), leak("std::thread::current::init_current")])
    path = draw(heap.draw())
    report = json_of(path)
    assert (report["totals"]["live_bytes"], report["selection"]["suppressed"]["live_bytes"]) == (200, 400)
    assert json_of("--no-builtin-suppressions", path)["suppressions"] == []
    text = text_of(path)
    assert "  suppressed        400 B  400 bytes in 4 blocks, not counted as leaked" in text
    assert "         100 B in         1 block   built-in  ^tzset_internal$" in text
    assert max(map(len, text.splitlines())) <= 80


LOADER = "/lib64/ld-linux-x86-64.so.2!"
POOL = "/usr/lib/libstdc++.so.6.0.30!"


@pytest.mark.parametrize("stack, rule", [
    ((frame("main"), LOADER), "ld-linux, innermost"),
    ((frame("main"), "/lib/libc.so.6!dlopen", LOADER + "dl_open_worker", LOADER), "ld-linux, innermost"),
    ((LOADER, LOADER, POOL), "libstdc++ < ld-linux, innermost"),
    ((LOADER, POOL), "libstdc++ < ld-linux, innermost"),
    # Blocks of a loaded module's constructors belong to the module, whatever the loader's frames
    # are.
    ((frame("main"), LOADER + "dl_open_worker", LOADER + "_dl_init", "/lib/plugin.so!begin"), None),
    ((frame("main"), LOADER, LOADER, "/lib/plugin.so!"), None),
    # A block is not libstdc++'s own if it came from other code than the loader, or was passed on.
    ((frame("main"), POOL), None),
    ((POOL,), None),
    ((LOADER, "/lib/plugin.so!", POOL), None),
    ((LOADER, POOL, frame("main")), None),
    (("/lib/ld-musl-x86_64.so.1!", POOL), None),
])
def test_built_in_rules_by_whose_code_it_is(draw, stack, rule):
    assert_rule(draw, stack, rule)


def assert_rule(draw, stack, rule):
    other = Block("main", (frame("main"), frame("load")), 7, 1)
    for is_alone in (False, True):
        blocks = [Block("main", stack, 100, 1)] + ([] if is_alone else [other])
        report = json_of(draw(Heap(blocks).draw()))
        found = [r["pattern"] for r in report["suppressions"] if r["live_bytes"] == 100]
        assert found == ([] if rule is None else [rule])
        left = (0 if rule else 100) + (0 if is_alone else 7)
        assert report["totals"]["live_bytes"] == left


def test_a_caller_of_what_the_loader_keeps_is_not_taken_with_it(draw):
    """The same frames, once innermost and once with a callee."""
    stack = (frame("main"), LOADER)
    report = json_of(draw(Heap([Block("main", stack, 100, 1),
                                Block("main", (*stack, frame("load")), 30, 1)]).draw()))
    # A block of the loader and a block that it passed on are indistinguishable here.
    assert report["totals"]["live_bytes"] == 130


def test_what_an_allocator_maps_for_a_block_is_no_callee(draw):
    """The stack of such a mapping continues through the hook of malloc to the code that requested
    the block."""
    hook = "/opt/lib/cairn/libcairn_preload.so!malloc"
    report = json_of(draw(Heap([Block("main", (LOADER, POOL), 100, 1),
                                Block("main", (LOADER, POOL, hook, "/lib/libjemalloc.so.2!"), 30, 1)]).draw()))
    assert (report["totals"]["live_bytes"], report["selection"]["suppressed"]["live_bytes"]) == (0, 130)


@pytest.mark.parametrize("pattern", ["^remember$", "^remember<int>(int)$", "^int remember<int>(int)$", "^remember<int>$"])
def test_a_function_is_suppressed_as_it_is_shown(draw, rules, pattern):
    path = draw(Heap([Block("main", (frame("main"), "app!int remember<int>(int)"), 100, 1)]).draw())
    assert json_of("--suppressions", rules(f"leak:{pattern}\n"), path)["totals"]["live_bytes"] == 0
    assert json_of("--suppressions", rules("leak:^remembe$\n"), path)["totals"]["live_bytes"] == 100


def test_rules_that_match_no_leak_are_reported(draw, rules):
    path = draw(Heap([Block("main", (frame("main"),), 100, 1)]).draw())
    run = cairn("report", "--all", "--suppressions", rules("leak:^main$\nleak:nosuch\nleak:other\n"), path)
    assert (run.returncode, run.stderr.decode()) == (
        0, "cairn: no leak matches 2 of the suppressions: leak:nosuch, leak:other\n")


def test_diff_check_and_export(run, rules, draw):
    heap, path = run
    more = draw(Heap(heap.blocks + [Block("main", (frame("main"), frame("emit")), 12345, 1)]).draw()
                + "!suppressions leak:^emit$\n", "more.cairn")
    done = cairn("diff", "--sort", "leaked", "--json", path, more)
    assert json.loads(done.stdout)["totals"]["live_bytes"]["change"] == 0
    done = cairn("diff", "--sort", "leaked", "--json", "--no-embedded-suppressions", path, more)
    assert json.loads(done.stdout)["totals"]["live_bytes"]["change"] == 12345
    limit = json_of(path)["totals"]["live_bytes"]
    for options, status in ([], 0), (["--no-embedded-suppressions"], 1):
        assert cairn("check", "--max-leaked", limit, *options, path, cwd="/").returncode == status
    def exported(*options):
        done = cairn("export", "--to", "json", *options, path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["totals"]["live_bytes"]
    assert exported() == heap.costs()["live_bytes"]
    assert exported("--suppressions", rules("leak:*")) == 0


@pytest.mark.parametrize("text, words", [
    ("leak:a\nrace:b\n", ["rules.txt:2", "leak:PATTERN"]),
    ("leak:\n", ["rules.txt:1"]), ("load\n", ["rules.txt:1"]),
    ("leak:x\n" * 10001, ["10000"]),
])
def test_mistakes(run, rules, text, words):
    _, path = run
    done = cairn("report", "--all", "--suppressions", rules(text), path)
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, said.count("\n")) == (2, b"", 1), said
    for word in words:
        assert word in said
    done = cairn("report", "--all", "--suppressions", "/nowhere/rules", path)
    assert done.returncode == 2 and b"/nowhere/rules" in done.stderr


JVM, GLIB, STD = "/usr/lib/libjvm.so!", "/lib/libglib-2.0.so.0!", "app!std::thread::spawn(/rustc/library/std/src/thread.rs:1)"


@pytest.mark.parametrize("stack, rule", [
    ((frame("main"), JVM + "JVM_Load", JVM + "os::malloc"), "libjvm, innermost, not for others"),
    ((JVM + "thread_native_entry", JVM + "AllocateHeap"), "libjvm, innermost, not for others"),
    # What others request of it is theirs, and without names nothing is said.
    ((frame("main"), JVM + "Unsafe_AllocateMemory0", JVM + "os::malloc"), None),
    ((frame("main"), JVM + "jni_GetStringUTFChars", JVM + "AllocateHeap"), None),
    ((frame("main"), JVM + "jni_GetByteArrayElements", JVM + "AllocateHeap"), None),
    ((frame("main"), JVM + "jni_NewGlobalRef", JVM + "AllocateHeap"), None),
    ((frame("main"), JVM, JVM + "os::malloc"), None),
    ((JVM + "JVM_Load", "/lib/libnative.so!work"), None),
    ((LOADER, GLIB, GLIB, GLIB + "g_malloc"), "GLib < ld-linux, innermost"),
    ((LOADER, "/lib/libgobject-2.0.so.0!", GLIB + "g_malloc"), "GLib < ld-linux, innermost"),
    ((LOADER, "/lib/plugin.so!begin", GLIB + "g_malloc"), None),
    ((frame("main"), GLIB + "g_malloc"), None),
    ((frame("main"), "app!test::run_tests", "app!test::run_test", STD), "test::, innermost after std"),
    ((frame("main"), "app!test::run_test", "app!app::tests::leaks", STD), None),
    ((frame("main"), "app!app::test::mine", STD), None),
])
def test_built_in_rules_of_runtimes(draw, stack, rule):
    assert_rule(draw, stack, rule)

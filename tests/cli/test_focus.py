# SPDX-License-Identifier: MIT
"""--focus, --ignore and --show-from on random profiles: every view is compared with a naive model
that applies the expressions to each block's stack."""
import collections
import dataclasses
import random
import re

import pytest

from drawn import cairn, json_of
from heap_model import Heap, random_heap
from test_filters import COSTS

RUNS = 10
NOTHING = "^no such frame$"
WORDS = ("^load$", "parse", "cache[.]c", "w.lk", "/opt/app", "grow|emit", "^main$", "lib", "^cache$|main.*xx")


def module_of(frame):
    return frame.partition("!")[0]


def drawn_stack(frames, chance):
    """Two functions are in a library. Some others are inlined into their callers."""
    joined = []
    for frame in frames:
        if "!emit(" in frame or "!walk(" in frame:
            frame = frame.replace("/opt/app", "/opt/libx.so")
        if joined and module_of(joined[-1]) == module_of(frame) and chance.random() < 0.4:
            joined[-1] += "=>" + frame.partition("!")[2]
        else:
            joined.append(frame)
    return tuple(joined)


def draw_case(number):
    """A heap with inlined frames and two modules, options, and what they show of its blocks."""
    chance = random.Random(number)
    heap = random_heap(100 + number, count=300)
    stacks = {stack: drawn_stack(stack, chance) for stack in sorted({block.stack for block in heap.blocks})}
    heap = Heap([dataclasses.replace(block, stack=stacks[block.stack]) for block in heap.blocks])
    options = {name: chance.choice(WORDS) for name in ("--focus", "--ignore") if chance.random() < 0.4}
    if number % 2 == 0 or not options:
        options["--show-from"] = chance.choice(WORDS)
    seen = [(block, shown(block, options)) for block in heap.blocks]
    return heap, options, [(block, stack) for block, stack in seen if stack is not None]


@dataclasses.dataclass(frozen=True)
class Frame:
    function: str
    names: tuple  # function, file, module


def frames_of(block):
    """The functions of a stack, outermost first."""
    for frame in block.stack:
        module, _, rest = frame.partition("!")
        for part in rest.split("=>"):
            function, _, place = part.partition("(")
            yield Frame(function, (function, place.rpartition(":")[0], module))


def find(expression, frames):
    """The position of the outermost frame that matches, or None."""
    for position, frame in enumerate(frames):
        if any(re.search(expression, name) for name in frame.names):
            return position
    return None


def shown(block, options):
    """The functions that are shown of the block's stack; None if it does not pass."""
    frames = list(frames_of(block))
    start = find(options.get("--show-from", ""), frames)
    is_out = ("--focus" in options and find(options["--focus"], frames) is None) or (
        "--ignore" in options and find(options["--ignore"], frames) is not None)
    return None if is_out or start is None else tuple(frame.function for frame in frames[start:])


@pytest.fixture(scope="module", params=range(RUNS), name="case")
def fixture_case(request, draw_once):
    heap, options, stacks = draw_case(request.param)
    return heap, draw_once(heap.draw()), [f"{name}={value}" for name, value in options.items()], stacks


def grouped(heap, stacks, keys):
    """The costs of the blocks by each of their keys."""
    groups = collections.defaultdict(list)
    for block, stack in stacks:
        for key in keys(stack):
            groups[key].append(block)
    return {key: picked(heap.costs(blocks)) for key, blocks in groups.items()}


def picked(costs):
    return {cost: costs[cost] for cost in COSTS}


def test_the_draws_say_something():
    """Some omit blocks, some shorten stacks, and most let something pass."""
    omitted = shortened = passed = 0
    for number in range(RUNS):
        heap, _, stacks = draw_case(number)
        omitted += len(stacks) < len(heap.blocks)
        passed += len(stacks) > 0
        shortened += any(len(stack) < len(list(frames_of(block))) for block, stack in stacks)
    assert omitted >= 4 and passed >= 5 and shortened >= 3, (omitted, passed, shortened)


def test_totals(case):
    heap, path, words, stacks = case
    report = json_of(*words, path, status=None)
    assert picked(report["totals"]) == picked(heap.costs([block for block, _ in stacks]))
    assert picked(report["selection"]["recording_totals"]) == picked(heap.costs())
    for word in words:
        name, _, value = word.removeprefix("--").partition("=")
        assert report["selection"]["filter"][name.replace("-", "_")] == value


@pytest.mark.parametrize("direction", ["top-down", "bottom-up"])
def test_trees(case, direction):
    heap, path, words, stacks = case
    step = 1 if direction == "top-down" else -1
    nodes = json_of(*words, "--tree", direction, "--sort", "allocations", "-n", "0", "--max-depth", "0", path, status=None)["tree"]["nodes"]
    here, found = [], {}
    for node in nodes[1:]:
        del here[node["depth"] - 1:]
        here.append(node["function"])
        found[tuple(here)] = picked(node["total"])
    assert found == grouped(heap, stacks, lambda stack: {
        stack[::step][:depth + 1] for depth in range(len(stack))})


def test_functions_and_call_sites(case):
    heap, path, words, stacks = case
    report = json_of(*words, "--functions", "--group-by", "function", "--sort", "allocations", "-n", "0", "-s", "0", path, status=None)
    rows = report["functions"]["functions"]
    assert {row["function"]: picked(row["inclusive"]) for row in rows} == grouped(heap, stacks, set)
    sites = grouped(heap, stacks, lambda stack: [stack[-1]])
    assert {row["function"]: picked(row["self"]) for row in rows if row["self"]["allocations"]} == sites
    assert {row["name"]: picked(row["costs"]) for row in report["groups"]["groups"]} == sites
    found = collections.Counter()
    for site in report["top"]["allocations"]:
        for stack in site["stacks"]:
            found[tuple(frame["function"] for frame in stack["frames"])[::-1]] += stack["costs"]["allocations"]
    assert found == {stack: costs["allocations"] for stack, costs in grouped(heap, stacks, lambda stack: [stack]).items()}


def test_exports(case):
    _, path, words, stacks = case
    run = cairn("export", "--to", "folded", "--cost", "allocations", "-o", "-", *words, path)
    assert run.returncode == 0, run.stderr
    found = collections.Counter()
    for line in run.stdout.decode().splitlines():
        stack, _, count = line.rpartition(" ")
        found[tuple(stack.split(";"))] += int(count)
    wanted = collections.Counter(stack for _, stack in stacks)
    assert found == wanted


def test_a_comparison_filters_both(case):
    _, path, words, stacks = case
    run = cairn("diff", "--json", *words, path, path)
    assert run.returncode == 0 and f'"old":{len(stacks)},"new":{len(stacks)},'.encode() in run.stdout


@pytest.mark.parametrize("option", ["--focus", "--ignore", "--show-from"])
def test_what_matches_nothing_is_said(case, option):
    heap, path, _, _ = case
    run = cairn("report", option, NOTHING, path)
    status = 0 if option == "--ignore" else 1
    assert run.returncode == status
    assert run.stderr == f'cairn: no function, file or module of the recording matches "{NOTHING}"\n'.encode()
    counted = json_of(option, NOTHING, path, status=status)["totals"]["allocations"]
    assert counted == (len(heap.blocks) if option == "--ignore" else 0)


def test_a_malformed_expression_is_refused(case):
    for option in ("--focus", "--ignore", "--show-from"):
        run = cairn("report", option, "(", case[1])
        assert run.returncode == 2 and run.stderr.startswith(f"cairn: {option}: ".encode())


def test_the_report_names_the_filter(case):
    run = cairn("report", "--all", "--focus", "load", "--ignore", "walk", "--show-from", "^main$", case[1])
    for words in ("stacks through a frame that matches load", "no stacks through a frame that matches walk",
                  "stacks from a frame that matches ^main$"):
        assert f"    {words}\n".encode() in run.stdout

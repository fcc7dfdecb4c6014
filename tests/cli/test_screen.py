# SPDX-License-Identifier: MIT
"""The report on one screen: its length, its findings, its sections and its width."""
import random

import pytest

from drawn import cairn, json_of

PEAK = ("!peak_time_ms 450\n!runtime_ms 5000\n"
        "app!main;app!load(a.c:7) 4 41943040 4 41943040 0 0 3 31457280 31457280\n"
        "app!main;app!keep(a.c:9) 1 10485760 0 0 0 0 1 10485760 10485760\n")


def screen(*arguments, more=None):
    run = cairn("report", *arguments, more=more)
    assert (run.returncode, run.stderr) == (0, b"")
    return run.stdout.decode()


def test_a_large_recording_fits_on_one_screen(draw):
    draw_random = random.Random(7)
    lines = ["!runtime_ms 60000\n"]
    for process in range(40):
        lines.append(f"process app{process}\n")
        lines += [f"lib{i % 50}!main;lib{i % 50}!f{i}{'<long>' * (i % 40)}(f.c:{i}) {draw_random.randint(1, 50000)} "
                  f"{2 << 20} 0 0 {i} {i} 1 {2 << 20}\n" for i in range(60)]
    path = draw("".join(lines))
    assert len(screen(path).splitlines()) <= 100
    assert len(screen("-n", "0", path).splitlines()) <= 100
    assert len(screen("--all", path).splitlines()) > 200


def test_the_screen_begins_with_the_findings_of_the_json(draw):
    path = draw(PEAK)
    items = json_of(path)["findings"]["items"]
    assert [item["kind"] for item in items] == ["peak"]
    assert (items[0]["function"], items[0]["bytes"], items[0]["whole_bytes"]) == ("load", 31457280, 41943040)
    words = " ".join(screen(path).split())
    for item in items:
        assert f"{item['kind']} {item['sentence']} [{item['look']}" in words
    assert words.index("FINDINGS") < words.index(items[0]["sentence"]) < words.index("most at the peak")


def test_rates_are_rounded(draw):
    path = draw("!runtime_ms 3000\nmain;work 2000 200000 2000 200000\n")
    assert json_of(path)["totals"]["allocations_per_second"] == 667 and "2,000  667 a second" in screen(path)
    few = draw("!runtime_ms 9000000\nmain;work 2000 200000 2000 200000\n", "few.cairn")
    assert "2,000  <1 a second" in screen(few)


def test_rows_that_are_cut_alike_say_what_differs(draw):
    name = "forge::recursive_wrapper<std::vector<{}, std::allocator<{}> > >::recursive_wrapper"
    sites = [(name.format("plain_text", "plain_text"), 4 << 20), (name.format("element", "element"), 3 << 20)]
    path = draw("!runtime_ms 300\n" + "".join(f"main;{site}(recursive_wrapper.hpp:116) 1 {size} 0 0 0 0 1 {size} {size}\n"
                                              for site, size in sites))
    rows = [line.split(maxsplit=3)[3] for line in screen(path).splitlines() if "hpp:116" in line and "holds" not in line]
    assert [row.split("  ")[0] for row in rows[:2]] == ["forge...apper [vector..._text>]", "forge...apper [vector...ement>]"]
    wide = screen("--width", "200", path)
    assert "std::vector<element, std::allocator<element> >" in wide and " [" not in wide.split("most at the peak")[1].split("hpp:116")[0]


def test_a_healthy_program_has_no_finding(draw):
    path = draw("!runtime_ms 9000\nmain;work 500 50000 500 50000 90 9000 10 1000 1000\n")
    assert json_of(path)["findings"]["items"] == [] and "FINDINGS" not in screen(path)


@pytest.mark.parametrize("option, title", [("-p", "PEAK MEMORY"), ("-a", "ALLOCATIONS"), ("-T", "TEMPORARY ALLOC"),
                                           ("-l", "LEAKED")])
def test_sections_are_chosen(draw, option, title):
    path = draw(PEAK + "app!main;app!spin(a.c:20) 90 90 90 90 50 50 0 0 9\n")
    titles = [line for line in screen(option, path).splitlines() if line[:1].isupper()]
    assert len(titles) == 1 and titles[0].startswith(title), titles
    both = [line for line in screen(option, "-p", path).splitlines() if line[:1].isupper()]
    assert len(both) == (1 if option == "-p" else 2)


def test_the_width_comes_from_the_option_or_from_columns(draw):
    name = "f" + "_abcdefghij" * 14
    path = draw(f"!runtime_ms 9000\nmain;{name} 5 5000000 0 0 0 0 5 5000000\n")

    def width(*arguments, more=None):
        return max(map(len, screen("-p", *arguments, path, more=more).splitlines()))
    assert width() <= 80 < width(more={"COLUMNS": "120"}) <= 120 < width("--width", "200") <= 200
    assert width(more={"COLUMNS": "x"}) <= 80 and width("--width", "150", more={"COLUMNS": "70"}) > 80
    assert cairn("report", "--width", "10", path).returncode == 2

    old = draw("main;other 5 5000000\n", "old.cairn")

    def width_of_diff(*arguments):
        return max(map(len, cairn("diff", *arguments, old, path).stdout.decode().splitlines()))
    assert width_of_diff() <= 80 < width_of_diff("--width", "200") <= 200
    assert cairn("diff", "--width", "10", path, path).returncode == 2


def test_check_explains_a_broken_budget(draw):
    path = draw(PEAK)
    sentence = json_of(path)["findings"]["items"][0]["sentence"]
    run = cairn("check", "--max-peak", "1MiB", path)
    assert run.returncode == 1 and sentence in " ".join(run.stdout.decode().split())


def test_the_screen_names_found_wrappers_and_says_that_names_are_missing(draw):
    calls = "".join(f"a!main;a!f{size};a!arena_alloc 1 {size}\n" for size in (16, 300, 5000))
    assert "Wrappers found: arena_alloc\n" in screen(draw(calls))
    assert "Wrappers" not in screen(draw(PEAK)) and "no name" not in screen(draw(PEAK))


def test_long_module_names_keep_their_beginning_and_their_end(draw):
    module = "/opt/_multiarray_umath_of_the_numeric_library.cpython-311-x86_64-linux-gnu.so"
    path = draw(f"{module}!main;{module}!add 5 5000 0 0 0 0 5 5000\n"
                f"{module}!main;{module}!sub(a.c:77) 5 5000 0 0 0 0 5 5000\n")
    places = [line for option in ((), ("-p",)) for line in screen(*option, path).splitlines() if ".so" in line]
    assert len(places) > 4
    for line in places:
        assert len(line) <= 80 and "_multi" in line and "gnu.so" in line, line
    assert any("a.c:77 [_multi" in line for line in places)

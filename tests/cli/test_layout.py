# SPDX-License-Identifier: MIT
"""The text report line by line, on drawn recordings whose figures can be computed by hand."""
import re

import pytest

from drawn import cairn, text_of

TOOL = """\
!command_line tool --fast
!program /usr/bin/tool
!host box
!peak_time_ms 250
!runtime_ms 2000
!start_unix_ms 1790000000000
!wait_status 11
process tool
thread main
/opt/tool!main(/s/a.c:1);/opt/tool!keep(/s/a.c:10) 100 102400 60 61440 30 30720 50 51200 51200
/opt/tool!main(/s/a.c:1);/opt/tool!drop(/s/a.c:20) 1000 16000 1000 16000 900 14400 10 160 160
thread worker
/opt/tool!start;/opt/tool!drop(/s/a.c:20) 24 384 20 320 0 0 0 0 384
"""

TOOL_TEXT = """\
tool --fast
  2026-09-21 14:13:20 +0000, on box, for 2.00 s, killed by SIGSEGV
  1 process, 2 threads, 3 call stacks

  peak heap      50.2 KiB  51,360 bytes after 250 ms
  allocations       1,124  562 a second
  allocated       116 KiB  118,784 bytes
  temporary           930  82.7% of all allocations
  leaked         40.1 KiB  41,024 bytes in 44 blocks

PEAK MEMORY, by call site

  1.   50.0 KiB  99.7%  keep
                        a.c:10 in tool, 50 blocks
        keep  a.c:10 [tool]
        main  a.c:1

  2.      160 B   0.3%  drop
                        a.c:20 in tool, 10 blocks
        drop  a.c:20 [tool]
        main  a.c:1

ALLOCATIONS, by call site

  1.      1,024  91.1%  drop
                        a.c:20 in tool, 16.0 KiB
      1,000, 15.6 KiB, by
        drop  a.c:20 [tool]
        main  a.c:1
      24, 384 B, by
        drop   a.c:20 [tool]
        start

  2.        100   8.9%  keep
                        a.c:10 in tool, 100 KiB
        keep  a.c:10 [tool]
        main  a.c:1

TEMPORARY ALLOCATIONS: freed by the next heap call of their thread

  1.        900  96.8%  drop
                        a.c:20 in tool, 87.9% of its 1,024 allocations
        drop  a.c:20 [tool]
        main  a.c:1

  2.         30   3.2%  keep
                        a.c:10 in tool, 30.0% of its 100 allocations
        keep  a.c:10 [tool]
        main  a.c:1

LEAKED: never freed

  1.   40.0 KiB  99.8%  keep
                        a.c:10 in tool, 40 blocks
        keep  a.c:10 [tool]
        main  a.c:1

  2.       64 B   0.2%  drop
                        a.c:20 in tool, 4 blocks
        drop   a.c:20 [tool]
        start
"""

VIEWS = [
    ("--group-by=function", """\
BY FUNCTION

          peak   allocations        leaked
      50.0 KiB           100      40.0 KiB  keep  [tool]
         160 B         1,024          64 B  drop  [tool]
"""),
    ("--group-by=function --sort=temporary", """\
BY FUNCTION

     temporary          peak   allocations
           900         160 B         1,024  drop  [tool]
            30      50.0 KiB           100  keep  [tool]
"""),
    ("--group-by=function --sort=leaked", """\
BY FUNCTION

        leaked          peak   allocations
      40.0 KiB      50.0 KiB           100  keep  [tool]
          64 B         160 B         1,024  drop  [tool]
"""),
    ("--group-by=thread", """\
BY THREAD

          peak   allocations        leaked
      50.2 KiB         1,100      40.0 KiB  main  [1000]
           0 B            24          64 B  worker  [1001]
"""),
    ("--functions", """\
FUNCTIONS: bytes live at the peak, inclusive and self

          inclusive               self
    50.2 KiB   100%         0 B     0%  main  [tool]
    50.0 KiB  99.7%    50.0 KiB  99.7%  keep  [tool]
       160 B   0.3%       160 B   0.3%  drop  [tool]
         0 B     0%         0 B     0%  start  [tool]
"""),
    ("--callers=drop --sort=allocations", """\
CALLERS AND CALLEES: allocation calls

       1,024  91.1%  drop  [tool]
    called by
           1,000  89.0%  main  [tool]
              24   2.1%  start  [tool]
    calls
           1,024  91.1%  (it allocates itself)
"""),
    ("--tree=top-down --sort=allocations", """\
TREE, from the threads inwards: allocation calls

       1,100  97.9%  main  [tool]
       1,000  89.0%   drop  [tool]
         100   8.9%   keep  [tool]
          24   2.1%  start  [tool]
          24   2.1%   drop  [tool]
"""),
    ("--tree=bottom-up --sort=allocations", """\
TREE, from the call sites outwards: allocation calls

       1,024  91.1%  drop  [tool]
       1,000  89.0%   main  [tool]
          24   2.1%   start  [tool]
         100   8.9%  keep  [tool]
         100   8.9%   main  [tool]
"""),
]


def lines(text):
    """The lines without the words after a title's capitals: the tests check figures and columns."""
    return [re.sub(r"^([A-Z]{3}[A-Z ]*)[:,] .*", r"\1", line.rstrip()) for line in text.splitlines()]


def section(text, title):
    """The text from the title to the end."""
    return lines(text[text.index(title):])


@pytest.fixture(scope="module")
def tool(draw_once):
    return draw_once(TOOL)


def test_the_whole_report(tool):
    assert lines(text_of(tool)) == lines(TOOL_TEXT)


@pytest.mark.parametrize("options, wanted", VIEWS, ids=[options for options, _ in VIEWS])
def test_each_view(tool, options, wanted):
    title = lines(wanted)[0]
    assert section(text_of(*options.split(), tool), title) == lines(wanted)


# The line below the name.
@pytest.mark.parametrize("settings, wanted", [
    ("", "for <1 ms, exit status 0"),
    ("!wait_status 768", "for <1 ms, exit status 3"),
    ("!wait_status 9", "for <1 ms, killed by SIGKILL"),
    ("!wait_status 139", "for <1 ms, killed by SIGSEGV"),  # and dumped core
    ("!wait_status -1", "for <1 ms"),
    ("!runtime_ms 999", "for 999 ms, exit status 0"),
    ("!runtime_ms 61000\n!host h", "on h, for 1 min 01 s, exit status 0"),
    ("!start_unix_ms 1000", "1970-01-01 00:00:01 +0000, for <1 ms, exit status 0"),
])
def test_the_circumstances(draw, settings, wanted):
    text = text_of(draw(f"{settings}\nprocess app\nthread main\nmain 1 1\n"))
    assert lines(text)[1:3] == ["  " + wanted, "  1 process, 1 thread, 1 call stack"]


@pytest.mark.parametrize("name, wanted", [("child", "(8 child)"), ("", "(8)")])
def test_a_process_may_be_killed_before_it_has_a_name(draw, name, wanted):
    run = cairn("report", draw(f"!lived 0 7 -1 0 9\n!lived 1 8 0 1 5\n!flags 0 1\n!flags 1 64\nprocess app\n"
                               f"thread main\nmain 1 1\nprocess {name}\nthread main\nmain 1 1\n"))
    words = " ".join(run.stdout.decode().split())
    assert f"1 process was killed or ended without exit {wanted}: one call " in words


@pytest.mark.parametrize("settings, wanted", [
    ("", "100 bytes after <1 ms"),
    ("!peak_error_bytes 7\n!peak_time_ms 5", "100 bytes, at least 93, at most 107 after 5.00 ms"),
])
def test_the_peak(draw, settings, wanted):
    text = text_of(draw(f"{settings}\nprocess app\nthread main\nmain 1 100 1 100 0 0 1 100 100\n"))
    assert f"  peak heap         100 B  {wanted}" in lines(text)
    assert "  leaked              0 B  0 bytes in 0 blocks" in lines(text)


@pytest.mark.parametrize("error, is_shown", [(86420, False), (123455, False), (123456, True)])
def test_the_first_screen_has_only_bounds_that_are_a_hundredth_off(draw, error, is_shown):
    path = draw(f"!peak_error_bytes {error}\n!peak_time_ms 5\nprocess app\nthread main\nmain 1 12345678 0 0 0 0 1 12345678 1\n")
    screen = cairn("report", path).stdout.decode()
    assert ("at least" in screen, "at most" in screen) == (is_shown, is_shown)
    assert "at least" in cairn("report", "--all", path).stdout.decode()


def test_the_bounds_of_the_peak_are_below_it_if_the_line_is_too_long(draw):
    size = 12345678
    path = draw("!peak_error_bytes 700000\n!peak_time_ms 5\nprocess app\nthread main\n"
                f"main 1 {size} 0 0 0 0 1 {size} {size}\n")
    bounds = "at least 11,645,678, at most 13,045,678 after 5.00 ms"
    whole = f"  peak heap      11.8 MiB  12,345,678 bytes, {bounds}"
    assert whole in lines(text_of("--width", str(len(whole)), path))
    shown = lines(text_of("--width", str(len(whole) - 1), path))
    at = shown.index("  peak heap      11.8 MiB  12,345,678 bytes,")
    assert shown[at + 1] == f"{bounds:>{27 + len(bounds)}}"


# Each table with a limit: its maximal number of lines, and the line about the rest.

def functions(count):
    sizes = ((at, (count - at) * 1000) for at in range(count))
    return "process app\nthread main\n" + "".join(
        f"app!main;app!g{at:02}(a.c:{at + 1}) 1 {size} 0 0 0 0 1 {size} {size}\n" for at, size in sizes)


def processes(count):
    return "".join(f"process p{at:02}\nthread main\nmain 1 100 0 0 0 0 1 100 100\n" for at in range(count))


def events(count):
    return "process app\nthread main\nmain 1 1\n" + "".join(
        f"event main;[f{at:02} sent] 3 512\n" for at in range(count))


def files(count):
    return ("!rss 1 0 1000000\n!snapshot 1 0 3 0 0 0 0 0 1000000 0 0 0\n" + "".join(
        f"!part 0 6 0 {(count - at) * 1024} 65536 f{at:02}\n" for at in range(count)) + "main 1 1\n")


@pytest.mark.parametrize("draw_some, options, mark, most, more", [
    (functions, "--group-by=function", "  g", 20, ("and 1 more", "and 2 more")),
    # main, and one less
    (functions, "--functions", "  g", 19, ("and 1 more function", "and 2 more functions")),
    (functions, "--callers=main", "  g", 10, None),
    (functions, "--callers=g", "(it allocates itself)", 20,
     ("and 1 more function that match", "and 2 more functions that match")),
    (functions, "--tree=top-down -n 5", "  g", 4, None),
    (processes, "", " at its peak", 12, ("and 1 more process", "and 2 more processes")),
    (events, "", "  [f", 20, ("and 1 more", "and 2 more")),
    (files, "", "of 64.0 KiB", 5, ("1.00 KiB in 1 more", "3.00 KiB in 2 more")),
])
def test_tables_are_cut_and_say_so(draw, draw_some, options, mark, most, more):
    for over in range(3):
        text = text_of(*options.split(), draw(draw_some(most + over)))
        assert text.count(mark) == most, text
        endings = [line.strip() for line in lines(text) if " more" in line]
        if more is not None:
            assert endings == ([more[over - 1]] if over else []), text


@pytest.mark.parametrize("shown, more", [(1, "6 B by 2 more stacks"), (2, "2 B by 1 more stack"), (3, None)])
def test_stacks_are_cut_and_say_so(draw, shown, more):
    file = draw("".join(f"main;f{size};leaf 1 {size} 0 0 0 0 1 {size} {size}\n" for size in (2, 4, 6)))
    run = cairn("report", "-p", "-s", str(shown), file)
    endings = [line.strip() for line in run.stdout.decode().splitlines() if " more " in line]
    assert (run.returncode, endings) == (0, [more] if more else [])


RSS = """\
!runtime_ms 2000
!rss 100 0 8388608
!rss 1900 0 5242880
!snapshot 100 0 9 1048576 524288 262144 2097152 131072 3145728 65536 786432 327680
!snapshot 1900 0 2 524288 262144 131072 1048576 131072 2097152 65536 786432 196608
!part 0 4 0 2097152 4194304\x20
!part 0 6 0 1048576 2097152 /usr/lib/big.so
!part 0 6 0 1048576 2097152 /usr/lib/big.so
!part 0 6 0 16384 65536 /usr/lib/e.so
!part 0 7 0 65536 131072 /dev/shm/x
!part 0 9 0 327680 400000 [heap inherited over fork]
process tool
thread main
main 1 1
"""

RSS_TEXT = """\
RESIDENT MEMORY: what RSS consisted of

                            at the peak, 100 ms      at the end, 1.90 s
  # live heap blocks      ~   1.00 MiB  12.5%         512 KiB  10.0%
  : rounding in blocks    ~    512 KiB   6.3%    ~    256 KiB   5.0%
  . kept by the allocator ~    256 KiB   3.1%    ~    128 KiB   2.5%
  M mapped by the program     2.00 MiB  25.0%        1.00 MiB  20.0%
  T thread stacks              128 KiB   1.6%         128 KiB   2.5%
  F files                     3.00 MiB  37.5%        2.00 MiB  40.0%
  S shared memory             64.0 KiB   0.8%        64.0 KiB   1.3%
  c cairn's own                768 KiB   9.4%         768 KiB  15.0%
  ? not explained              320 KiB   3.9%         192 KiB   3.8%
  = resident                  8.00 MiB               5.00 MiB

  peak    ########::::..MMMMMMMMMMMMMMMMMTFFFFFFFFFFFFFFFFFFFFFFFFFcccccc???
  end     #######:::..MMMMMMMMMMMMMTFFFFFFFFFFFFFFFFFFFFFFFFFFFScccccccccc??

  mapped by the program
      2.00 MiB of 4.00 MiB        anonymous

  files
      2.00 MiB of 4.00 MiB        /usr/lib/big.so
      16.0 KiB of 64.0 KiB        /usr/lib/e.so

  shared memory
      64.0 KiB of 128 KiB         /dev/shm/x

  not explained
       320 KiB of 391 KiB         [heap inherited over fork]
"""


def test_resident_memory(draw):
    shown = section(text_of(draw(RSS)), "RESIDENT")
    wanted = lines(RSS_TEXT)
    assert shown[:len(wanted)] == wanted
    remarks = " ".join(shown[len(wanted):])
    assert re.search(r"\b100 ms before the end\.", remarks) and "estimate" in remarks and "cairn's" in remarks
    assert "highest" not in remarks


@pytest.mark.parametrize("option, shows", [
    ("--process=1000", True), ("--filter-function=main", False), ("--focus=main", False),
    ("--ignore=nothing", False), ("--show-from=main", False), ("--thread=main", False),
])
def test_resident_memory_is_that_of_whole_processes(draw, option, shows):
    """A page has no function and no thread."""
    run = cairn("report", "--all", option, draw(RSS))
    assert run.returncode == 0
    assert (b"RESIDENT MEMORY" in run.stdout) == shows


@pytest.mark.parametrize("frames", [["main"], ["main", "grow"]])
def test_frames_outside_main_are_left_out(draw, frames):
    """Also of a stack that has no other function inside of main."""
    file = draw(";".join(["_start", *frames]) + " 1 8 0 0 0 0 1 8 8\n")
    for options, outside in (((), []), (("--full-names",), ["_start"])):
        run = cairn("report", "-p", *options, file)
        assert re.findall(r"^ {8}(\w+)", run.stdout.decode(), re.M) == frames[::-1] + outside


# The memory snapshot counts as the peak's if it has 95 % of the highest RSS. The highest RSS is
# named if it is over 1 % higher.
@pytest.mark.parametrize("peak, is_of_peak, named", [
    (1_000_000, True, None), (1_010_000, True, None), (1_010_001, True, ["986 KiB"]),
    (1_052_631, True, ["1.00 MiB"]), (1_052_633, False, ["1.00 MiB", "1.00 ms"]),
])
def test_how_near_the_peak_was_seen(draw, peak, is_of_peak, named):
    text = text_of(draw(f"!runtime_ms 9\n!rss 1 0 {peak}\n!snapshot 2 0 19 0 0 0 0 0 1000000 0 0 0\nmain 1 1\n"))
    shown = section(text, "RESIDENT")
    assert ("at the peak," in shown[2]) == is_of_peak
    said = [re.findall(r"[\d.]+ \w+", line) for line in shown if "was highest with" in line]
    assert said == ([named] if named else [])
    assert "before the end" not in "".join(shown)  # it waited for its last snapshot


# The buckets of this drawing are 0, 1, 8 and 9, 10 and 11, 16 to 19 (docs/format/recording.md).
HISTOGRAM = """\
process tool
thread main
main 15 105 5 9
size 0 1 0
size 1 2 2
size 8 3 24
size 9 4 40
size 12 5 80
life 0 2 100
life 8 3 90
"""


def test_histograms(draw):
    path = draw(HISTOGRAM)
    assert section(text_of("--histogram", path), "SIZES") == lines("""\
SIZES: of all allocations

                      0 B             1   6.7%         0 B  ##
                      1 B             2  13.3%         2 B  #####
         2 B to      <4 B             0     0%         0 B
         4 B to      <8 B             0     0%         0 B
         8 B to     <16 B             7  46.7%        64 B  ####################
        16 B to     <20 B             5  33.3%        80 B  ##############

LIFETIMES: of the blocks that were freed

                    <1 ms             2  40.0%       100 B  #############
                  1.00 ms             0     0%         0 B
     2.00 ms to  <4.00 ms             0     0%         0 B
     4.00 ms to  <8.00 ms             0     0%         0 B
     8.00 ms to  <10.0 ms             3  60.0%        90 B  ####################
""")
    assert section(text_of("--group-by=size", path), "BY SIZE") == lines("""\
BY SIZE

   allocations     allocated
             1           0 B                0 B
             2           2 B                1 B
             7          64 B                8 B to 15 B
             5          80 B                16 B to 31 B
""")


# A count of one has a bar of one character, however small its share is.
def test_a_small_count_has_a_bar(draw):
    text = text_of("--histogram", draw("main 1001 1001\nsize 0 1 0\nsize 1 1000 1000\n"))
    bars = [line.split()[-1] for line in section(text, "SIZES")[2:4]]
    assert bars == ["#", "#" * 20]


# A view that cannot be drawn gives an error message and the status of a usage error.
@pytest.mark.parametrize("options, status", [
    ("--tree=sideways", 2), ("--group-by=colour", 2), ("-n x", 2), ("--nothing", 2), ("", 0), ("--functions", 0),
])
def test_the_exit_status(tool, options, status):
    assert cairn("report", "--all", *options.split(), tool).returncode == status


@pytest.mark.parametrize("runtime_ms, rate", [(0, ""), (1, "  1,124,000 a second"), (2, "  562,000 a second")])
def test_a_rate_needs_time(draw, runtime_ms, rate):
    path = draw(TOOL.replace("!runtime_ms 2000", f"!runtime_ms {runtime_ms}").replace("!peak_time_ms 250\n", ""))
    assert f"  allocations       1,124{rate}\n" in text_of(path)

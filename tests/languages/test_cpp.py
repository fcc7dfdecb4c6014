# SPDX-License-Identifier: MIT
"""docs/user/cpp.md: each file and each command of it, in the order of the page; and include/cairn.hpp with each test
library, where budgets are exceeded in every way."""
import json
import re

import pytest

from cairn_run import ROOT, some_of
from conftest import files_of
from test_production import commands_of

# The same tests for each library. `CHECK_IT` ... are the header's macros for it.
TESTS = """
#include <cairn.hpp>
#include <cstdlib>
#include <stdexcept>
static void use(int count)
{
    for (int i = 0; i < count; i++) { void *volatile block = malloc(100); free(block); }
}
static void fails() { throw std::runtime_error("of the work"); }
static void *volatile kept;
static bool goes_on = false;

A_TEST(kept_budgets)
{
    CHECK_IT(cairn::budget().allocations(2).peak(100).live_blocks(0).live_bytes(0).temporary(2).allocated_bytes(200), use(2));
    HERE_IT(cairn::budget().allocations(3));
    use(3);
}
A_TEST(too_many)
{
    CHECK_IT(cairn::budget().allocations(2).temporary(1), use(3));
    goes_on = true;
}
A_TEST(went_on) { IS_TRUE(goes_on); goes_on = false; }
A_TEST(remains) { CHECK_IT(cairn::budget().live_bytes(10).live_blocks(0).peak(69), kept = malloc(70)); }
A_TEST(rest_of_block)
{
    HERE_IT(cairn::budget().allocated_bytes(499));
    use(5);
}
A_TEST(of_process) { CHECK_IT(cairn::budget().of_process().allocations(0), use(1)); }
A_TEST(fatal)
{
    STOP_AT(cairn::budget().allocations(0), use(4));
    goes_on = true;
}
A_TEST(stopped) { IS_TRUE(!goes_on); }
A_TEST(exceptions_end_a_peak)
{
    for (int i = 0; i < 20; i++) {
        try { CHECK_IT(cairn::budget().peak(0), fails()); } catch (const std::runtime_error &) { }
    }
    CHECK_IT(cairn::budget().peak(99), use(1));
}
"""
LIBRARIES = {
    "gtest": ("#include <gtest/gtest.h>\n#define A_TEST(name) TEST(Budgets, name)\n#define IS_TRUE EXPECT_TRUE\n"
              "#define CHECK_IT CAIRN_EXPECT\n#define HERE_IT CAIRN_EXPECT_HERE\n#define STOP_AT CAIRN_ASSERT\n",
              "-lgtest_main -lgtest -pthread", ""),
    "catch2": ("#include <catch2/catch.hpp>\n#define A_TEST(name) TEST_CASE(#name)\n#define IS_TRUE REQUIRE\n"
               "#define CHECK_IT CAIRN_CHECK\n#define HERE_IT CAIRN_CHECK_HERE\n#define STOP_AT CAIRN_REQUIRE\n",
               "-lCatch2WithMain", ""),
    "doctest": ("#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN\n#include <doctest/doctest.h>\n"
                "#define A_TEST(name) TEST_CASE(#name)\n#define IS_TRUE REQUIRE\n"
                "#define CHECK_IT CAIRN_CHECK\n#define HERE_IT CAIRN_CHECK_HERE\n#define STOP_AT CAIRN_REQUIRE\n",
                "", "--no-colors"),
}
SAID = ["3 allocations; at most 2 allowed", "3 temporary allocations; at most 1 allowed", "70 bytes at once; at most 69 allowed",
        "1 block not freed; at most 0 allowed", "70 bytes not freed; at most 10 allowed", "500 bytes allocated; at most 499 allowed",
        "1 allocation; at most 0 allowed", "4 allocations; at most 0 allowed", "100 bytes at once; at most 99 allowed"]


@pytest.mark.parametrize("library", [pytest.param(name, marks=pytest.mark.nightly if name != "gtest" else []) for name in LIBRARIES])
def test_exceeded_budgets_fail_in_the_words_of_the_library(workshop, library):
    """Each figure is that of the test's own calls of malloc. Without a recorder all budgets are kept."""
    head, libraries, options = LIBRARIES[library]
    workshop.write("budgets.cpp", head + TESTS)
    workshop.run(f"g++ -O0 -Wall -Wextra -Werror $(pkg-config --cflags cairn) budgets.cpp -o budgets {libraries}")
    alone = workshop.run(f"./budgets {options}", status=1)  # `stopped` fails, as nothing stops `fatal`
    assert not any(line in alone for line in SAID), alone
    status = {"gtest": 1, "catch2": 6, "doctest": 1}[library]
    recorded = workshop.run(f"cairn record -q -o budgets.cairn ./budgets {options}", status=status)
    found = re.findall(r"\d+ [a-z ]+; at most \d+ allowed", recorded)
    assert found == SAID, recorded


@pytest.mark.parametrize("compiler", some_of(["g++ -std=c++23", "clang++ -std=c++20", "clang++ -std=c++11", "g++ -std=c++11"], 4))
def test_the_header_compiles_without_warnings(workshop, compiler):
    workshop.write("all.cpp", "#define CAIRN_SHOW_WARNINGS\n#include <cairn.hpp>\n#include <cairn.hpp>\n"
                   "template class cairn::guard<void (*)(const std::string &)>;\n"
                   "int main() { cairn::measurement m(cairn::budget().peak(1)); return m.end().holds() ? 0 : 1; }\n")
    warnings = "-Wall -Wextra -Wconversion -Werror -fsyntax-only"
    workshop.run(f"{compiler} {warnings} -I {ROOT}/include all.cpp")


@pytest.mark.nightly
def test_each_file_and_command_of_the_guide_works(workshop):
    for name, text in files_of("cpp").items():
        workshop.write(name, text)
    page = (ROOT / "docs/user/cpp.md").read_text()
    commands = [line for line in commands_of(page) if not line.startswith((" ", "cairn_add_test"))]
    printed = [workshop.run(command, status=8 if number == 2 else 0) for number, command in enumerate(commands)]
    assert [command.split()[0] for command in commands] == \
        ["cmake", "cmake", "ctest", "cairn", "sed", "cmake", "ctest", "g++", "cairn", "g++", "./words_alone", "cairn",
         "g++", "cairn"]
    failure, alone = (text.splitlines() for kind, text in re.findall(r"^```(\w*)\n(.*?)^```", page, re.M | re.S) if not kind)
    at = [line.removeprefix(f"{workshop.folder}/") for line in printed[2].splitlines()].index(failure[0])
    assert printed[2].splitlines()[at + 1:at + 3] == failure[1:]
    assert "4   100%  words_of" in printed[3] and "words.hpp:12" in printed[3]
    assert "100% tests passed, 0 tests failed out of 2" in printed[6]
    assert printed[10].splitlines()[0] == "not recorded" and printed[11].splitlines() == alone
    (bench,) = json.loads((workshop.folder / "bench.json").read_text())["benchmarks"]
    assert f"`allocs_per_iter` is {bench['allocs_per_iter']:g}," in page
    assert (bench["net_heap_growth"], bench["max_bytes_used"] > 8 * 32) == (0, True)


def test_cairn_add_test_gives_its_budgets_to_cairn_check(workshop):
    workshop.write("own.c", "#include <stdlib.h>\nvoid *volatile kept;\n__attribute__((noinline)) void parse(int n)\n"
                   "{ for (int i = 0; i < n; i++) { kept = malloc(100); } }\n"
                   "int main(int count, char **words) { parse(count > 1 ? atoi(words[1]) : 0); return 0; }\n")
    workshop.write("CMakeLists.txt", """cmake_minimum_required(VERSION 3.18)
project(own C)
enable_testing()
find_package(cairn 1 REQUIRED)
add_executable(own own.c)
target_link_libraries(own PRIVATE cairn::cairn)
cairn_add_test(NAME kept COMMAND own 3 MAX_PEAK 300 MAX_LEAKED 300 FUNCTION "^parse$" MAX_ALLOCATIONS 3)
cairn_add_test(NAME leaks COMMAND own 3 MAX_LEAKED 0)
cairn_add_test(NAME calls COMMAND own 3 FUNCTION "^parse$" MAX_ALLOCATIONS 2 OPTIONS --max-frames 8)
cairn_add_test(NAME other COMMAND sh -c "exit 3" MAX_PEAK 1GiB)
cairn_add_test(NAME fails COMMAND sh -c "exit 3")
cairn_add_test(NAME shown COMMAND own 3 OPTIONS --blocks)
""")
    workshop.run("cmake -B build && cmake --build build")
    out = workshop.run("ctest --test-dir build -V", status=8)
    results = dict(re.findall(r"Test +#\d+: (\w+) \.*(?:\*\*\*)? *(\w+)", out))
    assert results == {"kept": "Passed", "leaks": "Failed", "calls": "Failed", "other": "Failed", "fails": "Failed",
                       "shown": "Passed"}, out
    assert re.search(r"BROKEN +max-leaked +300 B; at most 0 B allowed", out) and re.search(r"BROKEN +max-allocations of \^parse\$ +3; at most 2 allowed", out)
    assert (workshop.folder / "build/shown.cairn").exists() and (workshop.folder / "build/fails.cairn").exists()
    workshop.write("CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(own C)\nfind_package(cairn)\n"
                   "cairn_add_test(NAME x)\n")
    assert "cairn_add_test needs NAME and COMMAND" in workshop.run("cmake -B other", status=1)

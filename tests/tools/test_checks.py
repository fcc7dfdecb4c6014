# SPDX-License-Identifier: MIT
"""Each check of tools/ accepts this tree's rules and finds what it is there to find."""
import json
import os
import pathlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import traceback

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "// SPDX-License-Identifier: MIT\n"


def be(tool, words, said):
    """Be that tool: never returns."""
    os.dup2(said.fileno(), 1)
    os.dup2(said.fileno(), 2)
    sys.stdout = sys.stderr = os.fdopen(1, "w")
    sys.argv = [str(tool), *map(str, words)]
    sys.path.insert(0, str(tool.parent))
    try:
        runpy.run_path(str(tool), run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:  # a tool that fails is what its caller sees
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    os._exit(status)


def run(tool, *words):
    """A tool in Python runs in a copy of this process: to start Python takes most of the time of such a run."""
    tool = ROOT / "tools" / tool
    if tool.suffix != ".py":
        result = subprocess.run([tool, *words], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            be(tool, words, said)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return status, said.read().decode()


@pytest.fixture
def tree(tmp_path):
    """An empty project with this one's layout rules; call it with path=text to add files."""
    shutil.copy(ROOT / ".clang-format", tmp_path)
    shutil.copy(ROOT / ".clang-tidy", tmp_path)

    def add(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path
    return add


@pytest.mark.parametrize("name, text, finding", [
    ("src/base/a.h", '#include "host/text/strbuf.h"\n', "base may not use host/text/strbuf.h"),
    ("src/target/preload/real/a.c", '#include "host/os/file.h"\n', "target/preload/real may not use"),
    ("src/target/unwind/a.c", '#include "target/preload/record/record_guard.h"\n', "target/unwind may not use"),
    ("src/recorder/a.c", '#include "cli/options/options.h"\n', "recorder may not use cli/options"),
    ("src/recorder/session/a.c", '#include "recorder/ingest/drain.h"\n', "recorder/session may not use"),
    ("src/symbols/a.c", '  #  include "profile/model/profile.h"\n', "symbols may not use profile/model"),
    ("src/host/os/a.c", '#include "vec.h"\n', "by its path from src/"),
    ("src/host/os/a.c", '#include "host/text/b.c"\n', "includes a source file"),
    ("src/cli/a.c", '#include "recording/test_support/b.h"\n', "cli may not use recording/test_support"),
    ("src/base/a_test.c", '#include "host/os/file.h"\n', "base may not use host/os/file.h"),
    ("src/unheard/a.c", "", "not in the table"),
    ("src/host/unheard/a.c", "", "not in the table"),
])
def test_layers_finds(tree, name, text, finding):
    status, said = run("check_layers.py", tree({name: text}))
    assert (status, finding in said) == (1, True), said


@pytest.mark.parametrize("name, header", [
    ("src/host/os/a.c", "base/err.h"),
    ("src/host/os/a.c", "host/text/strbuf.h"),
    ("src/host/os/a.c", "cpu_arch.h"),
    ("src/host/text/a_test.c", "host/os/file.h"),
    ("src/recorder/ingest/drain_test.c", "target/producer/session_join.h"),
    ("src/profile/growth/growth_test.c", "recording/test_support/recording_text.h"),
    ("src/host/test_programs/a.c", "b.h"),
])
def test_layers_accepts(tree, name, header):
    text = f'#include <stdio.h>\n#include "{header}"\n'
    status, said = run("check_layers.py", tree({name: text}))
    assert (status, said) == (0, "")


def test_layers_finds_a_folder_of_too_many_files(tree):
    status, said = run("check_layers.py", tree({f"src/base/a{i}.h": "" for i in range(26)}))
    assert (status, "src/base: 26 files, at most 25" in said) == (1, True), said


@pytest.mark.parametrize("includes, finding", [
    ({"a.c": ["a.h"], "b.c": ["b.h", "a.h"]}, ""),
    ({"a.c": ["a.h", "b.h"], "b.c": ["b.h", "a.h"]}, "src/base/a: includes itself by way of b\n"),
    ({"a.h": ["b.h"], "b.c": ["c.h"], "c.c": ["a.h"]}, "src/base/a: includes itself by way of b, c\n"),
    ({"a.c": ["a_b.h"], "a_b.h": ["a.h"], "a_c.c": ["a_b.h"]}, ""),  # parts of one thing
    ({"a.c": ["a_b.h"], "a_b.c": ["ab.h"], "ab.c": ["a.h"]}, "src/base/a: includes itself by way of a_b, ab\n"),
    ({"a.c": ["b.h"], "b_test.c": ["a.h"]}, ""),
])
def test_layers_finds_files_that_include_each_other_in_a_circle(tree, includes, finding):
    files = {f"src/base/{name}": "".join(f'#include "base/{header}"\n' for header in headers)
             for name, headers in includes.items()}
    status, said = run("check_layers.py", tree(files))
    assert (status, said) == (int(finding != ""), finding)


def compile_object(root, name):
    """Compile a source of the tree to where CMake puts its object."""
    module, _, rest = name.partition("/")
    place = root / f"build/src/{module}/CMakeFiles/x.dir/{rest}.o"
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-c", root / "src" / name, "-o", place], check=True)


@pytest.mark.parametrize("user, definer, finding", [
    ("host/os/a.c", "base/b.c", ""),
    ("host/os/a.c", "host/os/b.c", ""),
    ("host/text/a.c", "host/os/b.c", "src/host/text/a.c: may not use needed of host/os/b.c\n"),
    ("base/a.c", "cli/b.c", "src/base/a.c: may not use needed of cli/b.c\n"),
    ("base/a_test.c", "cli/b.c", ""),
    ("host/os/a.c", "target/preload/exports/b.c", ""),  # libc has the name, too
    ("target/preload/record/a.c", "target/agent/b.c", ""),  # a way into the target
    ("host/os/a.c", "target/agent/b.c", "src/host/os/a.c: may not use needed of target/agent/b.c\n"),
])
def test_symbols_finds_what_a_lower_folder_takes_from_an_upper_one(tree, user, definer, finding):
    root = tree({f"src/{user}": "int needed(void); int a(void); int a(void) { return needed(); }",
                 f"src/{definer}": "int needed(void); int needed(void) { return 1; }"})
    for name in (user, definer):
        compile_object(root, name)
    status, said = run("check_symbols.py", root, root / "build")
    assert (status, said) == (int(finding != ""), finding)


@pytest.mark.parametrize("names, calls, finding", [
    (("host/os/a.c", "host/os/b.c"), ("b", "a"), "src/host/os/a.c: calls itself by way of host/os/b.c\n"),
    (("host/os/a.c", "host/os/b.c", "host/os/c.c"), ("b", "c", "a"),
     "src/host/os/a.c: calls itself by way of host/os/b.c, host/os/c.c\n"),
    (("host/os/a.c", "host/os/b.c", "host/os/c.c"), ("b", "c", "c"), ""),
    (tuple(f"target/preload/record/{name}.c" for name in ("record", "record_guard", "record_mapping")),
     ("record_mapping", "record_mapping", "record_mapping"),
     "src/target/preload/record/record.c: CIRCLES has a circle with target/preload/record/record_guard.c, "
     "target/preload/record/record_mapping.c that is none\n"),
])
def test_symbols_finds_files_that_call_each_other_in_a_circle(tree, names, calls, finding):
    root = tree({f"src/{name}": f"int {call}(void); int {pathlib.Path(name).stem}(void); "
                 f"int {pathlib.Path(name).stem}(void) {{ return {call}(); }}" for name, call in zip(names, calls)})
    for name in names:
        compile_object(root, name)
    status, said = run("check_symbols.py", root, root / "build")
    assert (status, said) == (int(finding != ""), finding)


@pytest.mark.parametrize("name, call, finding", [
    ("symbols/a.c", "open", "src/symbols/a.c: host/os/target_file.h opens what a process names\n"),
    ("recorder/runtimes/a.c", "fopen64", "src/recorder/runtimes/a.c: host/os/target_file.h opens what a process names\n"),
    ("cli/names/a.c", "file_read", "src/cli/names/a.c: host/os/target_file.h opens what a process names\n"),
    ("symbols/a_test.c", "open", ""),
    ("cli/a.c", "open", ""),  # what its user names
    ("symbols/name_cache.c", "open", ""),
    ("symbols/name_cache.c", "close", "src/symbols/name_cache.c: opens nothing, and is in OPENERS\n"),
])
def test_symbols_finds_what_opens_a_path_of_a_process(tree, name, call, finding):
    root = tree({f"src/{name}": f"int {call}(void); int a(void); int a(void) {{ return {call}(); }}",
                 "src/base/b.c": "int b(void); int b(void) { return 1; }"})
    for source in (name, "base/b.c"):
        compile_object(root, source)
    status, said = run("check_symbols.py", root, root / "build")
    assert (status, said) == (int(finding != ""), finding)


@pytest.mark.parametrize("name, finding", [
    ("host/a.c", "src/host/a.c: of_both is also a name of libother.so\n"),
    ("target/a.c", ""),  # cairn does not link it
])
def test_symbols_finds_a_name_that_a_library_has_too(tree, name, finding):
    text = "int of_both(void); int of_both(void) { return 1; }"
    root = tree({f"src/{name}": text, "other.c": text,
                 "main.c": "int of_both(void); int main(void) { return of_both(); }"})
    compile_object(root, name)
    (root / "build/bin").mkdir()
    library = root / "libother.so"
    subprocess.run(["cc", "-shared", "-fPIC", root / "other.c", "-o", library], check=True)
    subprocess.run(["cc", root / "main.c", library, f"-Wl,-rpath,{root}", "-o", root / "build/bin/cairn"],
                   check=True)
    status, said = run("check_symbols.py", root, root / "build")
    assert (status, said) == (int(finding != ""), finding)


def test_symbols_wants_objects(tree):
    root = tree({"src/base/a.c": ""})
    status, said = run("check_symbols.py", root, root)
    assert (status, "there are no objects" in said) == (1, True), said


def test_sizes_accepts_the_limits_themselves(tree):
    body = "    f();\n" * 70
    text = "void f(void)\n{\n" + body + "}\n"
    files = {"src/host/a.c": text, "src/host/b.c": "\n" * 500, "src/host/b_test.c": "\n" * 800}
    status, said = run("check_sizes.py", tree(files))
    assert (status, said) == (0, "")


def test_sizes_finds_a_long_file_and_a_long_function(tree):
    function = "static enum err\nlong_one(int a,\n         int b)\n{\n" + "    f();\n" * 71 + "}\n"
    python = "def long_two():\n" + "    f()\n" * 71
    root = tree({"src/host/a.c": function, "src/host/b.c": "\n" * 501, "src/host/b_test.c": "\n" * 801,
                 "tools/c.py": python})
    status, said = run("check_sizes.py", root)
    assert status == 1
    assert "long_one has 71 lines" in said
    assert "b.c: 501 lines" in said
    assert "b_test.c: 801 lines" in said
    assert "long_two has 71 lines" in said
    assert len(said.splitlines()) == 4


@pytest.mark.parametrize(("lines", "finding"), [
    (600, ""), (601, "src/host/large.c: 601 lines, more than 600\n"),
    (500, "src/host/large.c: LARGE has it, but it is not large\n")])
def test_sizes_lets_a_large_file_become_smaller_only(tree, lines, finding):
    root = tree({"src/host/large.c": "\n" * lines})
    text = (ROOT / "tools/check_sizes.py").read_text()
    begin, end = text.index("LARGE = {") + len("LARGE = {"), text.index("\n}\n", text.index("LARGE = {"))
    (root / "check_sizes.py").write_text(f'{text[:begin]}\n    "src/host/large.c": 600,{text[end:]}')
    ran = subprocess.run([sys.executable, root / "check_sizes.py", root], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (int(finding != ""), finding)


MODULE = HEAD + "// a: says what it is.\n"


@pytest.mark.parametrize("name, text, finding", [
    ("src/host/a.c", "// a: no licence\n", "does not open with"),
    ("tools/a.py", "#!/usr/bin/env python3\nprint()\n", "does not open with"),
    ("src/host/a.c", HEAD + "int a;\n", "no module comment"),
    ("src/host/a.c", HEAD + '#include "host/b.h"\n', "no module comment"),
    ("src/host/a.h", MODULE + "int a;\n", "no #pragma once"),
    ("src/host/a.c", MODULE + "int  a;\n", "clang-format would change it"),
    ("src/host/a.c", MODULE + "int x(void)\n{\n    return atoi(\"1\");\n}\n", "atoi is banned"),
    ("src/host/a.c", MODULE + "long x(char *a)\n{\n    return strtol(a, &a, 10);\n}\n", "strtol is banned"),
    ("src/host/a.c", MODULE + "void x(char *a)\n{\n    strcpy(a, a);\n}\n", "strcpy is banned"),
    ("src/host/a.c", MODULE + "void x(void)\n{\n    goto end;\nend:;\n}\n", "goto is banned"),
    ("src/host/a.c", MODULE + "int a = open(\"x\", O_WRONLY | O_CREAT, 0600);\n", "O_CREAT without O_EXCL"),
    ("src/host/a.c", MODULE + "#define NS_PER_MS 1000000\n", "have this constant"),
    ("src/host/a.c", MODULE + "enum {\n    PAGE = 4096\n};\n", "have this constant"),
    ("src/host/a.c", MODULE + "int young_count;\n", "'young' is a private word: recent"),
    ("src/host/a.c", MODULE + "// Nobody reads it.\n", "'Nobody' in a comment: name the subject"),
    ("src/host/a.c", MODULE + "// TO" + "DO: later\n", "without the number of its issue"),
    ("src/host/a.c", MODULE + "// long " + "x" * 93 + "\n", "longer than 100 columns"),
    ("src/host/a.c", MODULE + "int a = SYS_landlock_restrict_self;\n", "is not in cmake/older_system.h"),
    ("src/host/a.c", MODULE + 'const char *path = "/proc/%d/root/x";\n', "target_file.h opens what a process names"),
    ("src/host/a.c", MODULE + "int way = ELF_C_READ_MMAP;\n", "target_file.h opens what"),
    ("src/target/preload/record/a.c", MODULE + "void x(void)\n{\n    book_free(p, 1);\n}\n",
     "hooks write to a lane by"),
    ("src/target/agent/a.c", MODULE + "void x(void)\n{\n    lane_producer_reserve(p, 1);\n}\n",
     "hooks write to a lane by"),
    ("src/host/string_util.c", HEAD + "// string_util: bits.\n", "the name says nothing"),
])
def test_style_finds(tree, name, text, finding):
    status, said = run("check_style.py", tree({name: text}))
    assert (status, finding in said) == (1, True), said


def test_style_finds_two_files_of_one_name(tree):
    root = tree({"src/host/a.c": MODULE, "src/profile/a.c": MODULE})
    status, said = run("check_style.py", root)
    assert (status, "the same file name" in said) == (1, True), said


def test_the_formatter_keeps_drawings_in_comments(tmp_path):
    text = "// a:\n//   low        " + "wide " * 30 + "high\n// b\n"
    run_format = ["clang-format", f"--style=file:{ROOT / '.clang-format'}"]
    formatted = subprocess.run(run_format, input=text, capture_output=True, text=True, check=True)
    assert formatted.stdout == text


def test_style_accepts_what_the_rules_allow(tree):
    root = tree({
        "src/host/a.c": MODULE + "// Not strcpy() nor atoi(): see #12. TO" + "DO #12\n"
                        "const char *text = \"strcpy(\";\n",
        "src/host/a_test.c": HEAD + "int test;\n",
        "src/host/b.c": HEAD + '#include "host/b.h"\n',
        "src/target/producer/c.c": MODULE.replace("a:", "c:") + "void x(void)\n{\n    order_free(p, 1);\n}\n",
        "src/target/preload/record/d.c": MODULE.replace("a:", "d:") +
                                         "void x(void)\n{\n    order_try_room(p, lane_free(p, 1));\n}\n",
        "src/base/arch/x86_64/a.h": HEAD + "// a (x86-64): registers.\n#pragma once\n",
        "src/base/arch/aarch64/a.h": HEAD + "// a (aarch64): registers.\n#pragma once\n",
    })
    status, said = run("check_style.py", root)
    assert (status, said) == (0, "")


@pytest.fixture
def tidy(tree, tmp_path):
    """check_tidy.py over a project of one file, src/host/a.c; call it with path=text to add files."""
    build = tmp_path / "build"
    build.mkdir()
    source = tmp_path / "src/host/a.c"
    (build / "compile_commands.json").write_text(json.dumps(
        [{"directory": str(build), "command": f"cc -I{tmp_path}/src -c {source}", "file": str(source)}]))

    def check(files, *options):
        status, said = run("check_tidy.py", *options, tree(files), build)
        kept = os.listdir(build / "tidy") if (build / "tidy").exists() else []
        return status, said, len(kept)
    return check


@pytest.mark.nightly
def test_tidy_finds_and_remembers_only_what_is_clean(tidy):
    for _ in range(2):
        status, said, kept = tidy({"src/host/a.c": "int BadName(int a)\n{\n    return a;\n}\n"})
        assert (status, "readability-identifier-naming" in said, kept) == (1, True, 0), said
    status, said, kept = tidy({"src/host/a.c": "int good_name(int a)\n{\n    return a;\n}\n"})
    assert (status, said, kept) == (0, "clang-tidy: 1 files, 0 with the analyzer, no findings\n", 1)


@pytest.mark.nightly
def test_tidy_looks_again_where_an_included_header_has_changed_and_at_no_other(tidy):
    assert tidy({"src/host/a.c": '#include "host/a.h"\n', "src/host/a.h": '#include "host/b.h"\n',
                 "src/host/b.h": "int first(void);\n", "src/host/c.h": "int other(void);\n"})[2] == 1
    assert tidy({"src/host/c.h": "int another(void);\n"})[2] == 1
    assert tidy({"src/host/b.h": "int second(void);\n"})[2] == 2


DIVIDES_BY_ZERO = "int divide(int a)\n{\n    int zero = 0;\n    return a / zero;\n}\n"


@pytest.mark.nightly
def test_tidy_analyzes_all_files_or_those_that_changed_lately(tidy, history, tmp_path):
    assert tidy({"src/host/a.c": DIVIDES_BY_ZERO})[0] == 0
    status, said, _ = tidy({"src/host/a.c": DIVIDES_BY_ZERO}, "--analyze")
    assert (status, "clang-analyzer-core.DivideZero" in said) == (1, True), said
    assert tidy({"src/host/a.c": DIVIDES_BY_ZERO}, "--analyze-recent")[0] == 0  # a tree without history
    history("2030-01-01T00:00:00Z", "host: Begin")
    subprocess.run(["git", "-C", tmp_path, "add", "src"], check=True)
    assert tidy({"src/host/a.c": DIVIDES_BY_ZERO}, "--analyze-recent")[0] == 1  # it is not committed
    history("2030-01-02T00:00:00Z", "host: Add a division")
    assert tidy({}, "--analyze-recent")[0] == 1  # it came with the newest commit
    history("2030-02-01T00:00:00Z", "host: Add nothing")
    assert tidy({}, "--analyze-recent")[0] == 0


@pytest.mark.parametrize("output, status, want", [
    ("[==========] 5 test(s) run.\n[  PASSED  ] 5 test(s).\n", "run", "5 passed, 0 failed"),
    ("[  PASSED  ] 4 test(s).\n[  FAILED  ] 1 test(s), listed below:\n", "fail",
     "4 passed, 1 failed"),
    ("....F\n1 failed, 4 passed in 2.34s\n", "fail", "4 passed, 1 failed"),
    ("====== 2 passed, 1 error in 0.10s ======\n", "fail", "2 passed, 1 failed"),
    ("killed\n", "fail", "0 passed, 1 failed"),
    ("", "run", "1 passed, 0 failed"),
    ("[  PASSED  ] 4 test(s).\nSegmentation fault\n", "fail", "4 passed, 1 failed"),
    ("[  PASSED  ] 4 test(s).\n90 passed, 2 failed\n", "fail", "90 passed, 2 failed"),
])
def test_cases_are_counted_inside_entries(tmp_path, output, status, want):
    results = tmp_path / "tests.xml"
    results.write_text(f'<testsuite><testcase name="x" status="{status}"><system-out>{output}'
                       "</system-out></testcase></testsuite>")
    _, said = run("count_tests.py", results)
    assert said == want + "\n"


SHAKY = "if [ -e tried ]; then echo well; else : > tried; echo early; exit 1; fi"


@pytest.mark.parametrize("tries, entries, want, status", [
    ("2", {"good": "true", "shaky": SHAKY}, "2 passed, 0 failed", 0),
    ("1", {"good": "true", "shaky": SHAKY}, "1 passed, 1 failed", 8),
    ("2", {"bad": "false", "shaky": SHAKY}, "1 passed, 1 failed", 8),
    ("2", {name: SHAKY for name in "abcd"}, "0 passed, 4 failed", 8),  # too many to be chance
])
def test_continuous_integration_tries_few_failures_again_and_names_them(tmp_path, tries, entries, want, status):
    for name, command in entries.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.sh").write_text(f"cd {tmp_path}/{name}; {command}")
    (tmp_path / "CTestTestfile.cmake").write_text(
        "".join(f'add_test({name} sh "{tmp_path}/{name}/run.sh")\n' for name in entries))
    run_tests = subprocess.run([ROOT / "tools/run_tests.sh", tmp_path, "test", "2"], check=False, capture_output=True,
                               text=True, env={**os.environ, "CAIRN_TEST_TRIES": tries, "CAIRN_ENTRY_TIMES": ""})
    assert run_tests.returncode == status, run_tests.stdout + run_tests.stderr
    assert run_tests.stdout.endswith(f"\n{want}\n")
    if tries == "2" and len(entries) < 4:
        *_, said = run_tests.stdout.partition("once more, alone:")
        assert "\nshaky\n  early\n" in said
        assert re.search("^failed at the first try: .*shaky$", said, re.M)
    else:
        assert "once more" not in run_tests.stdout


@pytest.fixture
def history(tmp_path):
    """Commits with these subjects at a date; call it with the date and them."""
    def git(*words, **environment):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *words],
                       check=True, capture_output=True, env={**os.environ, **environment})

    def add(date, *subjects):
        for subject in subjects:
            git("commit", "--allow-empty", "-m", subject, GIT_COMMITTER_DATE=date)
        return tmp_path

    git("init", "-q")
    return add


@pytest.mark.parametrize("subject, finding", [
    ("recorder: Sample memory maps less often", None),
    ("unit.host, cli: Process what 3 readers pass", None),
    ("docs/format: Bring the pages up to date", None),
    ("recorder: A summit is no height", None),  # no verb list: only forms are seen
    ("recorder: samples memory maps", "not of the form"),
    ("Sample memory maps", "not of the form"),
    ("recorder:Sample memory maps", "not of the form"),
    ("recorder: Sample memory maps.", "not of the form"),
    ("recorder: Samples memory maps", "'Samples' is not in the imperative"),
    ("recorder: Sampled memory maps", "'Sampled' is not in the imperative"),
    ("recorder: Sampling of memory maps", "'Sampling' is not in the imperative"),
    ("recorder: Sample " + "x" * 56, "73 characters, at most 72"),
])
def test_commits_finds(history, subject, finding):
    status, said = run("check_commits.py", history("2030-01-01T00:00:00Z", subject))
    assert (status, finding is None or finding in said) == (0 if finding is None else 1, True), said


def test_commits_leaves_the_past_and_trees_without_git_alone(history, tmp_path):
    root = history("2026-11-01T00:00:00Z", "no rule then")
    assert run("check_commits.py", root) == (0, "")
    status, said = run("check_commits.py", root, "2026-10-01")
    assert (status, "no rule then" in said) == (1, True)
    (tmp_path / "plain").mkdir()
    shutil.rmtree(tmp_path / ".git")
    status, said = run("check_commits.py", tmp_path / "plain")
    assert (status, "no history here" in said) == (0, True)


def test_package_sets_are_known():
    status, said = run("packages.sh", "list", "build")
    assert status == 0
    assert "libdw-dev" in said.splitlines()
    assert "libcmocka-dev" not in said.splitlines()
    status, said = run("packages.sh", "list", "everything")
    assert (status, "no set is called everything" in said) == (2, True)

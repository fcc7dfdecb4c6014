# SPDX-License-Identifier: MIT
"""Programs whose runtime has an allocator of its own: what cairn says of them, recorded from the start, as a
child and attached to, and that it says nothing where a variable shows the objects.

The programs here have no runtime, but the functions, sections or names by which cairn recognises one.
"""
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment
from conversation import ctl
from waiting import read_until, wait_until

# With the variable it allocates as the runtime would; without, it has a chunk of memory.
RUNTIME = """#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef WITH_TEXT
__attribute__((used)) static const char text[] = "mimalloc: a message";
#endif
#ifdef FUNCTION
void FUNCTION(void);
void FUNCTION(void) {}
#endif
static void *volatile block;
int main(void)
{
    const char *setting = getenv("USE_ZEND_ALLOC");
    char letter;
    if (setting != NULL && strcmp(setting, "0") == 0) {
        for (int i = 0; i < 100; i++) {
            block = malloc(40);
        }
    } else {
        char *chunk = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(chunk, 1, 16 << 20);
    }
    (void)!write(1, "ready\\n", 6);
    return read(0, &letter, 1) != 0;
}
"""

PHP = ("runs PHP: its objects come from chunks of its own allocator (Zend); cairn sees each of them only "
       "with USE_ZEND_ALLOC=0")
GO = ("is a Go program: cairn sees what its C code allocates, but not which Go code called it, nor Go's own heap; "
      "runtime/pprof writes profiles of Go's heap, which 'cairn report' opens")
STATIC_GO = "static Go program; runtime/pprof writes profiles of Go's heap, which 'cairn report' opens"


def built(folder, name, *options):
    (folder / "runtime.c").write_text(RUNTIME)
    subprocess.run(["gcc", "-O1", *options, "-o", folder / name, folder / "runtime.c"], check=True, timeout=60)
    return folder / name


@pytest.fixture(scope="module", name="php")
def a_program_with_a_function_of_php(tmp_path_factory):
    return built(tmp_path_factory.mktemp("php"), "php", "-rdynamic", "-DFUNCTION=_emalloc")


@pytest.fixture(scope="module", name="go")
def a_program_with_sections_of_go(tmp_path_factory):
    """Stripped, it has no note: only these sections tell."""
    folder = tmp_path_factory.mktemp("go")
    subprocess.run(["objcopy", "--add-section", ".gopclntab=/dev/null", built(folder, "plain"), folder / "go"],
                   check=True, timeout=60)
    return folder / "go"


@pytest.fixture(scope="module", name="static_go")
def a_static_program_with_sections_of_go(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    subprocess.run(["objcopy", "--add-section", ".go.buildinfo=/dev/null",
                    built(folder, "plain", "-static", "-s"), folder / "go"], check=True, timeout=60)
    return folder / "go"


def recorded(scratch, *command, more=None):
    """Record it as a user would. (Recording, what cairn said)."""
    path = scratch / "x.cairn"
    run = subprocess.run([CAIRN, "record", "-o", path, "--", *command], stdin=subprocess.DEVNULL, text=True,
                         capture_output=True, env=environment(more), check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return Recording(path, run), run.stderr


def attached(scratch, program, more=None):
    """Attach to it while it waits. (run, Recording)."""
    path = scratch / "a.cairn"
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(more)) as process:
        read_until(process.stdout.fileno(), b"ready\n")
        run = subprocess.run([CAIRN, "record", "-o", path, "--duration", "100ms", "-p", str(process.pid)], text=True,
                             capture_output=True, env=environment(), check=False, timeout=120)
        process.communicate(timeout=60)
    assert process.returncode == 0
    return run, Recording(path, run)


def text_of(recording):
    run = subprocess.run([CAIRN, "report", "--width", "300", recording.path], text=True, capture_output=True,
                         env=environment(), check=True, timeout=60)
    return run.stdout


def assert_said(recording, key, why):
    """The report says it as a warning, as the reason of its emptiness, and in JSON."""
    (unseen,) = recording.report["unseen"]
    assert (unseen["reason"], unseen["why"]) == (key, why)
    assert key in [process["runtime"] for process in recording.report["processes"]]
    text = text_of(recording)
    assert f") {why}" in next(line for line in text.splitlines() if line.startswith("!!") and "(pid" in line)
    if recording.totals["allocations"] == 0:
        assert "No allocation was recorded: " in text and f" {why}." in text
    assert "called no allocation function" not in text


def assert_seen(recording):
    """The last process shows the objects of its runtime."""
    assert recording.report["unseen"] == []
    process = recording.report["processes"][-1]
    assert (process["runtime"], process["runtime_objects"]) == ("php", True)
    assert process["costs"]["allocations"] >= 100


def runtimes_so_far(path):
    ctl(path, "checkpoint")
    return [process["runtime"] for process in Recording(path, None).report["processes"]]


@pytest.mark.parametrize("key, why", [("php", PHP), ("go", GO)], ids=["php", "go"])
def test_recorded_from_the_start(scratch, request, key, why):
    program = request.getfixturevalue(key)
    recording, said = recorded(scratch, program)
    assert f"cairn: warning: '{program}' {why}\n" in said
    assert said.count("warning") == 1
    assert_said(recording, key, why)


def test_a_quiet_run_says_nothing(record, php):
    recording = record(php)  # compares what is printed
    assert_said(recording, "php", PHP)


@pytest.mark.parametrize("key, why", [pytest.param("php", PHP, marks=pytest.mark.nightly), ("go", GO)], ids=["php", "go"])
def test_as_children(scratch, request, key, why):
    """Several processes of one program are one line."""
    program = request.getfixturevalue(key)
    recording, said = recorded(scratch, "sh", "-c", f"{program}; {program}; true")
    assert "warning" not in said
    assert [unseen["reason"] for unseen in recording.report["unseen"]] == [key, key]
    lines = [line for line in text_of(recording).splitlines() if line.startswith("!!")]
    (line,) = [line for line in lines if why in line]
    assert str(program) in line and " and 1 more) " in line


@pytest.mark.parametrize("key, why", [("php", PHP), pytest.param("go", GO, marks=pytest.mark.nightly)], ids=["php", "go"])
def test_attached_to(scratch, request, key, why):
    program = request.getfixturevalue(key)
    run, recording = attached(scratch, program)
    assert run.returncode == 0, run.stderr
    assert f"cairn: warning: '{program}' {why}\n" in run.stderr
    assert_said(recording, key, why)


def test_the_variable_shows_the_objects(scratch, php):
    """Then nothing is said, whoever has set it."""
    setting = {"USE_ZEND_ALLOC": "0"}
    recording, said = recorded(scratch, php, more=setting)
    assert "PHP" not in said and "PHP" not in text_of(recording)
    assert_seen(recording)
    run, recording = attached(scratch, php, setting)
    assert "PHP" not in run.stderr and "PHP" not in text_of(recording)
    assert recording.report["unseen"] == []
    assert "called no allocation function while it was recorded" in text_of(recording)


@pytest.mark.parametrize("command", [["env", "USE_ZEND_ALLOC=0", "{}"], ["sh", "-c", "USE_ZEND_ALLOC=0 {}; true"]],
                         ids=["itself", "child"])
def test_the_variable_of_a_process_that_another_one_starts(scratch, php, command):
    """It tells it as it begins to be recorded: here it ends before the recorder, which is stopped, could read it."""
    path = scratch / "x.cairn"
    words = [word.format(php) for word in command]
    with subprocess.Popen([CAIRN, "record", "-o", path, "--", "sh", "-c", 'kill -STOP $PPID; "$@" & wait; kill -CONT $PPID',
                           "sh", *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=environment()) as run:
        _, said = run.communicate(timeout=60)
    assert run.returncode == 0 and b"PHP" not in said
    assert_seen(Recording(path, run))


def test_a_library_of_a_runtime(scratch):
    """From the start its name tells; its function tells, too, in a process that is attached to."""
    (scratch / "library.c").write_text("#include <stdlib.h>\nvoid *jvm(void);\nvoid *jvm(void) { return malloc(7); }\n")
    (scratch / "java.c").write_text(
        "#include <unistd.h>\nvoid *jvm(void);\nvoid *volatile block;\nint main(void)\n{\n    char letter;\n"
        "    block = jvm();\n    (void)!write(1, \"ready\\n\", 6);\n    return read(0, &letter, 1) != 0;\n}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", scratch / "libjvm.so", scratch / "library.c"], check=True, timeout=60)
    subprocess.run(["gcc", "-o", scratch / "java", scratch / "java.c", f"-L{scratch}", "-ljvm",
                    f"-Wl,-rpath,{scratch}"], check=True, timeout=60)
    recording, said = recorded(scratch, scratch / "java")
    assert f"cairn: warning: '{scratch}/java' runs a Java virtual machine: " in said
    assert [unseen["reason"] for unseen in recording.report["unseen"]] == ["java"]
    run, recording = attached(scratch, scratch / "java")
    assert f"cairn: warning: '{scratch}/java' runs a Java virtual machine: " in run.stderr
    assert_said(recording, "java", recording.report["unseen"][0]["why"])


def test_a_static_program_of_go(scratch, static_go):
    """Refused, and as a child not recorded. An unstripped build would not help."""
    run = subprocess.run([CAIRN, "record", "-o", scratch / "x.cairn", "--", static_go], text=True,
                         capture_output=True, env=environment(), check=False, timeout=60)
    assert (run.returncode, run.stderr) == (126, f"cairn: '{static_go}' is a {STATIC_GO}\n")
    recording, said = recorded(scratch, "sh", "-c", f"{static_go}; true")
    assert f"not recorded: {static_go}: {STATIC_GO}\n" in said
    (entry,) = recording.report["unrecorded"]["programs"]
    assert (entry["reason"], entry["text"]) == ("go", STATIC_GO)
    run, _ = attached(scratch, static_go)
    assert run.returncode == 126 and "unstripped" not in run.stderr
    assert f": it {GO}\n" in run.stderr


def test_messages_of_an_allocator_are_no_sign_of_its_use(scratch):
    """Python 3.13 has mimalloc inside and does not use it by default: a debug file would not help."""
    python = built(scratch, "python", "-rdynamic", "-s", "-DWITH_TEXT", "-DFUNCTION=PyMem_RawMalloc")
    _, said = recorded(scratch, python)
    assert said.count("warning") == 1 and "runs Python" in said and "unstripped" not in said
    _, said = recorded(scratch, python, more={"PYTHONMALLOC": "malloc"})
    assert "warning" not in said
    other = built(scratch, "other", "-s", "-DWITH_TEXT")
    _, said = recorded(scratch, other)
    assert f"warning: '{other}' contains mimalloc, but has no symbols" in said


@pytest.mark.parametrize("options", [["-static"], pytest.param(["-static-pie"], marks=pytest.mark.nightly)])
def test_a_static_program_is_recognised_by_any_function(scratch, options):
    """It exports none."""
    python = built(scratch, "python", *options, "-DFUNCTION=PyMem_RawMalloc")
    recording, said = recorded(scratch, python)
    assert said.count("warning") == 1 and f"warning: '{python}' runs Python: small objects " in said
    assert [unseen["reason"] for unseen in recording.report["unseen"]] == ["python"]
    _, said = recorded(scratch, python, more={"PYTHONMALLOC": "malloc"})
    assert "warning" not in said


def test_python(scratch):
    """By default small objects are in arenas, and the variable shows them."""
    command = ["/usr/bin/python3", "-c", "x = [str(i) * 5 for i in range(20000)]"]
    recording, said = recorded(scratch, *command)
    assert "'/usr/bin/python3' runs Python: small objects " in said
    assert "cairn sees each of them only with PYTHONMALLOC=malloc\n" in said
    few = recording.totals["allocations"]
    recording, said = recorded(scratch, *command, more={"PYTHONMALLOC": "malloc"})
    assert "Python" not in said and recording.report["unseen"] == []
    assert recording.totals["allocations"] > few + 20000


def test_node(scratch):
    recording, said = recorded(scratch, "/usr/bin/node", "-e", "0")
    assert "'/usr/bin/node' runs JavaScript by V8: " in said
    assert [unseen["reason"] for unseen in recording.report["unseen"]] == ["v8"]


def test_perl_has_none(scratch):
    recording, said = recorded(scratch, "/usr/bin/perl", "-e", "1")
    assert "warning" not in said and recording.report["unseen"] == []
    assert [process["runtime"] for process in recording.report["processes"]] == [""]

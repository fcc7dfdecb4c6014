# SPDX-License-Identifier: MIT
"""Options from config.toml and CAIRN_OPTIONS, and their order before the command line."""
import pytest

from drawn import cairn

DRAWING = "process app\nthread main\n" + "".join(
    f"main;f{name} {n + 1} 8 0 0 0 0 1 8 8\n" for n, name in enumerate("abcdefghi"))


@pytest.fixture(scope="module", name="path")
def fixture_path(draw_once):
    return draw_once(DRAWING)


@pytest.fixture(name="home")
def fixture_home(tmp_path):
    """Write config.toml and return the variables that name it."""
    def write(text, below="config"):
        folder = tmp_path / below / "cairn"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text)
        return {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    return write


def lines(path, *options, more):
    """The number of lines of a CSV without its header."""
    run = cairn("report", "--csv", *options, path, more=more)
    assert (run.returncode, run.stderr) == (0, b""), run.stderr
    return run.stdout.count(b"\r\n") - 1


def test_the_order_is_file_variable_command_line(path, home):
    more = home("limit = 3\n[report]\nlimit = 4\n[diff]\nlimit = 5\n")
    assert lines(path, more=more) == 4
    assert lines(path, more={**more, "CAIRN_OPTIONS": "--limit=6"}) == 6
    assert lines(path, "-n", "7", more={**more, "CAIRN_OPTIONS": "--limit=6"}) == 7
    assert lines(path, "--no-config", more={**more, "CAIRN_OPTIONS": "--limit=6"}) == 9


@pytest.mark.parametrize("project, user, variable", [
    ("[report]\nx = 1\n", "", ""), ("[record]\nx = 1\n", "", ""), ("x = [\n", "", ""),
    ("", "[check]\nlimit-x = 1\n", ""), ("", "", "--x"),
])
def test_check_without_config_reads_nothing_of_any_file(path, home, tmp_path, project, user, variable):
    """Each of these is a mistake, so that what is read is said."""
    more = {**home(user), "CAIRN_OPTIONS": variable}
    (tmp_path / "cairn.toml").write_text(project)
    for what in ([path], ["--", "/bin/true"]):
        words = ["check", "--max-peak", "1GiB", *what]
        is_read = what[0] == "--" or "[record]" not in project
        assert cairn(*words, more=more, cwd=tmp_path).returncode == (2 if is_read else 0), what
        run = cairn("check", "--no-config", *words[1:], more=more, cwd=tmp_path)
        assert (run.returncode, run.stderr) == (0, b""), (what, run.stderr)


def test_an_entry_before_the_tables_is_for_all_commands_with_it(path, home):
    more = home("limit = 3\nto = 'folded'\n")
    assert lines(path, more=more) == 3
    run = cairn("export", "-o", "-", path, more=more)
    assert (run.returncode, run.stdout.count(b"\n")) == (0, 9)
    assert cairn("dump", path, more=more).returncode == 0


def test_the_home_has_a_usual_place(path, home):
    more = home("[report]\nlimit = 2\n", below=".config")
    for config in ("", "relative"):
        assert lines(path, more={**more, "XDG_CONFIG_HOME": config}) == 2
    assert lines(path, more={**more, "HOME": ""}) == 9


def test_kinds_of_values_and_quotes(path, home):
    more = home("[report]\njson = false\nfunctions = true\nfilter-function = '^f[a-c]$'\n")
    assert lines(path, more=more) == 4  # and main
    for words in ("--filter-function='fa | fb|fa' --functions", '--functions "--filter-function=^f[ab]$"',
                  " --functions\t--filter-function=^f[ab]$  --duration=1s\n"):
        assert lines(path, more={"CAIRN_OPTIONS": words}) == (2 if " | " in words else 3)


def test_record_takes_them_before_the_program(tmp_path, home):
    more = home(f"[record]\noutput = '{tmp_path}/named.cairn'\nquiet = true\n")
    run = cairn("/bin/echo", "--no-config", more=more, cwd=tmp_path)
    assert (run.returncode, run.stdout, run.stderr) == (0, b"--no-config\n", b"")
    assert (tmp_path / "named.cairn").exists()


def test_version_names_the_file(home):
    more = home("limit = 3\n")
    said = cairn("version", "--verbose", more={**more, "CAIRN_OPTIONS": "--limit=4"}).stdout.decode()
    assert said.splitlines()[-2:] == [f"config.toml: {more['XDG_CONFIG_HOME']}/cairn/config.toml",
                                      "CAIRN_OPTIONS: --limit=4"]
    said = cairn("version", "--verbose", more={"HOME": "/dev/null", "XDG_CONFIG_HOME": ""}).stdout.decode()
    assert said.splitlines()[-2] == "config.toml: /dev/null/.config/cairn/config.toml (does not exist)"


@pytest.mark.parametrize("text, said", [
    ("limit = \n", ":1: "),
    ("limit = 3.5\n", ":1: "),
    ("limt = 3\n", ":1: unknown option 'limt'"),
    ("limt = false\n", ":1: unknown option 'limt'"),
    ("[report]\nlimit = 'many'\n", ":2: -n, --limit: 'many' is not a whole number of at least 0"),
    ("[report]\nlimit = true\n", ":2: -n, --limit needs a value"),
    ("[report]\njson = 1\n", ":2: --json takes no value"),
    ("[report]\nthreshold = 5\n", ":2: cairn report has no option 'threshold'"),
    ("[diff]\nthreshold = 'much'\n", ":2: --threshold: 'much' is not a percentage"),
    ("[repot]\nlimit = 3\n", ":1: [repot] is not a command"),
    ("[[report]]\nlimit = 3\n", ":1: [report] is not a command"),
])
def test_a_broken_file_is_one_sentence(path, home, text, said):
    more = home(text)
    run = cairn("report", path, more=more)
    assert (run.returncode, run.stdout) == (2, b"")
    begin = f"cairn: {more['XDG_CONFIG_HOME']}/cairn/config.toml{said}".encode()
    assert run.stderr.startswith(begin) and run.stderr.count(b"\n") == 1, run.stderr
    assert cairn("report", "--no-config", path, more=more).returncode == 0
    assert cairn("version", "--verbose", more=more).returncode == 2
    assert cairn("help", more=more).returncode == cairn("version", more=more).returncode == 0


@pytest.mark.parametrize("words, said", [
    ("-n 3", "'-n' is not an option; write --NAME or --NAME=VALUE"),
    ("--limit 3", "-n, --limit needs a value"),
    ("--lim=3", "unknown option 'lim'"),
    ("--limit=3 x", "'x' is not an option; write --NAME or --NAME=VALUE"),
    ("--", "'--' is not an option; write --NAME or --NAME=VALUE"),
    ("--file='x", "a quote has no end"),
])
def test_a_broken_variable_is_one_sentence(path, words, said):
    run = cairn("report", path, more={"CAIRN_OPTIONS": words})
    assert (run.returncode, run.stderr.decode()) == (2, f"cairn: CAIRN_OPTIONS: {said}\n")


def test_a_folder_is_no_file(path, tmp_path):
    (tmp_path / "cairn/config.toml").mkdir(parents=True)
    run = cairn("report", path, more={"XDG_CONFIG_HOME": str(tmp_path)})
    assert (run.returncode, run.stderr.count(b"\n")) == (2, 1)
    assert b"config.toml" in run.stderr

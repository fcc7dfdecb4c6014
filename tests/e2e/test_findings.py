# SPDX-License-Identifier: MIT
"""Findings on real programs: test_growth.py has those that leak, and test_reallocs.py those that grow by steps."""
import json
import pathlib
import re
import subprocess

import pytest

from cairn_run import CAIRN, IS_NIGHTLY, PROGRAMS, ROOT, environment, some_of

# Short programs of every Debian system. Most free nothing before they end, and none is at fault.
HEALTHY = (["ls", "-lR", "/etc/apt"], ["sort", "/etc/services"], ["grep", "-c", "tcp", "/etc/services"],
           ["sed", "-n", "$p", "/etc/services"], ["awk", "{ n += NF } END { print n }", "/etc/services"],
           ["find", "/etc/apt"], ["wc", "/etc/services"], ["bash", "-c", "for i in 1 2 3; do echo $i; done"],
           ["perl", "-e", "print join ',', sort map { $_ * 7 % 31 } 1 .. 3000"], ["tar", "-cf", "/dev/null", "/etc/apt"],
           ["gzip", "-c", "/etc/services"], ["xz", "-0", "-c", "/etc/services"], ["date"], ["id"], ["env"], ["uname"],
           ["df"], ["ps"], ["seq", "1000"], ["tr", "a", "b"], ["cut", "-c1", "/etc/services"], ["uniq", "/etc/services"],
           ["diff", "/etc/services", "/etc/protocols"], ["md5sum", "/etc/services"], ["od", "/etc/passwd"],
           ["base64", "/etc/services"], ["dpkg", "-l"], ["getent", "passwd"], ["stat", "/etc"], ["du", "/etc/apt"],
           *(command.split() for command in (
               "cat /etc/services", "tac /etc/services", "head /etc/services", "tail /etc/services",
               "nl /etc/services", "fold -w 10 /etc/services", "fmt /etc/services", "pr /etc/services",
               "expand /etc/services", "unexpand -a /etc/services", "paste /etc/services /etc/protocols",
               "join /etc/services /etc/services", "comm /etc/services /etc/services",
               "cmp /etc/services /etc/protocols", "cksum /etc/services", "sum /etc/services",
               "sha1sum /etc/services", "sha256sum /etc/services", "sha512sum /etc/services",
               "b2sum /etc/services", "base32 /etc/services", "shuf /etc/services", "tsort /dev/null",
               "ptx /etc/protocols", "numfmt 1000", "factor 1234567890", "expr 1 + 2", "printf x", "echo x",
               "true", "pwd", "basename /etc/apt", "dirname /etc/apt", "realpath /etc/apt", "readlink /bin",
               "pathchk x", "test -e /etc", "printenv", "nproc", "tty", "whoami", "groups", "logname", "arch",
               "uptime", "free", "vmstat", "pgrep bash", "dir /etc", "vdir /etc", "dircolors",
               "bzip2 -c /etc/services", "zcat /dev/null", "sdiff /etc/services /etc/protocols",
               "egrep tcp /etc/services", "fgrep tcp /etc/services", "file /etc/services", "locale",
               "localedef --list-archive", "ldd /bin/ls", "iconv -f utf8 -t latin1 /etc/protocols",
               "dpkg-query -W", "dpkg-deb --help", "apt-config dump", "gpgv --version", "openssl version",
               "perl -MData::Dumper -e 1", "dash -c :", "sh -c :", "rev /etc/services", "column /etc/protocols",
               "hexdump /etc/passwd", "look a /etc/services", "lscpu", "lsblk", "findmnt", "mount", "cal",
               "getopt a b", "namei /etc/apt", "whereis ls", "which ls", "ar --version", "nm /bin/true",
               "objdump -h /bin/true", "readelf -h /bin/true", "size /bin/true", "strings /bin/true",
               "c++filt _Z1fv", "addr2line --version", "m4 /dev/null", "make --version", "gcc --version",
               "cpp /dev/null", "as --version", "ld --version", "git --version", "sqlite3 :memory: .quit",
               "xxd /etc/passwd")))


@pytest.fixture(scope="module", autouse=True)
def fixture_cache(tmp_path_factory):
    """What code is called is looked up once for all tests of this file: otherwise that takes half of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def findings_of(path):
    run = subprocess.run([CAIRN, "report", "--json", path], check=True, capture_output=True, env=environment(),
                         timeout=60)
    return json.loads(run.stdout)["findings"]["items"]


def findings_of_run(tmp_path, program, *arguments):
    path = tmp_path / "x.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", PROGRAMS / program, *arguments], env=environment(),
                   check=True, timeout=60)
    return findings_of(path)


def test_healthy_programs_have_no_leak_and_do_not_grow(tmp_path):
    count = 0
    for command in some_of(HEALTHY, 16):
        if not pathlib.Path("/usr/bin", command[0]).exists():
            continue
        path = tmp_path / "x.cairn"
        subprocess.run([CAIRN, "record", "-q", "-o", path, "--", *command], env=environment(), check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        kinds = [item["kind"] for item in findings_of(path)]
        assert not {"growth", "unfreed"} & set(kinds), (command, kinds)
        text = subprocess.run([CAIRN, "report", path], check=True, capture_output=True, env=environment(), timeout=60)
        assert text.stdout.count(b"\n") <= 100, command
        count += 1
    assert count >= (100 if IS_NIGHTLY else 7)


def test_memory_that_a_program_maps_itself_explains_its_rss(tmp_path):
    """64 MiB of private anonymous memory, every page of it touched, beside a small heap."""
    program = ("import mmap, os\nm = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
               "for i in range(0, 64 << 20, 4096): m[i] = 1\nos._exit(0)")
    path = tmp_path / "x.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", "/usr/bin/python3", "-c", program], env=environment(),
                   check=True, timeout=60)
    (finding,) = [item for item in findings_of(path) if item["kind"] == "rss"]
    assert finding["bytes"] >= 64 << 20 and "mapped by the program" in finding["sentence"]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_the_sibling_that_holds_most_is_named(tmp_path, kind):
    """Eight times as much as each of its three siblings."""
    (finding,) = [item for item in findings_of_run(tmp_path, "siblings", kind, "8") if item["kind"] == "uneven"]
    assert 31 << 20 <= finding["bytes"] <= 32 << 20  # the peak of several threads has a bound
    who = r"Thread worker-3 holds" if kind == "threads" else r"Process siblings \(pid \d+\) held"
    assert re.match(who + r" 3[12]\.\d MiB at (the|its own) peak; the median of 4 of its kind (holds|held) "
                    r"(4\.00|3\.\d\d) MiB\.$", finding["sentence"]), finding
    assert finding["look"] == ("--group-by=thread" if kind == "threads" else "--group-by=process")
    assert finding["pid"] > 0 and (finding["thread_id"] > 0) == (kind == "threads")


@pytest.mark.parametrize("kind", ["threads", "processes"])
@pytest.mark.parametrize("factor", ["1", "3"])
def test_siblings_that_differ_little_are_no_finding(tmp_path, kind, factor):
    """Three times is 12 MiB: more than the least that is judged."""
    kinds = [item["kind"] for item in findings_of_run(tmp_path, "siblings", kind, factor)]
    assert "uneven" not in kinds and "peak" in kinds


def test_blocks_that_live_under_a_millisecond_are_found(tmp_path):
    """All 120,000; on a busy machine some wait for longer, which the program cannot see."""
    (finding,) = [item for item in findings_of_run(tmp_path, "short_lives", "young") if item["kind"] == "churn"]
    assert finding["function"] == "parse" and "that live for less than a millisecond" in finding["sentence"]
    assert 110_000 <= finding["blocks"] <= 120_000
    assert finding["bytes"] == 100 * finding["blocks"] and finding["whole_bytes"] >= 12_000_000


def test_blocks_that_live_longer_are_no_finding(tmp_path):
    assert not [item for item in findings_of_run(tmp_path, "short_lives", "old") if item["kind"] == "churn"]


def said_findings(text):
    """[kind and sentence] of each finding in a text for the terminal, with the lines joined."""
    found = []
    for line in text[text.index("FINDINGS\n"):].splitlines()[1:]:
        if line.startswith("    "):
            found[-1] += " " + line.strip()
        elif line.startswith("  ") and line.strip():
            found.append(line.strip())
        else:
            return found
    return found


def explained(path):
    """What `cairn check` says of broken budgets, as one line."""
    run = subprocess.run([CAIRN, "check", "--no-config", "--no-color", "--max-peak=0", "--max-leaked=0",
                          "--max-allocations=0", "--max-allocated=0", "--max-temporary-share=0%", "--max-rss=0", path],
                         capture_output=True, text=True, env=environment(), check=False, timeout=60)
    assert run.returncode == 1
    return " ".join(run.stdout.split())


@pytest.mark.parametrize("program", [["leaky"], ["siblings", "threads", "8"], ["short_lives", "young"],
                                     ["survivors"]])
def test_all_outputs_have_one_list(tmp_path, program):
    """The summary after a run, both forms of the report, and the explanations of `cairn check`, as the JSON says."""
    program[0] = PROGRAMS / program[0]
    if program[0].name == "leaky":
        program[0] = tmp_path / "leaky"
        subprocess.run(["cc", "-O1", "-g", "-o", program[0], ROOT / "tests" / "viewer" / "leaky.c"], check=True)
    path = tmp_path / "x.cairn"
    run = subprocess.run([CAIRN, "record", "-o", path, "--", *program], env=environment(), check=True,
                         capture_output=True, text=True, timeout=60)
    items = findings_of(path)
    said = [item["sentence"] + f" [{item['look']}" +
            ("" if item["confidence"] == "high" else f"; confidence: {item['confidence']}") + "]" for item in items]
    listed = [f"{item['kind']} {sentence}" for item, sentence in zip(items, said)][:6]
    assert said_findings(run.stderr) == listed
    for options in ([], ["--all"]):
        text = subprocess.run([CAIRN, "report", *options, path], check=True, capture_output=True, text=True,
                              env=environment(), timeout=60).stdout
        assert said_findings(text) == listed, options
    explanations = explained(path)
    assert [sentence for sentence in said if sentence not in explanations] == []


def test_the_summary_after_a_run_has_the_findings_of_the_report(tmp_path):
    """Little is live while the program works for some time slices; it held more before, and holds most at the end."""
    program = ("@a = map { $_ x 100 } 1 .. 20000; undef @a; $n += $_ for 1 .. 4000000;"
               "@b = map { $_ x 200 } 1 .. 100000;")
    path = tmp_path / "x.cairn"
    run = subprocess.run([CAIRN, "record", "-o", path, "--", "/usr/bin/perl", "-e", program], env=environment(),
                         check=True, capture_output=True, text=True, timeout=60)
    report = subprocess.run([CAIRN, "report", path], check=True, capture_output=True, text=True, env=environment(),
                            timeout=60).stdout
    said = [text[text.index("FINDINGS"):text.index("most at the peak")] for text in (run.stderr, report)]
    assert said[0] == said[1]
    assert "It gained" in said[0]

# SPDX-License-Identifier: MIT
"""Findings on real programs: test_growth.py has those that leak; here are healthy ones."""
import json
import pathlib
import subprocess

from cairn_run import CAIRN, environment

# Short programs of every Debian system. Most free nothing before they end, and none is at fault.
HEALTHY = (["ls", "-lR", "/etc/apt"], ["sort", "/etc/services"], ["grep", "-c", "tcp", "/etc/services"],
           ["sed", "-n", "$p", "/etc/services"], ["awk", "{ n += NF } END { print n }", "/etc/services"],
           ["find", "/etc/apt"], ["wc", "/etc/services"], ["bash", "-c", "for i in 1 2 3; do echo $i; done"],
           ["perl", "-e", "print join ',', sort map { $_ * 7 % 31 } 1 .. 3000"], ["tar", "-cf", "/dev/null", "/etc/apt"],
           ["gzip", "-c", "/etc/services"], ["xz", "-0", "-c", "/etc/services"], ["date"], ["id"], ["env"], ["uname"],
           ["df"], ["ps"], ["seq", "1000"], ["tr", "a", "b"], ["cut", "-c1", "/etc/services"], ["uniq", "/etc/services"],
           ["diff", "/etc/services", "/etc/protocols"], ["md5sum", "/etc/services"], ["od", "/etc/passwd"],
           ["base64", "/etc/services"], ["dpkg", "-l"], ["getent", "passwd"], ["stat", "/etc"], ["du", "/etc/apt"])


def findings_of(path):
    run = subprocess.run([CAIRN, "report", "--json", path], check=True, capture_output=True, env=environment(),
                         timeout=60)
    return json.loads(run.stdout)["findings"]["items"]


def test_healthy_programs_have_no_leak_and_do_not_grow(tmp_path):
    judged = 0
    for command in HEALTHY:
        if not pathlib.Path("/usr/bin", command[0]).exists():
            continue
        path = tmp_path / "x.cairn"
        subprocess.run([CAIRN, "record", "-q", "-o", path, "--", *command], env=environment(), check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        kinds = [item["kind"] for item in findings_of(path)]
        assert not {"growth", "unfreed"} & set(kinds), (command, kinds)
        text = subprocess.run([CAIRN, "report", path], check=True, capture_output=True, env=environment(), timeout=60)
        assert text.stdout.count(b"\n") <= 100, command
        judged += 1
    assert judged > 20


def test_memory_that_a_program_maps_itself_explains_its_rss(tmp_path):
    """64 MiB of private anonymous memory, every page of it touched, beside a small heap."""
    program = ("import mmap, os\nm = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
               "for i in range(0, 64 << 20, 4096): m[i] = 1\nos._exit(0)")
    path = tmp_path / "x.cairn"
    subprocess.run([CAIRN, "record", "-q", "-o", path, "--", "/usr/bin/python3", "-c", program], env=environment(),
                   check=True, timeout=60)
    (finding,) = [item for item in findings_of(path) if item["kind"] == "rss"]
    assert finding["bytes"] >= 64 << 20 and "mapped by the program" in finding["sentence"]


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

# SPDX-License-Identifier: MIT
"""The file of `cairn export --html`, taken apart as docs/format/html-report.md says, without a browser: its answers are the
server's, nothing of a recording stands outside of them, and it stays small."""
import base64
import gzip
import json
import random
import re
import subprocess

from drawings import OLD
from serving import CAIRN, DEADLINE_SECONDS, ROOT, draw, report

ANSWER = re.compile(r'<script type="application/octet-stream" data-answer="([^"<>]+)">([A-Za-z0-9+/=]*)</script>\n')
EXTRA = {"files": "costs=all", "summary": "limit=20", "functions": "costs=all&limit=20000", "call_graph": "costs=all&limit=20000",
         "tree": "costs=all&any_cost=1&limit=30000", "series": "top=50", "sizes": "top=50", "lifetimes": "top=50",
         "leaks": "limit=20000", "processes": "costs=all", "threads": "costs=all", "modules": "costs=all",
         "adhoc": "limit=20000"}

# What is told of the whole recording alone; a thread has no mappings of its own.
WHOLE = {"process": {"meta?", "health?", "adhoc?"}, "thread": {"meta?", "health?", "adhoc?", "rss?"}}


def export(path, out, *options):
    run = subprocess.run([CAIRN, "export", "--html", path, "-o", out, *options], capture_output=True,
                         text=True, check=False, timeout=DEADLINE_SECONDS)
    assert run.returncode == 0, run.stderr
    return out.read_text()


def answers_of(page):
    return {key: json.loads(gzip.decompress(base64.b64decode(data, validate=True)))
            for key, data in ANSWER.findall(page)}


def test_the_answers_are_the_servers(server, file, tmp_path):
    answers = answers_of(export(file, tmp_path / "report.html"))
    info = answers.pop("report?")
    reported = report(file)
    assert (info["version"], info["filter"], info["omitted"]) == (reported["version"], "", 0)
    page = (ROOT / "docs/format/json.md").read_text().split("## `page`")[1]
    assert set(info) - {"version"} == {field for line in page.splitlines() if line.startswith("| `")
                                       for field in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert set(info["processes"]) == {process["pid"] for process in reported["processes"]}
    assert set(info["threads"]) == {thread["thread_id"] for thread in reported["threads"]}
    assert {key.split("?")[0] for key in answers} >= {"meta", "health", "rss", "size_lifetime", *EXTRA}
    for key, answer in answers.items():
        route = key.split("?")[0]
        assert answer == server.ask(f"/api/v1/{key}&{EXTRA.get(route, '')}").json, key
    scopes = {re.sub(r"^[^?]*\?|(direction|collapse|hide_wrappers|value|by|rank)=\w+", "", key).strip("&") for key in answers}
    assert scopes == {"", *(f"process={pid}" for pid in info["processes"]),
                      *(f"thread={thread}" for thread in info["threads"])}
    for scope in scopes - {""}:
        own = {key[:-len(scope) - 1] for key in answers if key.endswith("&" + scope)}
        assert own == {key for key in answers if not re.search("(process|thread)=", key)} - WHOLE[scope.split("=")[0]]


def test_nothing_of_a_recording_is_markup(file, tmp_path):
    """But for the answers, whose alphabet is harmless, all files are the same."""
    names = ["</script><script>alert(1)</script>", "<!--", '"><img/src=x>', "&lt;b&gt;", "\u2028", "'-alert(1)-'"]
    hostile = "".join(f"app!{name}(/src/<b>.c:1) 1 1\n" for name in names if not set(name) & set(";()= "))
    pages = [export(file, tmp_path / "1.html"),
             export(draw(tmp_path / "x.cairn", OLD), tmp_path / "2.html"),
             export(draw(tmp_path / "h.cairn", hostile + "app!</script> 1 1\n"), tmp_path / "<h>.html")]
    frames = {ANSWER.sub("", page) for page in pages}
    assert len(frames) == 1
    frame = frames.pop()
    assert frame.count("<script") == 1 and frame.count("</script") == 1
    assert not re.search(r'\s(src|href|action)\s*=\s*"?(https?:)?//', frame.split("<style>")[0])


def test_a_filter_holds_for_every_answer(server, file, tmp_path):
    answers = answers_of(export(file, tmp_path / "part.html", "--filter-function", "walk"))
    assert "stacks through a function that matches walk" in answers["report?"]["filter"]
    for key in ("summary?", "functions?", "tree?direction=bottom_up&collapse=1", "leaks?by=stack", "sizes?rank=bytes"):
        wanted = server.ask(f"/api/v1/{key}&function_regex=walk&{EXTRA[key.split('?')[0]]}").json
        assert answers[key] == wanted, key


def test_the_rules_for_leaks_are_those_of_the_options(file, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("leak:^walk$\n")
    usual = answers_of(export(file, tmp_path / "usual.html"))["leaks?by=stack"]
    for options in (["--no-builtin-suppressions", "--no-embedded-suppressions"], ["--suppressions", rules]):
        leaks = answers_of(export(file, tmp_path / "page.html", *options))["leaks?by=stack"]
        reported = json.loads(subprocess.run([CAIRN, "report", "--json", *options, file], check=True,
                                             capture_output=True, timeout=DEADLINE_SECONDS).stdout)
        assert leaks["suppressions"]["pattern"] == [rule["pattern"] for rule in reported["suppressions"]]
        assert leaks["suppressions"] != usual["suppressions"]
        assert leaks["selection"]["totals"]["live_bytes"] == reported["totals"]["live_bytes"]


def test_a_large_recording_is_cut_and_says_so(tmp_path):
    chance = random.Random(2)
    stacks = (";".join(f"app!f{chance.randrange(300)}(a.c:{chance.randrange(9)})" for _ in range(20))
              for _ in range(2500))
    path = draw(tmp_path / "large.cairn", "".join(f"{stack} 1 {chance.randrange(99)}\n" for stack in stacks))
    page = export(path, tmp_path / "large.html")
    assert len(page) < 33 << 20
    answers = answers_of(page)
    assert answers["report?"]["nodes_max"] == 30000
    for key, answer in answers.items():
        if key.startswith("tree?"):
            assert answer["nodes"]["count"] == 30000 < answer["total_nodes"] and not answer["complete"]
            assert answer["nodes"]["total"]["allocations"][0] == 2500


def test_what_makes_no_sense_is_refused(file, tmp_path):
    for options, word in ((["--to", "folded"], "--to"), (["--cost", "peak"], "--cost"), (["--time", "0:1"], "time")):
        run = subprocess.run([CAIRN, "export", "--html", file, "-o", tmp_path / "x.html", *options],
                             capture_output=True, text=True, check=False, timeout=DEADLINE_SECONDS)
        assert run.returncode == 2 and word in run.stderr, run.stderr
        assert not (tmp_path / "x.html").exists()

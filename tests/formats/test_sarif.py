# SPDX-License-Identifier: MIT
"""SARIF of `cairn export --to sarif` and `cairn check --sarif`, against the JSON schema of the format.

The schema is that of the npm package @microsoft/jest-sarif 1.0.0-beta.0 (MIT), unchanged; jsonschema interprets it. What
a result says and where it is comes from `cairn report --json` and from the sources of the test's programs."""
import contextlib
import json
import os
import pathlib
import random
import shlex
import subprocess
import urllib.parse

import jsonschema
import pytest

from test_formats import (CAIRN, FILTERS, HOSTILE, draw, export, fixture_hostile, fixture_real,  # noqa: F401
                          fixture_recording, fixture_server, report, run)

SCHEMA = json.loads((pathlib.Path(__file__).parent / "sarif-2.1.0-rtm.5.json").read_text())
# Two leaks, of which one is allocated by a library function, and 100,000 temporary blocks.
PROGRAM = """#include <stdlib.h>
#include <string.h>
void *volatile kept[2];
int main(int count, char **words)
{
    for (int i = 0; i < 100000; i++) { free(memset(malloc(40), 1, 40)); }
    kept[0] = malloc(3 << 20); /* line 7 */
    kept[1] = strdup(words[0]); /* line 8 */
    return count - 1;
}
"""


def results_of(data):
    """The results, after the whole document was checked: schema, rules and paths."""
    document = json.loads(data)
    jsonschema.Draft4Validator(SCHEMA).validate(document)
    (found,) = document["runs"]
    rules = [rule["id"] for rule in found["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    for result in found["results"]:
        assert result["ruleId"] in rules
        (place,) = result["locations"]  # GitHub refuses a file with a result that has none
        uri = place["physicalLocation"]["artifactLocation"]["uri"]
        assert urllib.parse.quote(urllib.parse.unquote_to_bytes(uri), safe="/:~") == uri.replace("%3A", ":")
        assert uri.startswith("file:///") or ":" not in uri.split("/")[0]  # no other scheme, such as c:
    return found["results"]


def place_of(result):
    place = result["locations"][0]["physicalLocation"]
    uri = urllib.parse.unquote(place["artifactLocation"]["uri"])
    assert (place["artifactLocation"].get("uriBaseId") == "%SRCROOT%") == (not uri.startswith("file://"))
    return uri.removeprefix("file://"), place.get("region", {}).get("startLine", 0)


@pytest.fixture(scope="module", name="leaky")
def fixture_leaky(tmp_path_factory):
    """A recorded program whose path needs escapes in a URI."""
    folder = tmp_path_factory.mktemp("100% a tree")
    (folder / "src").mkdir()
    (folder / "src" / "leaky é.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O0", "-o", "leaky", f"{folder}/src/leaky é.c"], cwd=folder, check=True)
    subprocess.run([CAIRN, "record", "-q", "-o", "leaky.cairn", "./leaky"], cwd=folder, check=True, timeout=120)
    return folder


def cairn(folder, *words, status=0, env=None):
    settings = {name: value for name, value in os.environ.items() if name != "GITHUB_WORKSPACE"}
    done = subprocess.run([CAIRN, *words], cwd=folder, env={**settings, **(env or {})}, capture_output=True, check=False,
                          timeout=120)
    assert done.returncode == status, done
    return done.stdout


def test_findings_are_those_of_the_report(recording):
    for filters in FILTERS:
        results = results_of(export(recording, "sarif", *filters))
        done = run("report", "--json", *filters, recording)
        findings = json.loads(done.stdout)["findings"]["items"]
        assert [(found["kind"], found["sentence"]) for found in findings] == \
            [(result["ruleId"], result["message"]["text"]) for result in results]
        for finding, result in zip(findings, results):
            if finding["file"]:
                assert place_of(result) == (finding["file"].removeprefix(f"{os.getcwd()}/"), finding["line"])


def test_hostile_names_stay_text(tmp_path):
    figures = b"7 700 1 100 0 0 6 600 700", b"7 700000000 1 100 0 0 6 600000000 700000000"
    (peak,) = results_of(export(draw(tmp_path / "hostile.cairn", HOSTILE.replace(*figures)), "sarif"))
    assert place_of(peak) == ("a,b.c", 5) and peak["message"]["text"].startswith("n9: 12 0x0: x, y")
    names = [frame["location"]["logicalLocations"][0]["fullyQualifiedName"] for frame in peak["stacks"][0]["frames"]]
    assert [name[:4] for name in names] == ["n9: ", "caf\u00e9", "lam\"", "main"]


PIECES = [b"\x01", b"\x1b[31m", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"\xef\xbf\xbe", b'"',
          b"\\", b"<script>", b"&lt", b"%41", b"%", b"../", b"/", b"file://", b"C:\\x", b" ", b"a", b"std::vector<int>", b"{{closure}}",
          b"#", b"?", b"\t", b"\x02", b"n" * 300, b"\xe2\x82\xac" * 40]


def drawn_at_random(chance):
    """A drawing whose names are made of these pieces."""
    def name():
        return b"".join(chance.choice(PIECES) for _ in range(chance.randint(1, 5))).strip() or b"x"

    def frame():
        module = b"/lib/" + name() + b"!" if chance.random() < 0.5 else b""
        line = chance.choice([b"0", b"1", b"7", b"2147483647", b"4294967295"])
        return module + name() + (b"(" + name() + b":" + line + b")" if chance.random() < 0.7 else b"")
    lines = [b"!program /opt/" + name(), b"!peak_time_ms 150", b"!runtime_ms 400", b"process server", b"thread main"]
    for _ in range(chance.randint(1, 9)):
        count, size = chance.choice([1, 7, 100000]), chance.choice([10, 3 << 20, 1 << 40])
        live = chance.choice([0, 1])
        lines.append(b";".join([b"main"] + [frame() for _ in range(chance.randint(1, 5))]) + b" %d %d %d %d 0 0 %d %d %d" % (
            count, size, count - live, size - live * (size // 2), live, live * (size // 2), size // 2))
        lines.append(b"@%d %d %d 0 0 0" % (chance.randint(0, 3), count, size))
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("seed", range(60 if os.environ.get("CAIRN_NIGHTLY") else 6))
def test_documents_of_random_recordings_with_hostile_names_are_valid(seed, tmp_path):
    chance, path = random.Random(seed), None
    while path is None:
        with contextlib.suppress(subprocess.CalledProcessError):  # some names mean something in a drawing
            path = draw(tmp_path / "random.cairn", drawn_at_random(chance))
    results = results_of(cairn(tmp_path, "export", "--to", "sarif", path))
    cairn(tmp_path, "check", "--no-config", "--max-peak", "1", "--max-allocations", "0", "--sarif", "c.sarif", path, status=1)
    broken = results_of((tmp_path / "c.sarif").read_bytes())
    assert len(broken) > len(results)
    for result in results + broken:
        assert all(" " < letter < "\x7f" and letter not in '"<>\\^`{|}'
                   for letter in result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])


@pytest.mark.parametrize("stack, place", [
    ("/opt/server!main;/lib/libz.so!inflate", ("/opt/my server", 0)),
    ("/opt/server!main(/src/app.c:4);/opt/server!work;/lib/libz.so!inflate", ("/src/app.c", 4))])
def test_the_place_is_that_of_a_caller_or_the_program(stack, place, tmp_path):
    path = draw(tmp_path / "bare.cairn", "!program /opt/my server\n!peak_time_ms 150\n!runtime_ms 400\nprocess server\n"
                f"thread main\n{stack} 10 100000000 0 0 0 0 10 100000000 100000000\n@0 10 100000000 0 0 0\n")
    (peak,) = results_of(export(path, "sarif"))
    assert peak["ruleId"] == "peak" and place_of(peak) == place


def test_a_line_is_found_with_any_path(leaky):
    for folder, name in ((leaky, "src/leaky é.c"), ("/usr", f"{leaky}/src/leaky é.c")):
        results = results_of(cairn(folder, "export", "--to", "sarif", leaky / "leaky.cairn"))
        places = {result["ruleId"]: place_of(result) for result in results}
        assert places == {"peak": (name, 7), "churn": (name, 6)}, results
    workspace = {"GITHUB_WORKSPACE": str(leaky)}
    results = results_of(cairn("/", "export", "--to", "sarif", leaky / "leaky.cairn", env=workspace))
    assert place_of(results[0])[0] == "src/leaky é.c"


def test_stacks_have_all_frames(leaky):
    (peak,) = [result for result in results_of(cairn(leaky, "export", "--to", "sarif", "leaky.cairn"))
               if result["ruleId"] == "peak"]
    names = [frame["location"]["logicalLocations"][0]["fullyQualifiedName"] for frame in peak["stacks"][0]["frames"]]
    assert names[0] == "main" and peak["partialFingerprints"] == {"callSite/v1": "peak main"}


def test_budgets_are_results(leaky):
    words = ["check", "--no-config", "--max-peak", "1MiB", "--max-allocations", "1000000", "--function", "^main$",
             "--max-leaked", "0", "--sarif", "check.sarif"]
    cairn(leaky, *words, "leaky.cairn", status=1)
    results = results_of((leaky / "check.sarif").read_bytes())
    budgets = [(result["ruleId"], result["level"], place_of(result)) for result in results if result["level"] == "error"]
    assert budgets == [("max-peak", "error", ("src/leaky é.c", 7)), ("max-leaked", "error", ("src/leaky é.c", 7))]
    assert results[0]["message"]["text"].startswith("max-peak: 3.00 MiB; at most 1.00 MiB allowed")
    assert results[1]["message"]["text"].startswith("max-leaked of ^main$: 3.00 MiB; at most 0 B allowed")
    assert {result["ruleId"] for result in results[2:]} == {"peak", "churn"}


def test_a_program_that_fails_is_a_result(leaky):
    cairn(leaky, "check", "--no-config", "--max-peak", "1GiB", "--sarif", "fails.sarif", "--", "./leaky", "more", status=1)
    first, *others = results_of((leaky / "fails.sarif").read_bytes())
    assert (first["ruleId"], first["level"], first["message"]["text"]) == ("program", "error", "program: exit status 1")
    assert place_of(first) == ("leaky", 0) and {result["level"] for result in others} == {"note"}
    assert not list(leaky.glob("*.sarif.*"))


def test_what_cannot_be_told_is_a_warning(leaky):
    cairn(leaky, "check", "--no-config", "--max-leaked", "3MiB", "--sample=64KiB", "--sarif", "near.sarif", "--", "./leaky")
    uncertain = [result for result in results_of((leaky / "near.sarif").read_bytes()) if result["ruleId"] == "max-leaked"]
    assert [(result["level"], "cannot tell" in result["message"]["text"]) for result in uncertain] == [("warning", True)]


def test_the_help_of_a_rule_is_a_command(leaky):
    document = json.loads(cairn(leaky, "export", "--to", "sarif", "leaky.cairn"))
    commands = {rule["help"]["text"] for rule in document["runs"][0]["tool"]["driver"]["rules"]}
    reports = [command for command in commands if command.startswith("cairn report ")]
    assert len(reports) >= 5
    for command in reports:
        assert cairn(leaky, *shlex.split(command.replace("FILE", "leaky.cairn"))[1:])
    options = cairn(leaky, "help", "check").decode()
    for command in commands - set(reports):
        assert all(word in options for word in command.split()[2:] if word.startswith("--")), command

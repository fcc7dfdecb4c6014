# SPDX-License-Identifier: MIT
"""The alerts of contrib/prometheus on histories of heaps: `promtool test rules` says which fire, and when.

A history is a function of the hours since the start of the process. Each is asked about at every full day and
in its first day each two hours: an alert that may fire has to fire by its time and not before it, and no other
may fire at any of them."""
import math
import pathlib
import random
import subprocess

import pytest
import yaml

from cairn_run import IS_NIGHTLY, some_of
from waiting import DEADLINE_SECONDS

RULES = pathlib.Path(__file__).parents[2] / "contrib/prometheus/cairn.rules.yml"
GB, DAYS = 1e9, 14  # of a history
STEP, LONG_STEP = 10, 30  # minutes between two scrapes
GROWTH = {"HeapGrows", "HeapGrowsSlowly"}


def warm_up(hours):
    return lambda at: 49 * (1 - math.exp(-at / hours)) + 1


def day(at):
    """A service by day and by night: between 0.75 and 1.25, with the highest load at noon."""
    return 1 + 0.25 * math.sin((at / 24 - 0.25) * 2 * math.pi)


def week(at):
    return day(at) * (0.6 if at / 24 % 7 >= 5 else 1)


def leak(share):
    """Grow by this share of 10 GB a day."""
    return lambda at: 10 + 10 * share * at / 24


def noise(seed):
    chosen = random.Random(seed)
    return lambda at: 10 * (1 + 0.02 * chosen.random())


# name: (live bytes in GB, {alert: (day until which it does not fire, first and last day on which it does)})
HISTORIES = {
    "start": (lambda at: 1 + 48 * min(at, 1), {}),
    "warm-up of hours": (warm_up(4), {}),
    "warm-up of half a day": (warm_up(12), {}),
    "daily cycle": (lambda at: 10 * day(at), {}),
    "weekly cycle": (lambda at: 10 * week(at), {}),
    "noise": (noise(1), {}),
    "leak of 1 % a day": (leak(0.01), {"HeapGrowsSlowly": (10, 11, 13)}),
    "leak of 40 % a day": (leak(0.4), {"HeapGrows": (1, 1.5, 5), "HeapGrowsSlowly": (10, 11, 13)}),
    "leak of 5 % a day in a daily cycle": (lambda at: 10 * day(at) + leak(0.05)(at) - 10, {"HeapGrowsSlowly": (10, 11, 13)}),
    "leak of 40 % a day after a warm-up": (lambda at: warm_up(2)(at) + leak(2)(at) - 10,
                                           {"HeapGrows": (1, 1.5, 5), "HeapGrowsSlowly": (10, 11, 13)}),
    "step": (lambda at: 10 if at < 100 else 15, {}),
    "two steps": (lambda at: 10 if at < 100 else 15 if at < 250 else 22, {}),
    "restart": (lambda at: warm_up(2)(at % 100), {}),
}


def series(name, values):
    return {"series": name, "values": " ".join(f"{value:.0f}" for value in values)}


def histories(live, days, restarts=math.inf):
    hours = [minute / 60 for minute in range(0, days * 24 * 60, LONG_STEP)]
    return [series('cairn_heap_live_bytes{instance="a"}', [GB * live(at) for at in hours]),
            series('cairn_recorded_seconds{instance="a"}', [3600 * (at % restarts) for at in hours])]


def rule_of(alert):
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return next(rule for rule in group["rules"] if rule["alert"] == alert)


def expected(alert, labels):
    rule = rule_of(alert)
    summary = rule["annotations"]["summary"]
    for name, value in {"instance": "a", **labels}.items():
        summary = summary.replace(f"{{{{ $labels.{name} }}}}", value)
    return {"exp_labels": {**rule["labels"], "instance": "a", **labels}, "exp_annotations": {"summary": summary}}


def ask(alert, hours, fires, labels=None):
    return {"eval_time": f"{round(hours * 60)}m", "alertname": alert, "exp_alerts": [expected(alert, labels or {})] * fires}


def judge(folder, step, tests):
    (folder / "test.yml").write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": f"{step}m",
                                                     "tests": [{"interval": f"{step}m", **test} for test in tests]}))
    done = subprocess.run(["promtool", "test", "rules", "test.yml"], cwd=folder, capture_output=True, text=True, check=False,
                          timeout=DEADLINE_SECONDS)
    assert done.returncode == 0 and "SUCCESS" in done.stdout, done.stdout + done.stderr


BY_DAY = ["leak of 40 % a day after a warm-up"]


@pytest.mark.parametrize("name", HISTORIES if IS_NIGHTLY else BY_DAY)
def test_leaks_page_and_nothing_else_does(name, tmp_path):
    live, fires = HISTORIES[name]
    questions = []
    for hours in [*range(2, 48, 2), *(24 * number for number in range(2, DAYS))]:
        for alert in sorted(GROWTH):
            quiet_until, first, last = fires.get(alert, (DAYS, DAYS, DAYS))
            if hours / 24 <= quiet_until or first <= hours / 24 <= last:
                questions.append(ask(alert, hours, hours / 24 > quiet_until))
    judge(tmp_path, LONG_STEP, [{"input_series": histories(live, DAYS, 100 if name == "restart" else math.inf),
                                 "alert_rule_test": questions}])


def test_growth_within_the_error_of_an_estimate_is_no_growth(tmp_path):
    tests = []
    for error, fires in ((1, True), (4, False)):  # 3 GB in the 18 hours that are compared
        given = [*histories(leak(0.4), 3), series('cairn_heap_live_bytes_error{instance="a"}', [GB * error] * 3 * 48)]
        tests.append({"input_series": given, "alert_rule_test": [ask("HeapGrows", 48, fires)]})
    judge(tmp_path, LONG_STEP, tests)


def test_a_call_site_that_grows_is_named(tmp_path):
    """In a heap so large that its own growth shows nothing."""
    labels = {"function": "keep", "file": "k.c", "line": "7"}
    name = 'cairn_call_site_live_bytes{instance="a",function="keep",file="k.c",line="7"}'
    hours = [minute / 60 for minute in range(0, 3 * 24 * 60, LONG_STEP)]
    tests = []
    for grown, fires in some_of([(leak(0.4), True), (warm_up(4), False), (lambda at: 10 * day(at), False)], 2):
        given = [*histories(lambda at: 1000, 3), series(name, [GB * grown(at) for at in hours])]
        questions = [ask("CallSiteGrows", at, fires, labels) for at in (36, 48, 60)]
        tests.append({"input_series": given, "alert_rule_test": questions})
    judge(tmp_path, LONG_STEP, tests)


OTHERS = [  # alert, series, when it is quiet, when it fires, labels
    ("MemoryLimitNear", {"cairn_resident_bytes": "50 50 50 95x12", "cairn_memory_limit_bytes": "100x15"}, 0.4, 1, {}),
    ("AllocatorKeepsMemory", {'cairn_resident_part_bytes,kind="kept"': "600000000x60", "cairn_resident_bytes": "1000000000x60"},
     5, 7, {"kind": "kept"}),
    ("AllocatorKeepsMemory", {'cairn_resident_part_bytes,kind="kept"': "600x60", "cairn_resident_bytes": "1000x60"},
     7, None, {"kind": "kept"}),
    ("RecorderGone", {"cairn_recorded_seconds": "0+600x6"}, 1, 2, {}),
    ("HeapEventsLost", {'cairn_lost_events_total,reason="no_lane"': "0 0 0 0 7 7 7"}, 0.5, 5 / 6, {}),
    ("HeapEventsLost", {'cairn_lost_events_total,reason="no_lane"': "7x12"}, 5 / 6, None, {}),
    ("HeapFiguresAreOld", {"cairn_checkpoint_timestamp_seconds": "0x12"}, 0.5, 4 / 6, {}),
    ("HeapFiguresAreOld", {"cairn_checkpoint_timestamp_seconds": "0+600x12"}, 4 / 6, None, {})]


def test_the_other_alerts_fire_when_they_should_and_not_before(tmp_path):
    tests = []
    for alert, given, quiet, loud, labels in OTHERS:
        values = []
        for name, text in given.items():
            family, _, more = name.partition(",")
            values.append({"series": f'{family}{{instance="a"{"," + more if more else ""}}}', "values": text})
        questions = [ask(alert, quiet, False, labels)] + ([ask(alert, loud, True, labels)] if loud else [])
        tests.append({"name": alert, "input_series": values, "alert_rule_test": questions})
    judge(tmp_path, STEP, tests)

# SPDX-License-Identifier: MIT
"""docs/user/production.md with Prometheus itself: it takes the guide's configuration, scrapes a recorded program, and
answers each question of the guide's table and each panel of the dashboard.

Ports, the file of the token and the interval are those of the test."""
import contextlib
import functools
import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import yaml

from cairn_run import ROOT
from test_listen import Listening, free_port
from waiting import DEADLINE_SECONDS, wait_until

PROMETHEUS = "/usr/bin/prometheus"
GUIDE = (ROOT / "docs/user/production.md").read_text()
QUESTIONS = re.findall(r"^\| [^|]+\? \| `(.+)` \|$", GUIDE.partition("### Prometheus")[2].partition("###")[0], re.M)
# What this program has no part in: it does not grow, and it is not sampled.
MAY_BE_EMPTY = {"call_site_growth", "live_bytes_error"}


class Prometheus:
    """A server in a folder of its own."""

    def __init__(self, folder, configuration):
        self.port = free_port()
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self.process = subprocess.Popen(
            [PROMETHEUS, "--config.file", folder / "prometheus.yml", "--storage.tsdb.path", folder / "data",
             "--web.listen-address", f"127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def query(self, expression):
        """The values, or None while it does not answer."""
        assert self.process.poll() is None
        address = f"http://127.0.0.1:{self.port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            with urllib.request.urlopen(address, timeout=DEADLINE_SECONDS) as answer:
                data = json.loads(answer.read())
                assert data["status"] == "success", data
                return [float(series["value"][1]) for series in data["data"]["result"]]
        return None

    def end(self):
        self.process.terminate()
        self.process.wait(DEADLINE_SECONDS)


@contextlib.contextmanager
def scraped(scratch, *options):
    """A conversation whose program has 100 blocks, and Prometheus with the guide's configuration, which has scraped it
    more than twice."""
    configuration = yaml.safe_load(re.search(r"```yaml\n(.*?)```", GUIDE, re.S)[1])
    (job,) = configuration["scrape_configs"]
    token = scratch / "token"
    with Listening(scratch / "c.cairn", options=["--token-file", token, *options]) as c:
        c.do("a 100 100")
        c.ctl("snapshot")  # a program that rests may have none for long
        c.ctl("checkpoint")
        job["basic_auth"]["password_file"] = str(token)
        job["static_configs"][0]["targets"] = [f"127.0.0.1:{c.port}"]
        job["scrape_interval"] = "100ms"
        prometheus = Prometheus(scratch, configuration)
        try:
            wait_until(lambda: prometheus.query('up{job="cairn"}') == [1], "the first scrape")
            wait_until(lambda: prometheus.query("count_over_time(cairn_heap_live_bytes[1h]) > 2"), "more of them")
            yield c, prometheus
        finally:
            prometheus.end()
        c.end()


def test_prometheus_scrapes_and_answers_as_the_guide_has_it(scratch):
    assert len(QUESTIONS) >= 8
    with scraped(scratch) as (_, prometheus):
        assert prometheus.query("cairn_heap_live_bytes") == [10000]
        for expression in QUESTIONS:
            answer = prometheus.query(expression)
            assert answer or any(part in expression for part in MAY_BE_EMPTY), expression
        assert prometheus.query("topk(5, cairn_call_site_live_bytes)") == [10000]
        assert prometheus.query("sum(cairn_lost_events_total)") == [0]


def test_each_panel_of_the_dashboard_has_an_answer(scratch):
    """Of a sampled program that grows, which has the errors of estimates, too."""
    panels = json.loads((ROOT / "contrib/grafana/cairn.json").read_text())["panels"]
    expressions = [target["expr"].replace("$__rate_interval", "1h").replace("$instance", ".+")
                   for panel in panels for target in panel["targets"]]
    assert len(expressions) >= 16
    with scraped(scratch, "--sample=16") as (c, prometheus):
        c.do("a 100 100")
        c.ctl("checkpoint")  # so that a call site grows
        for expression in expressions:
            if "lost_events" in expression:
                expression = expression.removesuffix(" > 0")  # none was lost
            wait_until(functools.partial(prometheus.query, expression), expression)

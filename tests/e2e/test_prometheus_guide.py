# SPDX-License-Identifier: MIT
"""docs/user/production.md with Prometheus itself: it takes the guide's configuration, scrapes a recorded program, and
answers each question of the guide's table.

Ports, the file of the token and the interval are those of the test."""
import contextlib
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


def test_prometheus_scrapes_and_answers_as_the_guide_has_it(scratch):
    configuration = yaml.safe_load(re.search(r"```yaml\n(.*?)```", GUIDE, re.S)[1])
    (job,) = configuration["scrape_configs"]
    token = scratch / "token"
    assert len(QUESTIONS) >= 8
    with Listening(scratch / "c.cairn", options=["--token-file", token]) as c:
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
            assert prometheus.query("cairn_heap_live_bytes") == [10000]
            for expression in QUESTIONS:
                answer = prometheus.query(expression)
                assert answer or any(part in expression for part in MAY_BE_EMPTY), expression
            assert prometheus.query("topk(5, cairn_call_site_live_bytes)") == [10000]
            assert prometheus.query("sum(cairn_lost_events_total)") == [0]
        finally:
            prometheus.end()
        c.end()

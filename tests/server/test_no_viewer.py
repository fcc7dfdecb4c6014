# SPDX-License-Identifier: MIT
"""A build without node: it is made all the same, has everything but the pages, and says so."""
import pathlib
import subprocess

import serving
from serving import BUILD, DEADLINE_SECONDS, ROOT

NO_VIEWER = BUILD / "tests" / "server" / "cairn_no_viewer"


def run(*arguments):
    return subprocess.run([NO_VIEWER, *map(str, arguments)], capture_output=True, text=True,
                          check=False, timeout=DEADLINE_SECONDS)


def test_analyze_says_what_report_says(file):
    shown = run("analyze", file)
    assert shown.returncode == 0
    assert "this build has no viewer" in shown.stderr
    assert shown.stdout == run("report", file).stdout != ""


def test_the_api_is_served_and_the_page_is_not_there(file, monkeypatch, serve):
    monkeypatch.setattr(serving, "CAIRN", NO_VIEWER)
    server = serve(file)
    assert server.get("summary")["totals"] == serving.report(file)["totals"]
    page = server.ask("/")
    assert page.status == 404 and "no viewer" in page.json["error"]["message"]


def test_a_report_file_cannot_be_made(file, tmp_path):
    out = tmp_path / "report.html"
    tried = run("export", "--html", file, "-o", out)
    assert (tried.returncode, tried.stdout, out.exists()) == (2, "", False)
    assert tried.stderr.startswith("cairn: ") and "no viewer" in tried.stderr
    assert run("export", "--to", "folded", file).returncode == 0


def test_without_npm_the_build_goes_on(tmp_path):
    """Configured without npm and without a dist, the table of assets is made, and is empty."""
    setting = ["-DCAIRN_NPM=OFF", "-DCAIRN_VIEWER=AUTO", "-DBUILD_TESTING=OFF"]
    subprocess.run(["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-Wno-dev", *setting],
                   check=True, capture_output=True, timeout=DEADLINE_SECONDS)
    table = pathlib.Path("src/server/assets/asset_table.S")
    commands = subprocess.run(["ninja", "-C", tmp_path, "-t", "commands", table], check=True, text=True,
                              capture_output=True, timeout=DEADLINE_SECONDS).stdout.splitlines()
    assert "build_viewer" not in commands[-1] and "embed_assets" in commands[-1]
    subprocess.run(commands[-1], shell=True, cwd=tmp_path, check=True, timeout=DEADLINE_SECONDS)
    has_dist = (ROOT / "web" / "dist" / "index.html").exists()
    assert ("/index.html" in (tmp_path / table).read_text()) == has_dist

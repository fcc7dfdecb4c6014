# SPDX-License-Identifier: MIT
"""Wrappers of an allocator: found by their calls, or named by the user, in every command."""
import json

from drawn import cairn, json_of, text_of

# Eight functions call arena_alloc, each for another size. get_block is called by two functions.
POOLED = "".join(f"a!main;a!work{i};a!std::vector::grow;a!std::alloc;a!arena_alloc 1 {16 << i} 0 0 0 0 1 {16 << i}\n"
                 for i in range(8)) + "a!main;a!left;a!get_block 4 400 0 0 0 0 4 400\n" \
                                      "a!main;a!right;a!get_block 3 300 0 0 0 0 3 300\n"


def sites(*options, cost="allocations"):
    return [site["function"] for site in json_of("-n", "0", *options)["top"][cost]]


def test_wrappers_are_found_and_named(draw, tmp_path, monkeypatch):
    path = draw(POOLED)
    works = {f"work{i}" for i in range(8)}
    assert set(sites(path)) == works | {"get_block"}
    assert set(sites("--hide", "^get_", path)) == works | {"left", "right"}
    assert set(sites("--hide", "^get_", "--hide", "^(left|work.)$", path)) == {"main", "right"}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cairn.toml").write_text('[check]\nmax-leaked = 0\n[report]\nwrappers = "^get_block$"\n')
    assert set(sites(path)) == works | {"left", "right"}
    run = cairn("check", "--json", path)
    assert run.returncode == 1 and b"get_block" not in run.stdout.split(b'"call_sites"')[0]


def test_a_comparison_uses_the_wrappers_of_both(draw):
    """Two callers are too few to find the wrapper in the new recording, but it is one in the old."""
    new = draw("a!main;a!work0;a!arena_alloc 1 16\na!main;a!work1;a!arena_alloc 5 500\n", "new.cairn")
    changes = json.loads(cairn("diff", "--json", draw(POOLED, "old.cairn"), new).stdout)["changes"]
    functions = {change["function"] for change in changes["allocations"]}
    assert "work1" in functions and "arena_alloc" not in functions


def test_stacks_and_trees_fold_wrappers(draw):
    path = draw(POOLED)
    lines = [line.strip().split("  ")[0] for line in text_of("--sort", "peak", "-n", "1", path).splitlines()]
    assert "std::vector::grow (+ 2 frames)" in lines and "arena_alloc" not in lines
    whole = text_of("--sort", "peak", "-n", "1", "--show-wrappers", path)
    assert "arena_alloc" in whole and "(+" not in whole
    for direction in ("top-down", "bottom-up"):
        assert "std::" not in text_of("--tree", direction, path)
        assert "std::" in text_of("--tree", direction, "--show-wrappers", path)


def test_settings_are_checked(draw, tmp_path, monkeypatch):
    path = draw(POOLED)
    monkeypatch.chdir(tmp_path)
    for text, wanted in (('[report]\nwrappers = "("\n', b"of cairn.toml: "), ("[report]\ncolour = 1\n", b"cairn.toml:2: "),
                         ("[report]\nwrappers = 3\n", b"cairn.toml:2: ")):
        (tmp_path / "cairn.toml").write_text(text)
        run = cairn("report", path)
        assert run.returncode == 2 and wanted in run.stderr, run.stderr
    (tmp_path / "cairn.toml").unlink()
    assert cairn("report", "--hide", "(", path).returncode == 2
    assert b"--hide" in cairn("symbolize", "--hide", "get", path).stderr  # nothing in the file would change

# SPDX-License-Identifier: MIT
"""What cairn prints about fixed recordings, byte by byte, for whole families of options.

Each file *.transcript in this folder is a list of commands behind "$ ", each with its output, the
lines of its standard error behind "! ", and its exit status if it is not 0. A transcript says what
cairn printed when somebody last approved it; other tests, with other oracles, check that it is
right. This test shows what a change of the code changes, and so notices what no other test looks
at. After an intended change write the transcripts anew, and read the difference; APPROVE is the command.

Only texts for people are here: `export`, `dump`, --json, --csv and the answers of `cairn analyze` have
tests with oracles of their own (formats, recording, cli.csv, server.one_schema). `cairn store` without
--store asks a server that speaks as ClickHouse does; "> " stands before what cairn sent it.

The commands run in a folder with the recordings that `fixture_folder` makes: those of *.drawing
(src/recording/test_support/recording_text.h), of events that follow from a seed (draw_history.c), a
file of an older cairn, and files of other tools. The length of a compressed file is not compared: it
can differ by a byte between machines. Half of them have no standard input at all, so that
the first file that cairn opens gets descriptor 0.
"""
import difflib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import urllib.parse
import zlib

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "store"))
from sql_server import serve  # noqa: E402  pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
BUILD = pathlib.Path(os.environ.get("CAIRN_BUILD", TESTS.parent / "build")).resolve()
FOREIGN = ["import_dhat/heap", "import_dhat/adhoc.json", "import_massif/milliseconds",
           "import_massif/instructions", "import_heap_text/gperftools", "import_heap_text/jemalloc",
           "import_heaptrack/interpreted", "import_heaptrack/raw", "import_heaptrack/freed_as_another",
           "import_pprof/go", "import_pprof/converted"]
# Arguments of draw_history, and the sum of peaks that it prints.
HISTORIES = {"short": ("3 300 0", 0), "long": ("7 20000 0", 40798772),
             "estimated": ("4 300 5", 690083), "long_estimated": ("11 20000 6", 49953533)}
BYTES_MAX = {"kinds": 3000}  # that are shown of an output, by transcript
BYTES_MAX_ELSE = 12000
# Recordings without allocations, and why.
EMPTY = {"paused": "!stopped 0\n", "paused_late": "!mark 0 first\n!stopped 1\n", "began": "!stopped 0\n!started 7\n",
         "own": "process a\nthread main\nprocess b\nthread main\n!flags 1 2\n", "so_far": "!state 0\n",
         "served": "process a\nthread main\nprocess b\nthread main\n!allocator 1 /lib/libc.so.6\n",
         "stopped": "!state 2\n", "foreign": "!format massif\n", "counted": "!allocations 3\n",
         "runtime": "process a\nthread main\nprocess b\nthread main\n!flags 0 128\n!runtime 0 python\n!runtime 1 php\n",
         "later": "process a\nthread main\n!runtime 0 newer\n",
         "attached": "process a\nthread main\n!flags 0 32\n!allocator 0 /lib/libc.so.6\n",
         "blind": "process a\nthread main\n!allocator 0 /lib/libc.so.6\n!loss unpatched_functions 2 calls\n"}
CHANGES_MAX = 80  # lines
APPROVE = "CAIRN_BUILD=build CAIRN_APPROVE=1 /usr/bin/python3 -m pytest tests/transcripts"
# MALLOC_PERTURB_: what cairn reads beyond an array or too early is not zero by chance (CairnTargets.cmake).
ENVIRONMENT = {"MALLOC_PERTURB_": "165", "PATH": "/nonexistent", "TERM": "xterm", "TZ": "UTC", "LC_ALL": "C.UTF-8",
               "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME", "/nonexistent"), "HOME": "/nonexistent",
               **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}}


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transcripts")
    drawings = {drawing.stem: drawing.read_text() for drawing in HERE.glob("*.drawing")}
    for name, drawing in {**drawings, **EMPTY}.items():
        subprocess.run([BUILD / "tests/cli/draw_recording", folder / f"{name}.cairn"], input=drawing.encode(),
                       check=True, timeout=60)
    for name in ("version1.cairn", "logged.cairn"):  # of version 1.0.0; the second has an event log
        shutil.copy(TESTS / "recording" / name, folder)
    for name, (numbers, peaks_bytes) in HISTORIES.items():
        drawn = subprocess.run([BUILD / "tests/transcripts/draw_history", folder / f"{name}.cairn", *numbers.split()],
                               check=True, timeout=60, stdout=subprocess.PIPE)
        assert drawn.stdout == f"peaks of scopes: {peaks_bytes} bytes\n".encode()
    for name in FOREIGN:
        shutil.copy(TESTS / "fuzz/corpus" / name, folder / name.replace("import_", "").replace("/", "."))
    (folder / "rules").write_text("leak:setup\nleak:never\nleak:libx!*fork*\nleak:queue\n")
    for name, count in (("five", 5), ("seven", 7)):
        (folder / name).write_text("leak:u6_\n" + "".join(f"leak:unused{i}\n" for i in range(count)))
    whole = (folder / "server.cairn").read_bytes()
    (folder / "cut.cairn").write_bytes(whole[:len(whole) * 2 // 3])
    (folder / "damaged.cairn").write_bytes(whole[:900] + b"damage" + whole[906:])
    (folder / "garbled.cairn").write_bytes(whole[:597] + bytes(16) + whole[613:-20])  # the head of a chunk, no footer
    return folder


@pytest.fixture(scope="module", name="store")
def fixture_store():
    """A database server that notes what it was asked."""
    with serve() as server:
        server.ids, server.orders = {}, {}
        yield server


def shown(data, folder, bytes_max):
    """Output as lines: a binary or long one as its length and checksum."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None:
        text = text.replace(f"{folder}/", "FOLDER/")
        text = re.sub(r"(chunks in )[\d,]+( bytes)", r"\1...\2", text)
    if text is None or len(data) > bytes_max:
        return [f"({len(data)} bytes, crc32 {zlib.crc32(data):08x})"]
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []


def store_of(words, server):
    """What the environment has for a command about the store."""
    server.asked.clear()
    if words[1] != "store" or "--store" in words:
        return {}
    return {"CAIRN_STORE": f"http://127.0.0.1:{server.server_port}/transcript", "CAIRN_STORE_LOGIN": "me:pass"}


def asked_of(server, folder):
    """What the server was asked since the command began, a line for each line."""
    for target, body in server.asked:
        yield f"> {urllib.parse.unquote(target)}"
        yield from (f">   {line}" for line in body.replace(f"{folder}/", "FOLDER/").rstrip("\n").split("\n"))


def without_ids(lines, server):
    """The identities of recordings are checksums of compressed files, which differ between machines."""
    for _, body in server.asked:
        for number in re.findall(r"WHERE recording_id IN \(0,(-?\d+)\)$", body, re.M):
            server.ids.setdefault(int(number), f"ID{len(server.ids) + 1}")
        for line in body.split("\n"):  # run_order has bits of the checksum; it is the last of the many columns
            fields = line.split("\t")
            if len(fields) > 30 and fields[0].lstrip("-").isdigit():
                server.orders.setdefault(fields[-1], f"ORDER{len(server.orders) + 1}")
    names = {text: name for number, name in server.ids.items() for text in (str(number), f"{number % 2**64:016x}")}
    names.update(server.orders)
    pattern = re.compile("|".join(names) or "(?!)")  # (?!): matches nothing
    return [pattern.sub(lambda found: names[found[0]].ljust(16 if len(found[0]) == 16 else 0), line) for line in lines]


def transcript_of(command, folder, store, bytes_max):
    words = shlex.split(command)
    assert words[0] == "cairn", command
    without_input = ["/bin/sh", "-c", 'exec "$0" "$@" <&-'] if zlib.crc32(command.encode()) % 2 else []
    run = subprocess.run([*without_input, BUILD / "bin/cairn", *words[1:]], cwd=folder,
                         env={**ENVIRONMENT, **store_of(words, store)}, capture_output=True,
                         stdin=subprocess.DEVNULL, timeout=120, check=False)
    assert run.returncode >= 0, f"signal {-run.returncode} ended {command}"  # no approval makes that right
    said = [f"! {line}" for line in shown(run.stderr, folder, bytes_max)]
    status = [f"[status {run.returncode}]"] if run.returncode != 0 else []
    lines = [*asked_of(store, folder), *shown(run.stdout, folder, bytes_max), *said, *status]
    return [f"$ {command}", *without_ids(lines, store)]


@pytest.mark.parametrize("path", sorted(HERE.glob("*.transcript")), ids=lambda path: path.stem)
def test_transcript(path, folder, store):
    approved = path.read_bytes().decode().split("\n")[:-1]  # a return stays one
    commands = [line[2:] for line in approved if line.startswith("$ ")]
    bytes_max = BYTES_MAX.get(path.stem, BYTES_MAX_ELSE)
    got = [line for command in commands for line in transcript_of(command, folder, store, bytes_max)]
    if os.environ.get("CAIRN_APPROVE"):
        path.write_bytes(("\n".join(got) + "\n").encode())
    else:
        changes = list(difflib.unified_diff(approved, got, "approved", "now", n=1, lineterm=""))
        assert not changes, "\n".join([*changes[:CHANGES_MAX], "if that is intended: " + APPROVE])

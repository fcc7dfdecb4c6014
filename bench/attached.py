#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""attached: runs a workload to which cairn attaches before its work begins.

usage: attached.py CAIRN PROGRAM ARGUMENT...

The workload stops itself first (workload.c); when its functions are patched, it goes on. The exit
status is the workload's, or cairn's if that failed.
"""
import os
import signal
import subprocess
import sys

FILE = "recording.cairn"


def is_patched(cairn):
    return subprocess.run([cairn, "ctl", FILE, "status"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    cairn, *command = sys.argv[1:]
    with subprocess.Popen(command, env={**os.environ, "CAIRN_BENCH_STOP": "1"}) as workload:
        os.waitpid(workload.pid, os.WUNTRACED)
        with subprocess.Popen([cairn, "record", "-q", "-o", FILE, "-p", str(workload.pid)]) as recorder:
            while not is_patched(cairn) and recorder.poll() is None:
                pass
            workload.send_signal(signal.SIGCONT)
            status = workload.wait()
            return recorder.wait() or status


if __name__ == "__main__":
    sys.exit(main())

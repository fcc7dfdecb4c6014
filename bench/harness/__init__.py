# SPDX-License-Identifier: MIT
"""harness: the modules of bench/run.py.

    spread       medians and ranges
    machine      what this computer is, and whether it is quiet
    measuring    one command under bench/measure.c -> Outcome
    programs     the workloads: table of what to run
    tools        the profilers: table of how to wrap a command
    rounds       interleaved runs of one workload under several tools -> results
    server_load  redis-server under redis-benchmark, which is not one command
    promises     the limits that the project sets itself
    curves       one workload at growing parameters
    instructions instructions an operation by callgrind
    tables       results -> Markdown
"""

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_commits: checks the subjects of commits against the rule of STYLE.md.

usage: tools/check_commits.py ROOT [SINCE]

A subject is `area: Imperative change`, at most 72 characters: areas in lower case, several with
commas, then a capital letter and a verb such as Add, not Adds, Added or Adding. SINCE is a date
that git understands, by default the date of the rule; older commits are not checked. A tree without
git has no commits to check. Exit status 1 and one line per finding.
"""
import re
import subprocess
import sys

SINCE = "2026-11-24T00:00:00Z"
LENGTH = 72
SUBJECT = re.compile(r"^[a-z0-9][\w./-]*(?:, [a-z0-9][\w./-]*)*: ([A-Z][\w'-]*)(?: .*)?[^.\s]$")
NO_IMPERATIVE = re.compile(r"(?:[^s]s|ed|ing)$")
# Verbs that are imperative although they do not look so.
IMPERATIVES = {"Alias", "Bring", "Embed", "Exceed", "Feed", "Focus", "Need", "Proceed", "Ring", "Seed",
               "Shed", "Speed", "String", "Swing"}


def findings_of(subject):
    match = SUBJECT.match(subject)
    if len(subject) > LENGTH:
        yield f"{len(subject)} characters, at most {LENGTH}"
    if not match:
        yield "not of the form 'area: Imperative change'"
    elif NO_IMPERATIVE.search(match.group(1)) and match.group(1) not in IMPERATIVES:
        yield f"'{match.group(1)}' is not in the imperative"


def commits(root, since):
    """The hash and the subject of each commit of `root` since then; none without git."""
    log = subprocess.run(["git", "-C", root, "log", "--no-merges", f"--since={since}",
                          "--format=%h %s"], capture_output=True, text=True, check=False)
    if log.returncode != 0:
        print(f"check_commits: no history here: {log.stderr.strip().splitlines()[-1]}")
        return []
    return [line.split(" ", 1) for line in log.stdout.splitlines()]


def main():
    root, since = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else SINCE
    status = 0
    for name, subject in commits(root, since):
        for finding in findings_of(subject):
            print(f"{name} {subject}: {finding}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())

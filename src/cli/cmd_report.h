// SPDX-License-Identifier: MIT
// cmd_report: what other commands want of `cairn report`.
#pragma once

// Prints the usual text report of the recording at `path` to stdout, and `remark` to stderr once
// the recording is open. Returns the exit status.
int report_file(const char *path, const char *remark);

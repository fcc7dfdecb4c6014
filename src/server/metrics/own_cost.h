// SPDX-License-Identifier: MIT
// own_cost: the processor time and the memory of cairn's own processes, as metrics.
//
// Context: H; any thread.
#pragma once

#include <stdio.h>
#include <sys/types.h>

// Append the families cairn_own_cpu_seconds_total and cairn_own_resident_bytes in Prometheus' text
// format: of the recorder, without the copies that write checkpoints, and of this process, the
// server. A figure that the kernel does not tell is left out.
void own_cost_write(pid_t recorder, FILE *out);

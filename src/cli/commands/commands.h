// SPDX-License-Identifier: MIT
// commands: the commands of this folder, one file each. Context: H.
#pragma once

#include "cli/options/command.h"

extern const struct command command_report;
extern const struct command command_diff;
extern const struct command command_check;
extern const struct command command_top;
extern const struct command command_analyze;
extern const struct command command_export;
extern const struct command command_dump;
extern const struct command command_verify;
extern const struct command command_symbolize;
extern const struct command command_cache;
extern const struct command command_store;
extern const struct command command_ctl;
extern const struct command command_trim;
extern const struct command command_doctor;
extern const struct command command_self_test;

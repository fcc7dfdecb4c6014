// SPDX-License-Identifier: MIT
#include "cli/command_table.h"

const struct command *const command_table[] = {
    &command_record,
    &command_report,
    &command_diff,
    &command_check,
    &command_top,
    &command_analyze,
    &command_export,
    &command_dump,
    &command_verify,
    &command_symbolize,
    &command_cache,
    &command_store,
    &command_ctl,
    &command_trim,
    &command_doctor,
    &command_self_test,
    &command_help,
    &command_version,
    NULL,
};

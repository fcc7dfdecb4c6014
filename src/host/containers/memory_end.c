// SPDX-License-Identifier: MIT
#include "host/containers/memory_end.h"

static _Thread_local enum err t_end;

void memory_end_forget(void)
{
    t_end = ERR_OK;
}

enum err memory_end_result(void)
{
    return t_end;
}

void memory_end_note(enum err err)
{
    t_end = t_end != ERR_OK ? t_end : err;
}

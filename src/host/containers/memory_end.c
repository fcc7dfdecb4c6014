// SPDX-License-Identifier: MIT
#include "host/containers/memory_end.h"

static _Thread_local bool t_lacks_memory;

void memory_end_forget(void)
{
    t_lacks_memory = false;
}

enum err memory_end_result(void)
{
    return t_lacks_memory ? ERR_NO_MEMORY : ERR_OK;
}

void memory_end_note(void)
{
    t_lacks_memory = true;
}

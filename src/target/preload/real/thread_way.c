// SPDX-License-Identifier: MIT
// thread_way: the variable of thread_way.h. The agent has no such variable.
#include "thread_way.h"

__thread struct thread_way t_thread_way;

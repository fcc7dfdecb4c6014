// SPDX-License-Identifier: MIT
// hostile_place: a function on a thread with a hostile name, in a file with a hostile name.
#include <pthread.h>
#include <stdlib.h>

extern void *volatile sink;

void *hostile_place(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "<img src=x>");
#line 7 "/<img src=x onerror=alert(9)>/<script>alert(9)<.c"
    sink = malloc(65536);
    __asm__ volatile("" ::: "memory");
    return NULL;
}

// SPDX-License-Identifier: MIT
// hostile: functions whose names are attacks on a page. They are renamed in the object file
// (objcopy), because no compiler takes such names: hostile_N becomes entry N of hostile_names.json.
// Each allocates and leaks N + 1 KiB. A thread with a hostile name leaks 64 KiB from a function
// whose source file has one (hostile_place.c); the program is started with a hostile argument.
#include <pthread.h>
#include <stdlib.h>

void *hostile_place(void *unused);

void *volatile sink;

#define ATTACK(n)                                    \
    __attribute__((noinline)) void hostile_##n(void) \
    {                                                \
        sink = malloc(1024 * (n + 1));               \
        __asm__ volatile("" ::: "memory");           \
    }

ATTACK(0)
ATTACK(1)
ATTACK(2)
ATTACK(3)
ATTACK(4)
ATTACK(5)
ATTACK(6)
ATTACK(7)
ATTACK(8)
ATTACK(9)

int main(void)
{
    hostile_0();
    hostile_1();
    hostile_2();
    hostile_3();
    hostile_4();
    hostile_5();
    hostile_6();
    hostile_7();
    hostile_8();
    hostile_9();
    pthread_t thread;
    pthread_create(&thread, NULL, hostile_place, NULL);
    pthread_join(thread, NULL);
    return 0;
}

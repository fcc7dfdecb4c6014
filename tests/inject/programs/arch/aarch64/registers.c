// SPDX-License-Identifier: MIT
// registers (AArch64): threads that keep values in every kind of register and in the flags, and
// look whether they stay. SVE's vectors and predicates where the processor has them.
#include "until_eof.h"

#include <sys/auxv.h>

#ifndef HWCAP_SVE
#    define HWCAP_SVE (1 << 22)
#endif

enum {
    SVE_BYTES_MAX = 256
};

// x0 to x28 and x30 but x18, which some systems reserve, and the flags. x0 counts.
static unsigned check_general(unsigned long seed)
{
    unsigned long bad = seed;
    __asm__ volatile(
        "stp x29, x18, [sp, #-16]!\n"
        "mov x1, %[bad]\n"
        ".irp n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28,29,30\n"
        "add x\\n, x1, #\\n\n"
        ".endr\n"
        "mov x0, #20000\n"
        "cmp x1, x1\n" // Z and C
        "1: sub x0, x0, #1\n"
        "b.ne 8f\n"
        "b.lo 8f\n"
        "cbnz x0, 1b\n"
        ".irp n, 2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,19,20,21,22,23,24,25,26,27,28,29,30\n"
        "sub x\\n, x\\n, #\\n\n"
        "cmp x\\n, x1\n"
        "b.ne 8f\n"
        ".endr\n"
        "mov x0, #0\n"
        "b 9f\n"
        "8: mov x0, #1\n"
        "9: ldp x29, x18, [sp], #16\n"
        "mov %[bad], x0\n"
        : [bad] "+r"(bad)
        :
        : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
          "x14", "x15", "x16", "x17", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27",
          "x28", "x30", "cc", "memory");
    return (unsigned)bad;
}

static void *run_general(void *argument)
{
    unsigned long seed = (unsigned long)(uintptr_t)argument;
    while (!g_is_over) {
        if (check_general(seed += 0x1234567) != 0) {
            fail("a general register or a flag has changed");
        }
        g_checks++;
    }
    return NULL;
}

static void *run_vectors(void *argument)
{
    (void)argument;
    for (uint32_t seed = 1; !g_is_over; seed++) {
        uint32_t out[3][4];
        __asm__ volatile("dup v3.4s, %w[seed]\n"
                         "add v15.4s, v3.4s, v3.4s\n"
                         "add v31.4s, v15.4s, v3.4s\n"
                         "mov x0, #20000\n"
                         "1: sub x0, x0, #1\n"
                         "cbnz x0, 1b\n"
                         "str q3, [%[out]]\n"
                         "str q15, [%[out], #16]\n"
                         "str q31, [%[out], #32]\n"
                         :
                         : [seed] "r"(seed), [out] "r"(out)
                         : "x0", "v3", "v15", "v31", "memory");
        for (unsigned i = 0; i < 12; i++) {
            if (out[i / 4][i % 4] != seed * (i / 4 + 1)) {
                fail("a vector register has changed");
            }
        }
        g_checks++;
    }
    return NULL;
}

// All of z31, however long, and p5. The thread makes no system call meanwhile: one would end them.
static void *run_sve(void *argument)
{
    (void)argument;
    for (uint8_t seed = 1; !g_is_over; seed++) {
        uint8_t out[SVE_BYTES_MAX];
        uint8_t predicate[SVE_BYTES_MAX / 8];
        unsigned long bytes;
        __asm__ volatile(".arch_extension sve\n"
                         "cntb %[bytes]\n"
                         "dup z31.b, %w[seed]\n"
                         "ptrue p5.b\n"
                         "mov x0, #20000\n"
                         "1: sub x0, x0, #1\n"
                         "cbnz x0, 1b\n"
                         "str z31, [%[out]]\n"
                         "str p5, [%[predicate]]\n"
                         ".arch_extension nosve\n"
                         : [bytes] "=&r"(bytes)
                         : [seed] "r"(seed), [out] "r"(out), [predicate] "r"(predicate)
                         : "x0", "v31", "memory");
        for (unsigned long i = 0; i < bytes; i++) {
            if (out[i] != seed || predicate[i / 8] != 0xff) {
                fail("an SVE register has changed");
                break;
            }
        }
        g_checks++;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    unsigned count = 0;
    threads[count++] = start(run_general, (void *)1);
    threads[count++] = start(run_general, (void *)1000);
    threads[count++] = start(run_vectors, NULL);
    if ((getauxval(AT_HWCAP) & HWCAP_SVE) != 0) {
        threads[count++] = start(run_sve, NULL);
    }
    begin();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return verdict();
}

// SPDX-License-Identifier: MIT
// registers: threads that keep values in every kind of register, in the flags, and below the stack
// pointer (the red zone), and look whether they stay. Vector registers as wide as the processor has
// them, and AMX tiles where there are any.
#include "until_eof.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>

enum {
    TURNS = 20000
};

// All general registers but rsp, carry and direction flag, and 128 bytes below the stack pointer.
static unsigned check_general(unsigned long seed)
{
    unsigned long bad = 0;
    __asm__ volatile(
        "pushq %%rbp\n"
        "movq %[seed], %%rax\n"
        "leaq 1(%%rax), %%rbx; leaq 2(%%rax), %%rcx; leaq 3(%%rax), %%rdx; leaq 4(%%rax), %%rsi\n"
        "leaq 5(%%rax), %%rdi; leaq 6(%%rax), %%rbp; leaq 7(%%rax), %%r8; leaq 8(%%rax), %%r9\n"
        "leaq 9(%%rax), %%r10; leaq 10(%%rax), %%r11; leaq 11(%%rax), %%r12\n"
        "movq %%rax, -128(%%rsp); movq %%rbx, -64(%%rsp); movq %%rcx, -8(%%rsp)\n"
        "movl $20000, %%r13d\n"
        "std; stc\n"
        "1: leaq -1(%%r13), %%r13; movq %%rcx, %%r14; movq %%r13, %%rcx; jrcxz 2f\n"
        "movq %%r14, %%rcx; jmp 1b\n"
        "2: movq %%r14, %%rcx\n"
        "jnc 8f\n"
        "pushfq; popq %%r14; cld; testq $0x400, %%r14; jz 8f\n"
        "movq %%rcx, -8(%%rsp)\n" // pushfq wrote there
        "cmpq %%rax, -128(%%rsp); jne 8f\n"
        "cmpq %%rbx, -64(%%rsp); jne 8f\n"
        "subq %%rax, %%rbx; subq %%rax, %%rcx; subq %%rax, %%rdx; subq %%rax, %%rsi\n"
        "subq %%rax, %%rdi; subq %%rax, %%rbp; subq %%rax, %%r8; subq %%rax, %%r9\n"
        "subq %%rax, %%r10; subq %%rax, %%r11; subq %%rax, %%r12\n"
        "cmpq $1, %%rbx; jne 8f; cmpq $2, %%rcx; jne 8f; cmpq $3, %%rdx; jne 8f\n"
        "cmpq $4, %%rsi; jne 8f; cmpq $5, %%rdi; jne 8f; cmpq $6, %%rbp; jne 8f\n"
        "cmpq $7, %%r8; jne 8f; cmpq $8, %%r9; jne 8f; cmpq $9, %%r10; jne 8f\n"
        "cmpq $10, %%r11; jne 8f; cmpq $11, %%r12; jne 8f\n"
        "xorl %%eax, %%eax; jmp 9f\n"
        "8: cld; movl $1, %%eax\n"
        "9: popq %%rbp\n"
        : "=a"(bad)
        : [seed] "r"(seed)
        : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "cc",
          "memory");
    return (unsigned)bad;
}

static void *run_general(void *argument)
{
    unsigned long seed = (unsigned long)(uintptr_t)argument;
    while (!g_is_over) {
        if (check_general(seed += 0x1234567) != 0) {
            fail("a general register, a flag or the red zone has changed");
        }
        g_checks++;
    }
    return NULL;
}

static void *run_sse(void *argument)
{
    (void)argument;
    while (!g_is_over) {
        __m128d value = _mm_set_pd(1.25, (double)g_checks);
        double expected = (double)g_checks;
        __asm__ volatile("movl %1, %%ecx\n1: decl %%ecx; jnz 1b"
                         : "+x"(value)
                         : "i"(TURNS)
                         : "ecx", "cc");
        (void)expected;
        if (_mm_cvtsd_f64(_mm_unpackhi_pd(value, value)) != 1.25) {
            fail("an SSE register has changed");
        }
        g_checks++;
    }
    return NULL;
}

__attribute__((target("avx2"))) static void *run_avx(void *argument)
{
    (void)argument;
    for (uint32_t seed = 1; !g_is_over; seed++) {
        uint32_t out[2][8];
        __asm__ volatile("vmovd %2, %%xmm3\n vpbroadcastd %%xmm3, %%ymm3\n"
                         "vpaddd %%ymm3, %%ymm3, %%ymm15\n"
                         "movl $20000, %%ecx\n1: decl %%ecx; jnz 1b\n"
                         "vmovdqu %%ymm3, %0\n vmovdqu %%ymm15, %1\n vzeroupper\n"
                         : "=m"(out[0]), "=m"(out[1])
                         : "r"(seed)
                         : "ecx", "cc", "xmm3", "xmm15");
        for (unsigned i = 0; i < 8; i++) {
            if (out[0][i] != seed || out[1][i] != seed * 2) {
                fail("an AVX register has changed");
            }
        }
        g_checks++;
    }
    return NULL;
}

__attribute__((target("avx512f,avx512bw"))) static void *run_avx512(void *argument)
{
    (void)argument;
    for (uint32_t seed = 1; !g_is_over; seed++) {
        uint32_t out[2][16];
        uint64_t mask_out;
        const uint64_t mask = seed * UINT64_C(0x9e3779b97f4a7c15);
        __asm__ volatile("vpbroadcastd %3, %%zmm3\n vpaddd %%zmm3, %%zmm3, %%zmm31\n"
                         "kmovq %4, %%k5\n"
                         "movl $20000, %%ecx\n1: decl %%ecx; jnz 1b\n"
                         "vmovdqu32 %%zmm3, %0\n vmovdqu32 %%zmm31, %1\n kmovq %%k5, %2\n"
                         "vzeroupper\n"
                         : "=m"(out[0]), "=m"(out[1]), "=r"(mask_out)
                         : "r"(seed), "r"(mask)
                         : "ecx", "cc", "xmm3", "xmm31", "k5");
        for (unsigned i = 0; i < 16; i++) {
            if (out[0][i] != seed || out[1][i] != seed * 2 || mask_out != mask) {
                fail("an AVX-512 register has changed");
            }
        }
        g_checks++;
    }
    return NULL;
}

__attribute__((target("amx-tile"))) static void *run_amx(void *argument)
{
    enum {
        ROWS = 16,
        ROW_BYTES = 64
    };
    (void)argument;
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t columns[16];
        uint8_t rows[16];
    } configuration = {.palette = 1, .columns = {ROW_BYTES}, .rows = {ROWS}};
    uint8_t in[ROWS * ROW_BYTES];
    uint8_t out[ROWS * ROW_BYTES];
    __asm__ volatile("ldtilecfg %0" : : "m"(configuration));
    for (unsigned seed = 1; !g_is_over; seed++) {
        for (unsigned i = 0; i < sizeof(in); i++) {
            in[i] = (uint8_t)(seed + i * 7);
        }
        memset(out, 0, sizeof(out));
        __asm__ volatile("tileloadd (%0,%2,1), %%tmm0\n"
                         "movl $20000, %%ecx\n1: decl %%ecx; jnz 1b\n"
                         "tilestored %%tmm0, (%1,%2,1)\n"
                         :
                         : "r"(in), "r"(out), "r"((long)ROW_BYTES)
                         : "ecx", "cc", "memory");
        if (memcmp(in, out, sizeof(in)) != 0) {
            fail("an AMX tile has changed");
        }
        g_checks++;
    }
    __asm__ volatile("tilerelease");
    return NULL;
}

// Tiles need the kernel's permission: ARCH_REQ_XCOMP_PERM for XFEATURE_XTILEDATA.
static bool has_amx(void)
{
    unsigned a, b, c, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & (1u << 24)) != 0 &&
           syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}

int main(void)
{
    pthread_t threads[8];
    unsigned count = 0;
    __builtin_cpu_init();
    const bool is_amx = has_amx();
    threads[count++] = start(run_general, (void *)1);
    threads[count++] = start(run_general, (void *)1000);
    threads[count++] = start(run_sse, NULL);
    if (__builtin_cpu_supports("avx2")) {
        threads[count++] = start(run_avx, NULL);
    }
    if (__builtin_cpu_supports("avx512bw")) {
        threads[count++] = start(run_avx512, NULL);
    }
    if (is_amx) {
        threads[count++] = start(run_amx, NULL);
    }
    begin();
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    return verdict();
}

// SPDX-License-Identifier: MIT
// crooked: calls allocation functions with a stack that is not aligned to 16 bytes, as assembly and
// compilers without vector registers leave it. glibc's functions bear it.
#include <stdlib.h>

#include "journal.h"

// Call `function` with three words. Other machines than x86-64 refuse such a stack themselves.
void *crooked(void *function, size_t first, size_t second, size_t third);
#ifdef __x86_64__
__asm__(".text\n"
        ".type crooked, @function\n"
        "crooked:\n"
        ".cfi_startproc\n"
        "subq $16, %rsp\n" // 8 or 24 would align it: the call of this function pushed 8
        ".cfi_adjust_cfa_offset 16\n"
        "movq %rdi, %rax\n"
        "movq %rsi, %rdi\n"
        "movq %rdx, %rsi\n"
        "movq %rcx, %rdx\n"
        "call *%rax\n"
        "addq $16, %rsp\n"
        ".cfi_adjust_cfa_offset -16\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size crooked, . - crooked\n");
#else
void *crooked(void *function, size_t first, size_t second, size_t third)
{
    return ((void *(*)(size_t, size_t, size_t))function)(first, second, third);
}
#endif

static void *descend(size_t frames, size_t size)
{
    return frames == 0 ? crooked((void *)malloc, size, 0, 0) : descend(frames - 1, size);
}

static void give_back(void *block)
{
    note("free", block, 0, NULL);
    (void)crooked((void *)free, (size_t)block, 0, 0);
}

int main(void)
{
    void *early = crooked((void *)malloc, 1, 0, 0); // before anything else has called cairn
    free(early);
    journal_mark();
    for (size_t frames = 0; frames < 40; frames += 13) {
        void *block = descend(frames, 100 + frames);
        note("alloc", block, 100 + frames, NULL);
        give_back(block);
    }
    void *block = crooked((void *)calloc, 10, 20, 0);
    note("alloc", block, 200, NULL);
    void *larger = crooked((void *)realloc, (size_t)block, 4000, 0);
    note("realloc", larger, 4000, block);
    give_back(larger);
    void *aligned = NULL;
    (void)crooked((void *)posix_memalign, (size_t)&aligned, 256, 300);
    note("alloc", aligned, 300, NULL);
    give_back(aligned);
    journal_mark();
    journal_print();
    return 0;
}

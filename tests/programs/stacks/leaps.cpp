// SPDX-License-Identifier: MIT
// leaps: stacks that lose many frames at once, and frames whose size is known only at run time.
// Blocks are allocated on the way in, on the way out and after each jump: exceptions through ten
// frames with destructors, longjmp over ten, alloca and arrays of variable length, signal handlers
// on both kinds of stack, and generated code without tables but with a frame pointer.
//
// 200 rounds of: exceptions 10 + 10 + 1 + 1 (the exception itself), longjmp 10 + 1, rooms 20,
// handlers 2 * 2, generated code 2.
// TRUTH: allocations=11800 frees=11800 live_bytes=0 live_blocks=0
#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace
{
constexpr int rounds = 200;
constexpr int levels = 10;

__attribute__((noinline)) void allocate(std::size_t size)
{
    void *volatile block = std::malloc(size);
    std::free(block);
}

struct on_the_way_out {
    std::size_t size;
    ~on_the_way_out()
    {
        allocate(size);
    }
};

__attribute__((noinline)) void descend_and_throw(int level)
{
    const on_the_way_out guard{static_cast<std::size_t>(level) + 100};
    allocate(static_cast<std::size_t>(level) + 200);
    if (level == 1) {
        throw level;
    }
    descend_and_throw(level - 1);
}

__attribute__((noinline)) int exceptions()
{
    try {
        descend_and_throw(levels);
    } catch (int caught) {
        allocate(300);
        return caught;
    }
    return 0;
}

std::jmp_buf g_landing;
volatile int g_deepest = 1; // unknown to the compiler

__attribute__((noinline)) int descend_and_jump(int level)
{
    if (level < g_deepest) {
        return 0;
    }
    allocate(static_cast<std::size_t>(level) + 400);
    if (level == g_deepest) {
        std::longjmp(g_landing, 1);
    }
    return descend_and_jump(level - 1) + level;
}

__attribute__((noinline)) void jumps()
{
    if (setjmp(g_landing) == 0) {
        std::exit(descend_and_jump(levels));
    }
    allocate(500);
}

__attribute__((noinline)) int rooms(int level)
{
    const std::size_t size = static_cast<std::size_t>(level * 37 % 300) + 1;
    char *room = static_cast<char *>(alloca(size));
    char array[size + 16];
    std::memset(room, level, size);
    std::memset(array, level, sizeof(array));
    allocate(size);
    const int deeper = level > 1 ? rooms(level - 1) : 0;
    allocate(size + 600);
    return deeper + room[size - 1] + array[size - 1];
}

void handle(int number)
{
    allocate(static_cast<std::size_t>(number) + 700);
    allocate(static_cast<std::size_t>(number) + 800);
}

void handlers()
{
    std::raise(SIGUSR1);
    std::raise(SIGUSR2);
}

using generated = void (*)(std::size_t, std::size_t, void (*)(std::size_t));

generated generate()
{
#if defined(__x86_64__) // push %rbp; mov %rsp,%rbp; call *%rdx; pop %rbp; ret
    static const std::uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3};
#else // stp x29, x30, [sp, #-16]!; mov x29, sp; blr x2; ldp x29, x30, [sp], #16; ret
    static const std::uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0040, 0xa8c17bfd,
                                         0xd65f03c0};
#endif
    void *place =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) {
        std::abort();
    }
    std::memcpy(place, code, sizeof(code));
    __builtin___clear_cache(static_cast<char *>(place), static_cast<char *>(place) + sizeof(code));
    return reinterpret_cast<generated>(place);
}

void set_handlers()
{
    static char other_stack[65536];
    stack_t stack = {};
    stack.ss_sp = other_stack;
    stack.ss_size = sizeof(other_stack);
    struct sigaction action = {};
    action.sa_handler = handle;
    if (sigaltstack(&stack, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0) {
        std::abort();
    }
    action.sa_flags = SA_ONSTACK;
    if (sigaction(SIGUSR2, &action, nullptr) != 0) {
        std::abort();
    }
}
} // namespace

int main()
{
    set_handlers();
    const generated call = generate();
    for (int round = 0; round < rounds; round++) {
        exceptions();
        jumps();
        rooms(levels);
        handlers();
        call(900, 0, allocate);
        call(901, 0, allocate);
    }
    return 0;
}

// SPDX-License-Identifier: MIT
// linked_operators: a C++ program that uses operators new and delete, and catches what they throw.
//
// It reads commands, one to a line, and answers each with "done": p does nothing, r does a round, t
// lets operator new throw. It ends with q or its input. It allocates nothing otherwise.
//
// TRUTH of a round: allocations 50, bytes 3570; each block is freed in its round.
// TRUTH of t: allocations 14, each freed: 7 blocks, and the exceptions that 7 calls throw. Another
// 7 calls return NULL, for which libstdc++ throws and catches an exception of its own.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace
{

struct Small {
    char bytes[24];
};

struct alignas(64) Line {
    char bytes[64];
};

void check(bool is_right)
{
    if (!is_right) {
        _exit(3);
    }
}

void do_round()
{
    char *arrays[20];
    for (int i = 0; i < 20; i++) {
        arrays[i] = new char[static_cast<std::size_t>(100 + i)];
        arrays[i][0] = static_cast<char>(i);
    }
    for (int i = 0; i < 20; i++) {
        check(arrays[i][0] == static_cast<char>(i));
        delete[] arrays[i];
    }
    for (int i = 0; i < 10; i++) {
        auto *small = new Small;
        auto *line = new Line;
        auto *bytes = new (std::nothrow) char[50];
        check(reinterpret_cast<std::uintptr_t>(line) % 64 == 0 && bytes != nullptr);
        delete small;
        delete line;
        delete[] bytes;
    }
}

void do_throws()
{
    for (int i = 0; i < 7; i++) {
        volatile std::size_t too_much = PTRDIFF_MAX - 100;
        int caught = 0;
        try {
            char *block = new char[too_much];
            block[0] = 1;
            delete[] block;
        } catch (const std::bad_alloc &) {
            caught = 1;
        }
        check(caught == 1 && new (std::nothrow) char[too_much] == nullptr);
        delete new Small;
    }
}

} // namespace

int main()
{
    char command;
    while (read(STDIN_FILENO, &command, 1) == 1 && command != 'q') {
        if (command == '\n') {
            continue;
        }
        if (command == 'r') {
            do_round();
        } else if (command == 't') {
            do_throws();
        }
        check(write(STDOUT_FILENO, "done\n", 5) == 5);
    }
    return 0;
}

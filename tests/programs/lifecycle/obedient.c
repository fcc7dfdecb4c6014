// SPDX-License-Identifier: MIT
//
// obedient [FILE]: executes the commands that it reads from FILE or its standard input, one per
// line, and writes "done" after each. It has no TRUTH, because the test writes the commands. It
// allocates nothing else.
//
//   a COUNT SIZE   allocates COUNT blocks of SIZE bytes and keeps them
//   f COUNT        frees the COUNT oldest
//   r COUNT SIZE   reallocates the COUNT oldest to SIZE bytes; they stay the oldest
//   t COUNT SIZE   allocates and frees a block, COUNT times
//   n COUNT SIZE   reports COUNT blocks of SIZE bytes, of the pool "numbers" (include/cairn.h)
//   g COUNT        reports the free of the COUNT oldest of them
//   e COUNT WEIGHT reports COUNT events "said", each of WEIGHT
//   s STACKS       a, r, t and n act from that many call stacks in turn, at first from one
//   p              nothing
//   q              returns from main
#include <cairn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCKS_MAX = 1 << 20
};

static void *blocks[BLOCKS_MAX];
static size_t first;
static size_t end;

// The way from here to the leaf that acts spells the number of a stack in base 2.
static size_t stacks = 1;

typedef void leaf(size_t number, size_t size);

static void left(leaf *act, size_t path, size_t number, size_t size);
static void right(leaf *act, size_t path, size_t number, size_t size);

static inline __attribute__((always_inline)) void
go_on(leaf *act, size_t path, size_t number, size_t size)
{
    if (path <= 1) {
        act(number, size);
    } else {
        (path % 2 == 0 ? left : right)(act, path / 2, number, size);
    }
    __asm__ volatile(""); // prevents a tail call
}

static __attribute__((noinline)) void left(leaf *act, size_t path, size_t number, size_t size)
{
    go_on(act, path, number, size);
}

static __attribute__((noinline)) void right(leaf *act, size_t path, size_t number, size_t size)
{
    go_on(act, path, number, size);
}

static void repeat(leaf *act, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++) {
        go_on(act, stacks + i % stacks, i, size);
    }
}

static void keep(size_t number, size_t size)
{
    (void)number;
    blocks[end++ % BLOCKS_MAX] = malloc(size);
}

static void give_back(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(blocks[first++ % BLOCKS_MAX]);
    }
}

static void resize(size_t number, size_t size)
{
    void **block = &blocks[(first + number) % BLOCKS_MAX];
    *block = realloc(*block, size);
}

static void churn(size_t number, size_t size)
{
    (void)number;
    free(malloc(size));
}

// The addresses of the pool's blocks hold nothing; cairn does not read them.
static uintptr_t first_number = 16;
static uintptr_t end_number = 16;

static void number_one(size_t number, size_t size)
{
    (void)number;
    cairn_pool_alloc("numbers", (void *)end_number, size);
    end_number += 16;
}

static void give_numbers_back(size_t count)
{
    for (size_t i = 0; i < count; i++, first_number += 16) {
        cairn_report_free((void *)first_number);
    }
}

static void say(size_t count, size_t weight)
{
    for (size_t i = 0; i < count; i++) {
        cairn_event("said", weight);
    }
}

static void obey(char *line)
{
    char *rest = line + 1;
    const size_t count = strtoul(rest, &rest, 10);
    const size_t size = strtoul(rest, &rest, 10);
    switch (line[0]) {
    case 'a':
        repeat(keep, count, size);
        break;
    case 'f':
        give_back(count);
        break;
    case 'r':
        repeat(resize, count, size);
        break;
    case 't':
        repeat(churn, count, size);
        break;
    case 'n':
        repeat(number_one, count, size);
        break;
    case 'g':
        give_numbers_back(count);
        break;
    case 'e':
        say(count, size);
        break;
    case 's':
        stacks = count;
        break;
    case 'q':
        exit(0);
    }
}

int main(int argc, char **argv)
{
    static char line[256];
    size_t len = 0;
    const int commands = argc > 1 ? open(argv[1], O_RDONLY) : STDIN_FILENO;
    while (read(commands, line + len, 1) == 1) {
        if (line[len] != '\n') {
            len += len + 2 < sizeof(line);
            continue;
        }
        line[len] = '\0';
        obey(line);
        len = 0;
        if (write(STDOUT_FILENO, "done\n", 5) != 5) {
            return 1;
        }
    }
    return 0;
}

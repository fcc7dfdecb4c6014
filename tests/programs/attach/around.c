// SPDX-License-Identifier: MIT
// around MIDDLE PART [late]: opens the library PART (around_part.c), with `late` when it needs it
// first. Then it reads commands, one per line, and writes "done" after each: `r` lets the library's
// outer function call its inner one, which keeps a block of 7501 bytes, by way of code without
// unwind tables that keeps a frame pointer. `q` ends. MIDDLE is that code: "generated" at run time,
// or "plain": of a library.
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void *inner_function(size_t size);
typedef void *middle_function(inner_function *inner, size_t size);
typedef void *outer_function(middle_function *middle, size_t size);

middle_function around_plain;

// Generate a function that calls its first argument with its second one.
static middle_function *generate(void)
{
#if defined(__x86_64__)
    static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                   0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
#elif defined(__aarch64__)
    static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xaa0003e2, 0xaa0103e0,
                                    0xd63f0040, 0xa8c17bfd, 0xd65f03c0};
#endif
    void *memory =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(memory, code, sizeof(code));
    __builtin___clear_cache((char *)memory, (char *)memory + sizeof(code));
    middle_function *function;
    memcpy(&function, &memory, sizeof(function));
    return function;
}

static outer_function *open_part(const char *path)
{
    void *part = dlopen(path, RTLD_NOW);
    return part != NULL ? (outer_function *)dlsym(part, "around_outer") : NULL;
}

int main(int count, char **arguments)
{
    if (count < 3) {
        return 2;
    }
    middle_function *middle = strcmp(arguments[1], "plain") == 0 ? around_plain : generate();
    outer_function *outer = count > 3 ? NULL : open_part(arguments[2]);
    char letter = 0;
    while (read(STDIN_FILENO, &letter, 1) == 1 && letter != 'q') {
        if (letter == '\n') {
            (void)!write(STDOUT_FILENO, "done\n", 5);
        } else if (letter == 'r') {
            outer = outer == NULL ? open_part(arguments[2]) : outer;
            if (outer == NULL || outer(middle, 7501) == NULL) {
                return 1;
            }
        }
    }
    return 0;
}

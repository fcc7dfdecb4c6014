// SPDX-License-Identifier: MIT
// Notes which basic blocks of a traced binary run. gcc's -fsanitize-coverage=trace-pc calls
// __sanitizer_cov_trace_pc at the begin of each block; it sets the byte at the block's address in a
// file that all processes of a test share. So a killed process leaves its blocks too.
//
// The file is in the folder that the process's environment names, or in TRACE_STRAY. Its name has
// the size of the binary's code and the name of the program. Runs inside recorded programs as well:
// no libc, no errno, system calls only at the first block. Without a file the bytes go to private
// memory.
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENVIRON_BYTES (1 << 18)
#define PATH_BYTES    4096
static const char variable[] = "CAIRN_TRACE_DIR=";

extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
static unsigned char *volatile blocks;

void __sanitizer_cov_trace_pc(void);

static long call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result = number;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void *map(size_t bytes, int flags, long file)
{
    long at = call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

static char *append(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    *to = 0;
    return to;
}

// Writes the folder's path; returns where it ends.
static char *write_folder(char *path, char *environ, size_t bytes)
{
    for (size_t i = 0; i + sizeof variable < bytes; i++) {
        size_t same = 0;
        while (variable[same] && environ[i + same] == variable[same])
            same++;
        if (!variable[same] && (i == 0 || !environ[i - 1]))
            return append(path, environ + i + same);
    }
    return append(path, TRACE_STRAY);
}

// The name of the program without its folder, from /proc/self/exe.
static const char *program_name(char *buffer)
{
    long length = call(SYS_readlink, (long)"/proc/self/exe", (long)buffer, PATH_BYTES - 1, 0, 0, 0);
    const char *name = buffer;
    buffer[length < 0 ? 0 : length] = 0;
    for (char *at = buffer; *at; at++)
        name = *at == '/' ? at + 1 : name;
    return name;
}

static char *append_hex(char *to, size_t number)
{
    for (int shift = 28; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[number >> shift & 15];
    return append(to, ".");
}

static unsigned char *open_blocks(void)
{
    size_t code_bytes = (size_t)(etext - __ehdr_start);
    unsigned char *found = NULL;
    char *room = map(ENVIRON_BYTES + 3 * PATH_BYTES, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (room) {
        char *path = room + ENVIRON_BYTES, *link = path + 2 * PATH_BYTES;
        long got = 0, size = 0;
        long file = call(SYS_open, (long)"/proc/self/environ", O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
        while (file >= 0 && size < ENVIRON_BYTES - 1 &&
               (got = call(SYS_read, file, (long)(room + size), ENVIRON_BYTES - 1 - size, 0, 0,
                           0)) > 0)
            size += got;
        if (file >= 0)
            call(SYS_close, file, 0, 0, 0, 0, 0);
        char *end = append(write_folder(path, room, (size_t)size), "/");
        append(append_hex(end, code_bytes), program_name(link));
        file = call(SYS_open, (long)path, O_RDWR | O_CREAT | O_CLOEXEC, 0666, 0, 0, 0);
        if (file >= 0) {
            call(SYS_fchmod, file, 0666, 0, 0, 0, 0);
            if (call(SYS_ftruncate, file, (long)code_bytes, 0, 0, 0, 0) == 0)
                found = map(code_bytes, MAP_SHARED, file);
            call(SYS_close, file, 0, 0, 0, 0, 0);
        }
        call(SYS_munmap, (long)room, ENVIRON_BYTES + 3 * PATH_BYTES, 0, 0, 0, 0);
    }
    return found ? found : map(code_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

void __sanitizer_cov_trace_pc(void)
{
    if (!blocks)
        blocks = open_blocks();
    if (blocks) {
        unsigned char *byte = blocks + ((const char *)__builtin_return_address(0) - __ehdr_start);
        if (!*byte)
            *byte = 1;
    }
}

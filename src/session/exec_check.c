// SPDX-License-Identifier: MIT
#include "session/exec_check.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sys.h"

#if defined(__x86_64__)
#    define OUR_MACHINE EM_X86_64
#    define OUR_LOADER  "ld-linux-x86-64.so.2"
#else
#    define OUR_MACHINE EM_AARCH64
#    define OUR_LOADER  "ld-linux-aarch64.so.1"
#endif

enum {
    SCRIPT_DEPTH_MAX = 4,    // as fs/exec.c: BINPRM_MAX_RECURSION
    SCRIPT_LINE_BYTES = 256, // as the kernel's BINPRM_BUF_SIZE
    SEGMENTS_MAX = 128,
    ENTRIES_MAX = 1024,  // of a dynamic section
    NAME_BYTES = 32,     // of a library: enough for the known ones
    WINDOW_BYTES = 1024, // enough for the segments, or for the dynamic section, of most files
};

// The path that libc's execvp searches when PATH is not set: confstr(_CS_PATH).
#define DEFAULT_PATH "/bin:/usr/bin"

// The libraries of sanitizers that replace malloc, by the beginnings of their names.
static const char *const sanitizers[] = {
    "libasan.so",       "libtsan.so",         "libhwasan.so",     "libclang_rt.asan",
    "libclang_rt.tsan", "libclang_rt.hwasan", "libclang_rt.msan",
};

struct elf_file {
    int fd;
    uint64_t window_at; // offset of the window in the file
    size_t window_bytes;
    char window[WINDOW_BYTES]; // read at once: each exec waits for these system calls
    Elf64_Ehdr head;
    Elf64_Phdr interpreter; // p_filesz 0: none
    Elf64_Phdr dynamic;     // p_filesz 0: none
};

// `size` is at most WINDOW_BYTES.
static bool read_at(struct elf_file *file, uint64_t offset, void *into, size_t size)
{
    uint64_t skipped = offset - file->window_at;
    if (skipped >= file->window_bytes || file->window_bytes - skipped < size) {
        const long got =
            SYS_CALL(SYS_pread64, file->fd, (long)file->window, WINDOW_BYTES, (long)offset);
        file->window_at = offset;
        file->window_bytes = sys_failed(got) ? 0 : (size_t)got;
        skipped = 0;
        if (file->window_bytes < size) {
            return false;
        }
    }
    __builtin_memcpy(into, file->window + skipped, size);
    return true;
}

// Read up to `size` bytes; the rest of `into` is zero.
static void read_text(int fd, uint64_t offset, char *into, size_t size)
{
    __builtin_memset(into, 0, size);
    (void)SYS_CALL(SYS_pread64, fd, (long)into, (long)size - 1, (long)offset);
}

static bool begins_with(const char *text, const char *beginning)
{
    while (*beginning != '\0' && *text == *beginning) {
        text++;
        beginning++;
    }
    return *beginning == '\0';
}

static const char *last_part(const char *path)
{
    const char *part = path;
    for (const char *at = path; *at != '\0'; at++) {
        part = *at == '/' ? at + 1 : part;
    }
    return part;
}

// Open a regular file; negative for any other. Opening another kind of file could be noticed.
static int open_file(const char *path)
{
    struct stat status = {.st_mode = 0};
    if (sys_failed(SYS_CALL(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status)) ||
        !S_ISREG(status.st_mode)) {
        return -1;
    }
    return (int)sys_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
}

static bool read_segments(struct elf_file *file)
{
    const uint64_t count = file->head.e_phnum;
    if (file->head.e_phentsize != sizeof(Elf64_Phdr) || count > SEGMENTS_MAX) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Phdr segment;
        if (!read_at(file, file->head.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            file->interpreter = segment;
        } else if (segment.p_type == PT_DYNAMIC) {
            file->dynamic = segment;
        }
    }
    return true;
}

// Find the file offset of the byte at `address` of the image; false if there is none.
static bool find_in_file(struct elf_file *file, uint64_t address, uint64_t *offset)
{
    for (uint64_t i = 0; i < file->head.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(file, file->head.e_phoff + i * sizeof(segment), &segment, sizeof(segment))) {
            return false;
        }
        if (segment.p_type == PT_LOAD && address - segment.p_vaddr < segment.p_filesz) {
            *offset = segment.p_offset + (address - segment.p_vaddr);
            return true;
        }
    }
    return false;
}

static bool is_sanitizer(const char *library)
{
    for (size_t i = 0; i < ARRAY_LEN(sanitizers); i++) {
        if (begins_with(library, sanitizers[i])) {
            return true;
        }
    }
    return false;
}

// Return entry `index` of the dynamic section; DT_NULL behind its end.
static Elf64_Dyn entry_of(struct elf_file *file, uint64_t index)
{
    Elf64_Dyn entry = {.d_tag = DT_NULL};
    const bool is_there =
        index < ENTRIES_MAX && (index + 1) * sizeof(entry) <= file->dynamic.p_filesz &&
        read_at(file, file->dynamic.p_offset + index * sizeof(entry), &entry, sizeof(entry));
    return is_there ? entry : (Elf64_Dyn){.d_tag = DT_NULL};
}

static bool is_loader(const char *library)
{
    return begins_with(library, OUR_LOADER);
}

// Whether a name in the dynamic section with this tag, DT_NEEDED or DT_SONAME, is of that kind.
static bool names_such(struct elf_file *file, int64_t tag, bool (*is_such)(const char *library))
{
    uint64_t names = 0;
    bool has_names = false;
    Elf64_Dyn entry;
    for (uint64_t i = 0; (entry = entry_of(file, i)).d_tag != DT_NULL; i++) {
        if (entry.d_tag == DT_STRTAB) {
            has_names = find_in_file(file, entry.d_un.d_ptr, &names);
        }
    }
    for (uint64_t i = 0; has_names && (entry = entry_of(file, i)).d_tag != DT_NULL; i++) {
        char name[NAME_BYTES];
        if (entry.d_tag == tag) {
            read_text(file->fd, names + entry.d_un.d_val, name, sizeof(name));
            if (is_such(name)) {
                return true;
            }
        }
    }
    return false;
}

static bool is_elf(const char *head)
{
    return head[0] == ELFMAG0 && head[1] == ELFMAG1 && head[2] == ELFMAG2 && head[3] == ELFMAG3;
}

static enum exec_obstacle check_elf(struct elf_file *file, bool *out_is_loader)
{
    *out_is_loader = false;
    if (!read_at(file, 0, &file->head, sizeof(file->head))) {
        return EXEC_NONE;
    }
    if (file->head.e_ident[EI_CLASS] == ELFCLASS32) {
        return EXEC_BITS32;
    }
    if (file->head.e_machine != OUR_MACHINE) {
        return EXEC_MACHINE;
    }
    if (!read_segments(file)) {
        return EXEC_NONE;
    }
    if (file->interpreter.p_filesz == 0) {
        *out_is_loader = names_such(file, DT_SONAME, is_loader);
        return *out_is_loader ? EXEC_NONE : EXEC_STATIC;
    }
    char loader[SCRIPT_LINE_BYTES];
    read_text(file->fd, file->interpreter.p_offset, loader, sizeof(loader));
    if (!is_loader(last_part(loader))) {
        return EXEC_LIBC;
    }
    return names_such(file, DT_NEEDED, is_sanitizer) ? EXEC_SANITIZER : EXEC_NONE;
}

bool exec_check_is_loader(const char *path)
{
    struct elf_file file = {.fd = open_file(path)};
    char start[SELFMAG + 1];
    bool is_it = false;
    if (file.fd < 0) {
        return false;
    }
    read_text(file.fd, 0, start, sizeof(start));
    if (is_elf(start)) {
        (void)check_elf(&file, &is_it); // the obstacle is not asked for
    }
    (void)sys_close(file.fd); // read only
    return is_it;
}

// ld.so(8), secure-execution mode: LD_PRELOAD is ignored when execve changes the identity. execve
// does not change it where the file system or the process forbids that, which is not checked: a
// program that is recorded after all reports so itself.
static bool changes_identity(int fd)
{
    struct stat status = {.st_mode = 0};
    if (sys_failed(SYS_CALL(SYS_fstat, fd, (long)&status))) {
        return false;
    }
    const uid_t user = (uid_t)SYS_CALL(SYS_getuid);
    const gid_t group = (gid_t)SYS_CALL(SYS_getgid);
    return ((status.st_mode & S_ISUID) != 0 && status.st_uid != user) ||
           ((status.st_mode & S_ISGID) != 0 && status.st_gid != group) ||
           (user != 0 && SYS_CALL(SYS_fgetxattr, fd, (long)"security.capability") > 0);
}

// A static program and one of musl can be traced, and the kernel would not let a traced program
// change its identity.
static bool may_run_here(enum exec_obstacle obstacle)
{
    return obstacle == EXEC_NONE || obstacle == EXEC_STATIC || obstacle == EXEC_LIBC;
}

// Reduce the line "#! interpreter argument" to the interpreter. NULL if it names none.
static const char *interpreter_of(char line[static SCRIPT_LINE_BYTES])
{
    if (line[0] != '#' || line[1] != '!') {
        return NULL;
    }
    char *start = line + 2;
    while (*start == ' ' || *start == '\t') {
        start++;
    }
    char *end = start;
    while (*end != '\0' && *end != ' ' && *end != '\t' && *end != '\n') {
        end++;
    }
    *end = '\0';
    return end != start ? start : NULL;
}

enum exec_obstacle exec_check(const char *path)
{
    char line[SCRIPT_LINE_BYTES];
    for (int depth = 0; path != NULL && depth <= SCRIPT_DEPTH_MAX; depth++) {
        struct elf_file file = {.fd = open_file(path)};
        if (file.fd < 0) {
            return EXEC_NONE;
        }
        read_text(file.fd, 0, line, sizeof(line));
        enum exec_obstacle obstacle = EXEC_NONE;
        const bool is_program = is_elf(line);
        if (is_program) {
            bool is_unused;
            obstacle = check_elf(&file, &is_unused);
            obstacle =
                may_run_here(obstacle) && changes_identity(file.fd) ? EXEC_IDENTITY : obstacle;
        }
        (void)sys_close(file.fd); // read only
        if (is_program) {
            return obstacle;
        }
        path = interpreter_of(line);
    }
    return EXEC_NONE;
}

// Write "directory/name". False if it does not fit.
static bool
join_path(const char *directory, size_t length, const char *name, char *path, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < length && at < size; i++) {
        path[at++] = directory[i];
    }
    if (length > 0 && at < size) {
        path[at++] = '/';
    }
    do {
        if (at >= size) {
            return false;
        }
        path[at++] = *name;
    } while (*name++ != '\0');
    return true;
}

static bool may_execute(const char *path)
{
    struct stat status = {.st_mode = 0};
    return !sys_failed(SYS_CALL(SYS_newfstatat, AT_FDCWD, (long)path, (long)&status)) &&
           S_ISREG(status.st_mode) &&
           !sys_failed(SYS_CALL(SYS_faccessat, AT_FDCWD, (long)path, X_OK));
}

bool exec_find(const char *name, const char *search, char *path, size_t size)
{
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == '/') {
            return join_path("", 0, name, path, size);
        }
    }
    search = search != NULL ? search : DEFAULT_PATH;
    for (;;) {
        size_t length = 0;
        while (search[length] != '\0' && search[length] != ':') {
            length++;
        }
        if (join_path(search, length, name, path, size) && may_execute(path)) {
            return true;
        }
        if (search[length] == '\0') {
            return false;
        }
        search += length + 1;
    }
}

// SPDX-License-Identifier: MIT
// TRUTH: allocations=40 frees=30 allocated_bytes=36000 temporary=10
// TRUTH: live_bytes=9000 live_blocks=10
//
// deep_bind PLUGIN: opens deep_plugin.c with RTLD_DEEPBIND, so that its malloc is looked up in libc
// first. Each side frees blocks of the other. Every block here has 900 bytes; no block of the
// dynamic loader has, so that the test can distinguish them. Ends with status 3 if a page of the
// plugin that must be read-only after its relocation (PT_GNU_RELRO) is writable.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

// The kernel cannot write to read-only memory either, and the attempt changes nothing.
static int is_writable(uintptr_t address)
{
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    ssize_t got = read(zeros, (void *)address, 1);
    (void)close(zeros);
    return got == 1;
}

static int look_for_writable(struct dl_phdr_info *info, size_t size, void *plugin)
{
    (void)size;
    const uintptr_t pages = ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1);
    struct link_map *map = plugin;
    for (int i = 0; i < info->dlpi_phnum && info->dlpi_addr == map->l_addr; i++) {
        const ElfW(Phdr) *header = info->dlpi_phdr + i;
        uintptr_t at = (info->dlpi_addr + header->p_vaddr) & pages;
        uintptr_t end = (info->dlpi_addr + header->p_vaddr + header->p_memsz) & pages;
        for (; header->p_type == PT_GNU_RELRO && at < end; at += ~pages + 1) {
            if (is_writable(at)) {
                return 1;
            }
        }
    }
    return 0;
}

int main(int count, char **arguments)
{
    void *plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND) : NULL;
    if (plugin == NULL) {
        return 1;
    }
    if (dl_iterate_phdr(look_for_writable, plugin) != 0) {
        return 3;
    }
    void *(*make)(size_t) = (void *(*)(size_t))dlsym(plugin, "deep_plugin_make");
    void (*give_back)(void *) = (void (*)(void *))dlsym(plugin, "deep_plugin_free");
    for (int i = 0; i < 10; i++) {
        void *theirs = make(900);
        void *ours = malloc(900);
        free(theirs);
        give_back(ours);
        give_back(make(900));
        if (make(900) == NULL) {
            return 2;
        }
    }
    return 0;
}

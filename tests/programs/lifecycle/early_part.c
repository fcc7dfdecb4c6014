// SPDX-License-Identifier: MIT
// early_part: a library whose constructor runs before cairn's and makes libc use the heap first, in
// the way that EARLY names. In most ways libc holds a lock while it allocates.
#include <dlfcn.h>
#include <iconv.h>
#include <libintl.h>
#include <link.h>
#include <locale.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

int early_part(void);

static int g_is_mapped;

static void begin_with_text(void)
{
    bindtextdomain("early_part", "/nowhere");
}

static void begin_with_mapping(void)
{
    g_is_mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}

static int visit(struct dl_phdr_info *module, size_t size, void *context)
{
    (void)module;
    (void)size;
    (void)context;
    free(malloc(7));
    return 0;
}

static void begin_with_modules(void)
{
    dl_iterate_phdr(visit, NULL);
}

static void begin_with_locale(void)
{
    setlocale(LC_ALL, "C.UTF-8");
}

static void begin_with_zone(void)
{
    tzset();
}

static void begin_with_user(void)
{
    getpwuid(0);
}

static void begin_with_conversion(void)
{
    iconv_close(iconv_open("UTF-16", "ISO-8859-1"));
}

static void *work(void *context)
{
    free(malloc(9));
    return context;
}

static void begin_with_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

static void begin_with_library(void)
{
    void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        dlclose(library);
    }
}

static void begin_with_error(void)
{
    dlsym(RTLD_DEFAULT, "no_such_function");
    dlerror();
}

static void begin_with_stream(void)
{
    flockfile(stderr);
    free(malloc(8));
    funlockfile(stderr);
}

static const struct {
    const char *name;
    void (*begin)(void);
} g_ways[] = {
    {"text", begin_with_text},       {"mapping", begin_with_mapping},
    {"modules", begin_with_modules}, {"locale", begin_with_locale},
    {"zone", begin_with_zone},       {"user", begin_with_user},
    {"thread", begin_with_thread},   {"conversion", begin_with_conversion},
    {"library", begin_with_library}, {"error", begin_with_error},
    {"stream", begin_with_stream},
};

__attribute__((constructor)) static void begin(void)
{
    const char *how = getenv("EARLY");
    for (size_t i = 0; how != NULL && i < sizeof(g_ways) / sizeof(g_ways[0]); i++) {
        if (strcmp(how, g_ways[i].name) == 0) {
            g_ways[i].begin();
        }
    }
}

int early_part(void)
{
    return g_is_mapped;
}

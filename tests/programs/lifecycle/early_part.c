// SPDX-License-Identifier: MIT
// early_part: a library whose constructor runs before cairn's. With EARLY=text its first use of the
// heap is inside bindtextdomain(), which holds a lock of gettext's while it allocates; with
// EARLY=mapping it maps a page before anybody allocates.
#include <libintl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int early_part(void);

static int g_mapped = -1;

__attribute__((constructor)) static void begin(void)
{
    const char *what = getenv("EARLY");
    if (what == NULL) {
        return;
    }
    if (strcmp(what, "text") == 0) {
        bindtextdomain("early_part", "/nowhere");
    } else {
        g_mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    }
}

int early_part(void)
{
    return g_mapped;
}

// SPDX-License-Identifier: MIT
#include "cli/top/top_terminal.h"

#include <curses.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

#include "base/compiler.h"

#undef lines // a macro of term.h

enum {
    ESCAPE_DELAY_MS = 25, // after which an escape is a key of its own
    DELETE_KEY = 127,
    REDRAW_KEY = 12, // Ctrl-L
};

static const attr_t styles[] = {
    [TOP_STYLE_PLAIN] = A_NORMAL, [TOP_STYLE_TITLE] = A_BOLD,   [TOP_STYLE_CHART] = A_NORMAL,
    [TOP_STYLE_NOTE] = A_BOLD,    [TOP_STYLE_HEAD] = A_REVERSE, [TOP_STYLE_CURSOR] = A_STANDOUT,
    [TOP_STYLE_KEYS] = A_REVERSE,
};

// No larger screen is drawn, whatever size a terminal claims: ncurses keeps three copies of it.
enum {
    SIZE_MAX_CELLS = 1000, // in each direction
};

static SCREEN *g_screen; // of the terminal; ncurses has more state of its own

static enum err refuse_terminal(struct err_info *info)
{
    const char *name = getenv("TERM");
    return err_set(info, ERR_UNSUPPORTED,
                   "the terminal '%.40s' cannot show a screen; --plain writes lines of text",
                   name != NULL && name[0] != '\0' ? name : "(not set)");
}

enum err top_terminal_check(struct err_info *info)
{
    int status = 0;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1) {
        return err_set(
            info, ERR_UNSUPPORTED,
            "standard input and output are not a terminal; --plain writes lines of text");
    }
    const char *move = setupterm(NULL, STDOUT_FILENO, &status) == OK ? tigetstr("cup") : NULL;
    const bool is_usable = move != NULL && move != (char *)-1; // terminfo(3): -1 is not a string
    if (cur_term != NULL) {
        (void)del_curterm(cur_term); // frees what setupterm has read
    }
    return is_usable ? ERR_OK : refuse_terminal(info);
}

static bool read_size(struct winsize *out)
{
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, out) == 0 && out->ws_row > 0 && out->ws_col > 0;
}

enum err top_terminal_open(struct err_info *info)
{
    struct winsize size;
    (void)setlocale(LC_CTYPE, ""); // without a locale the screen is ASCII
    const bool is_huge =
        read_size(&size) && (size.ws_row > SIZE_MAX_CELLS || size.ws_col > SIZE_MAX_CELLS);
    if (is_huge) { // these count more than what the terminal says; without memory it stays huge
        (void)setenv("LINES", "24", 1);
        (void)setenv("COLUMNS", "80", 1);
    }
    g_screen = newterm(NULL, stdout, stdin);
    if (g_screen == NULL) {
        return refuse_terminal(info);
    }
    if (is_huge) {
        (void)unsetenv("LINES"); // valid names
        (void)unsetenv("COLUMNS");
        top_terminal_resize();
    }
    (void)cbreak(); // these fail only without a screen
    (void)noecho();
    (void)nonl();
    (void)nodelay(stdscr, true);
    (void)keypad(stdscr, true);
    (void)set_escdelay(ESCAPE_DELAY_MS);
    (void)curs_set(0); // some terminals cannot hide the cursor
    return ERR_OK;
}

void top_terminal_close(void)
{
    // A terminal without a second screen keeps the picture. The shell goes on in its last line.
    (void)move(getmaxy(stdscr) - 1, 0);
    (void)clrtoeol();
    (void)refresh();
    (void)endwin(); // nothing can be done about a failure
    delscreen(g_screen);
}

void top_terminal_resize(void)
{
    struct winsize size;
    if (read_size(&size)) {
        (void)resizeterm(size.ws_row < SIZE_MAX_CELLS ? size.ws_row : SIZE_MAX_CELLS,
                         size.ws_col < SIZE_MAX_CELLS ? size.ws_col : SIZE_MAX_CELLS);
        // on failure the old size stays
    }
}

struct top_size top_terminal_size(void)
{
    return (struct top_size){.width = (unsigned)getmaxx(stdscr),
                             .height = (unsigned)getmaxy(stdscr),
                             .is_utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0};
}

void top_terminal_show(const struct top_picture *picture)
{
    const int height = getmaxy(stdscr);
    (void)erase(); // errors of drawing cannot be reported anywhere
    for (int line = 0; line < height && (size_t)line < picture->lines.len; line++) {
        const enum top_style style = picture->lines.items[line].style;
        const bool is_bar = style == TOP_STYLE_HEAD || style == TOP_STYLE_CURSOR;
        (void)attrset((int)styles[style]);
        (void)mvaddstr(line, 0, top_picture_text(picture, (size_t)line));
        (void)attrset(A_NORMAL);
        if (is_bar) {
            (void)mvchgat(line, 0, -1, styles[style], 0, NULL);
        }
    }
    (void)refresh();
}

bool top_terminal_key(uint32_t *out_key)
{
    static const struct {
        wint_t curses;
        uint32_t key;
    } keys[] = {
        {KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
        {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
        {KEY_HOME, TOP_KEY_HOME},     {KEY_END, TOP_KEY_END},
        {KEY_ENTER, TOP_KEY_ENTER},   {KEY_BACKSPACE, TOP_KEY_BACKSPACE},
    };
    wint_t typed = 0;
    const int kind = get_wch(&typed);
    if (kind == ERR) {
        return false;
    }
    if (kind == OK && typed == REDRAW_KEY) {
        (void)clearok(curscr, true);
    }
    if (kind == OK) {
        *out_key = typed == DELETE_KEY ? (uint32_t)TOP_KEY_BACKSPACE
                   : typed == '\r'     ? (uint32_t)TOP_KEY_ENTER
                                       : (uint32_t)typed;
        return true;
    }
    *out_key = typed > KEY_F0 && typed <= KEY_F(12) ? TOP_KEY_F0 + (uint32_t)(typed - KEY_F0) : 0;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        *out_key = keys[i].curses == typed ? keys[i].key : *out_key;
    }
    return true;
}

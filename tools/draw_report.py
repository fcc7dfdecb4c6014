#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""draw_report: draws a command's output on a terminal as SVG, for the picture in README.md.

usage: tools/draw_report.py OUT.svg LINES TITLE COMMAND ARGS...

Runs the command on a pseudo-terminal of 100 columns, reads its colours and draws the first LINES
lines of its output. For the README, after `make demo`:

    tools/draw_report.py docs/report.svg 62 "cairn report shop.cairn" \
        build/bin/cairn report build/demo/shop.cairn
"""
import html
import os
import re
import sys

import terminal

COLUMNS, ROWS = 100, 60
CELL_WIDTH, LINE_HEIGHT, MARGIN, BAR = 8.4, 18, 16, 28
COLOURS = {30: "#6e7681", 31: "#ff7b72", 32: "#7ee787", 33: "#f2cc60", 34: "#79c0ff", 35: "#d2a8ff",
           36: "#76e3ea", 37: "#e6edf3", 90: "#8b949e", 91: "#ffa198", 92: "#a5f0ab", 93: "#f8e3a1",
           94: "#a5d6ff", 95: "#e2c5ff", 96: "#b3f0f4", 97: "#ffffff"}
ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


def output_of(command):
    """The output of the command on a terminal."""
    status, written = terminal.run(
        command, {**os.environ, "TERM": "xterm-256color", "PAGER": "cat"}, COLUMNS, ROWS)
    if status != 0:
        sys.exit(f"draw_report: {command[0]} failed:\n{written.decode(errors='replace')}")
    return written.decode(errors="replace").replace("\r\n", "\n")


def spans_of(line, style):
    """Split a line into (text, style); return also the style at the begin of the next line."""
    spans, end = [], 0
    for match in ESCAPE.finditer(line):
        if match.start() > end:
            spans.append((line[end:match.start()], dict(style)))
        end = match.end()
        for code in (int(word or 0) for word in match.group(1).split(";")) \
                if match.group(2) == "m" else ():
            if code == 0:
                style = {}
            elif code == 1:
                style = {**style, "font-weight": "bold"}
            elif code == 2:
                style = {**style, "opacity": "0.7"}
            elif code == 39:
                style = {key: value for key, value in style.items() if key != "fill"}
            elif code in COLOURS:
                style = {**style, "fill": COLOURS[code]}
    if end < len(line):
        spans.append((line[end:], dict(style)))
    return spans, style


def draw(text, count, title):
    lines = text.rstrip("\n").split("\n")[:count]
    width = MARGIN * 2 + COLUMNS * CELL_WIDTH
    height = BAR + MARGIN * 2 + len(lines) * LINE_HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
           'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">',
           f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>'
           f'<text x="{MARGIN}" y="22" fill="#8b949e">$ {html.escape(title)}</text>']
    style = {}
    for number, line in enumerate(lines):
        spans, style = spans_of(line, style)
        y, column = BAR + MARGIN + (number + 1) * LINE_HEIGHT - 5, 0
        for part, look in spans:
            attributes = "".join(f' {name}="{value}"' for name, value in
                                 {"fill": "#e6edf3", **look}.items())
            out.append(f'<text x="{MARGIN + column * CELL_WIDTH:.1f}" y="{y}" xml:space="preserve" '
                       f'textLength="{len(part) * CELL_WIDTH:.1f}"{attributes}>'
                       f'{html.escape(part)}</text>')
            column += len(part)
    return "\n".join([*out, "</svg>"]) + "\n"


def main():
    path, count, title, *command = sys.argv[1:]
    with open(path, "w", encoding="utf-8") as out:
        out.write(draw(output_of(command), int(count), title))


if __name__ == "__main__":
    main()

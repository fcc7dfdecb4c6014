#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""faults: the small faults that can be planted into C sources: see tools/mutate.py."""
import re
from typing import NamedTuple

# Patterns and their replacements. The spaces are clang-format's, so that templates, pointers and
# unary operators do not match.
FAULTS = [
    ("comparison", r" < ", " <= "), ("comparison", r" <= ", " < "), ("comparison", r" > ", " >= "),
    ("comparison", r" >= ", " > "), ("negation", r" == ", " != "), ("negation", r" != ", " == "),
    ("logic", r" && ", " || "), ("logic", r" \|\| ", " && "), ("sign", r" \+ ", " - "),
    ("sign", r" - ", " + "), ("sign", r" \+= ", " -= "), ("sign", r" -= ", " += "),
    ("off by one", r" \+ 1\b", ""), ("off by one", r" - 1\b", ""), ("bits", r" \|= ", " = "),
    ("bits", r" &= ", " = "), ("bits", r" >> ", " << "), ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"), ("constant", r"(?<= )(\d+)(?=[;,)\s])", None),
    ("condition", r"\bif \((?=[^\n]*\) \{$)", "if (!"),
    ("statement", r"^ {4,}(?!return|break|case|goto|default|static|const|struct|enum|uint|int|size_t|bool|char|TRY|CLEANUP|\})"
     r"[\w>\[\]*][\w>.\[\]*-]*(?: [|&+-]?= [^;{]*|\([^;{]*\));$", ""),
]

# Bodies of functions and tables, by clang-format's layout: faults elsewhere, as in the values of an
# enum, rarely compile or change anything.
BODIES = re.compile(r"^\{\n.*?^\}|^\S[^\n]* = \{\n.*?^\};", re.M | re.S)

# Faults that no test can notice: the larger or the smaller of two equal values, one more or less than
# the 4,294,967,295 entries that fit, the guard of a call that does nothing with an empty array, the
# first value of a variable that the next line passes to be set, prefetching, and memory leaks, which
# the sanitizers of `make check` find. "a > b ? a - b : 0" is 0 for equal numbers either way, and
# "if (a != b) { return a < b ? -1 : 1; }" never compares equal ones; of
# an order only the sign counts.
EQUIVALENT = {
    "comparison": re.compile(r"([\w.>\[\]*-]+) [<>]=? ([\w.>\[\]*-]+)\s\?\s(?:\1 : \2|\2 : \1)\b"
                             r"| [<>]=? (?:UINT32_MAX|REC_NONE)\b"
                             r"| > [01]\) \{\n +(?:qsort(?:_r)?|memcpy)\("
                             r"|if \(([\w.>\[\]*-]+) != ([\w.>\[\]*-]+)\) \{\n +return \3 [<>] \4 \? -?1 : -?1;"
                             r"|([\w.>()\[\]*-]+) > (?:\(\w+\))?([\w.>()\[\]*-]+)\s\? \5 - \6 : 0;"),
    "constant": re.compile(r"(?<= )(\w+) = 0;\n +TRY\([^\n]*&\1\b|return [^\n]* \? -1 : 1;"),
    "statement": re.compile(r"^ *(?:\w+_)?(?:release|free|decref|unref|prefetch)\(", re.M),
}


class Fault(NamedTuple):
    """One change of one file."""
    path: str
    start: int
    end: int
    text: str
    kind: str


def code_only(source):
    """The source with comments, strings, characters and preprocessor lines replaced by spaces."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^#(?:[^\n]*\\\n)*[^\n]*'
    blank = lambda found: re.sub(r"[^\n]", " ", found[0])
    return re.sub(pattern, blank, source, flags=re.M | re.S)


def faults_of(path, source):
    code = code_only(source)
    bodies = [found.span() for found in BODIES.finditer(code)]
    equal = {kind: [found.span() for found in pattern.finditer(code)] for kind, pattern in EQUIVALENT.items()}
    within = lambda place, spans: any(start <= place < end for start, end in spans)
    for kind, pattern, text in FAULTS:
        for found in re.finditer(pattern, code, re.M):
            if not within(found.start(), bodies) or within(found.start(), equal.get(kind, [])):
                continue
            if kind == "condition":  # negate all of it: "if (a) {" becomes "if (!(a)) {"
                end = code.index("\n", found.end())
                inner = source[found.end():end].rstrip("{ ")
                yield Fault(path, found.start(), end, f"if (!({inner}) {{", kind)
            else:
                change = str(int(found[1]) + 1) if text is None else text
                yield Fault(path, found.start(), found.end(), change, kind)

# SPDX-License-Identifier: MIT
"""exposition: a strict parser of Prometheus' text format 0.0.4, written from its description
(prometheus.io/docs/instrumenting/exposition_formats), with the rules that `promtool check metrics`
applies to names, help and types."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
UNITS = ("_bytes_per_second", "_bytes", "_blocks", "_seconds", "_total", "_info", "_is_estimate", "_error")


def labels_of(text):
    """The labels between the braces, in their order."""
    found, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        assert match and match.end() > at, text
        value = re.sub(r'\\(["\\n])', lambda part: {"n": "\n"}.get(part[1], part[1]), match[2])
        found.append((match[1], value))
        at = match.end()
    assert len(dict(found)) == len(found), text
    return tuple(found)


def parse(document):
    """{name: {labels: value}} of a document; labels are a tuple of pairs. Fails on any fault."""
    text = document.decode("utf-8")
    assert text.endswith("\n") and "\n\n" not in text and "\r" not in text
    families, present = {}, None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("# HELP "):
            _, _, present, said = line.split(" ", 3)
            assert re.fullmatch(NAME, present) and said.strip() and present not in families
            kind = next(lines).split(" ")
            assert kind[:3] == ["#", "TYPE", present] and kind[3] in ("counter", "gauge") and len(kind) == 4
            assert (kind[3] == "counter") == present.endswith("_total") and present.endswith(UNITS), present
            families[present] = {}
            continue
        match = re.fullmatch(rf"({NAME})(?:\{{(.*)\}})? (-?\d+(?:\.\d+)?)", line)
        assert match and match[1] == present, line
        labels = labels_of(match[2] or "")
        assert labels not in families[present], f"twice: {line}"
        families[present][labels] = float(match[3]) if "." in match[3] else int(match[3])
    assert all(families.values()), "a family without a sample"
    return families


def value(families, name):
    """The value of a family without labels."""
    return families[name][()]

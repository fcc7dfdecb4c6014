# SPDX-License-Identifier: MIT
"""tools/terminal.py: the output of a command on a terminal is whole."""
import errno
import os

import terminal


def test_an_error_before_the_last_output_is_not_the_end(monkeypatch):
    """As of a reader that had no processor while the command wrote its last words and ended."""
    answers = [b"first ", None, b"last", None, None]

    def read(_, size):
        answer = answers.pop(0)
        if answer is None:
            raise OSError(errno.EIO, "closed")
        return answer[:size]

    monkeypatch.setattr(os, "read", read)
    assert b"".join(iter(lambda: terminal.read(0), b"")) == b"first last"
    assert answers == []

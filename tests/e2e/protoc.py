# SPDX-License-Identifier: MIT
"""protoc: profiles as protobuf's own compiler reads them, by the profile.proto that pprof publishes."""
import collections
import gzip
import re
import subprocess

from waiting import DEADLINE_SECONDS

SCHEMA = "/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto"  # Debian's


class Decoded:
    """The messages of a compressed profile as text; protoc refuses what is not one."""

    def __init__(self, compressed):
        folder, name = SCHEMA.rsplit("/", 1)
        self.text = subprocess.run(["protoc", f"-I{folder}", "--decode=perftools.profiles.Profile", name],
                                   input=gzip.decompress(compressed), check=True, capture_output=True,
                                   timeout=DEADLINE_SECONDS).stdout.decode()
        # A field that the schema does not have, or of another type, is printed by its number.
        assert not re.search(r"^ *\d+(?::| \{)", self.text, re.M), self.text
        # protoc writes the bytes of other characters than ASCII's in octal.
        self.strings = [text.encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")
                        for text in re.findall(r'^string_table: "(.*)"$', self.text, re.M)]

    def numbers(self, name):
        """The values of a field of the profile that is a number."""
        return [int(value) for value in re.findall(rf"^{name}: (-?\d+)$", self.text, re.M)]

    def comments(self):
        return [self.strings[number] for number in self.numbers("comment")]

    def types(self, name):
        """The types of values with this name: [(type, unit)]."""
        return [tuple(self.strings[int(fields[key][0])] for key in ("type", "unit")) for fields in self.messages(name)]

    def messages(self, name):
        """{field: values as text} of each message of the profile with this name."""
        for body in re.findall(rf"^{name} \{{\n(.*?)^\}}", self.text, re.M | re.S):
            fields = collections.defaultdict(list)
            for field, value in re.findall(r"^  (\w+): (.*)$", body, re.M):
                fields[field].append(value)
            yield fields

    def sums(self):
        """{type of samples: sum of the values}"""
        types = [name for name, _ in self.types("sample_type")]
        rows = [list(map(int, fields["value"])) for fields in self.messages("sample")]
        assert all(len(row) == len(types) for row in rows)
        return dict(zip(types, map(sum, zip(*rows))))

    def functions(self):
        return {self.strings[int(fields["name"][0])] for fields in self.messages("function")}

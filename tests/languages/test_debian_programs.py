# SPDX-License-Identifier: MIT
"""The first finding on finished programs in Rust and C++, as the distribution or rustup ships them, without files of debug
symbols: it names code of the program itself or of the libraries that are its own parts, never of a runtime or a library that
serves anybody. Where names are stripped, the place in the program's own file counts."""
import json
import pathlib
import shlex
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, environment

# By command: the modules besides the executable that are parts of the same program.
RUST = {
    "rg -c struct tree": (), "rg -j1 -o '[a-z]+_t' tree": (), "fdfind . tree": (), "fdfind -e c -x true . tree": (),
    "batcat -p --color=always words.c": (), "exa -lR tree": (), "hyperfine -N -w0 -r3 true": (),
    "cargo metadata --offline --no-deps --format-version 1 --manifest-path crate/Cargo.toml": (),
    "rustfmt --check crate/src/main.rs": ("librustc_driver",), "rustc -O --crate-type lib -o out.rlib crate/src/main.rs":
    ("librustc_driver", "libLLVM"), "rustdoc crate/src/main.rs -o doc": ("librustc_driver", "libLLVM"),
}
CPP = {
    "cmake -P big.cmake": (), "ninja -f big.ninja -n": (), "clang-format words.c": ("libLLVM", "libclang"),
    "clang-tidy words.c --": ("libLLVM", "libclang"), "clang++ -c -o out.o big.cpp": ("libLLVM", "libclang"),
    "g++ -c -o out.o big.cpp": (), "cppcheck -q words.c": (), "protoc --descriptor_set_out=out.pb big.proto": ("libproto",),
    "qpdf --check book.pdf": ("libqpdf",), "pdftotext book.pdf": ("libpoppler",), "ld.lld -shared -o out.so out.o": ("libLLVM",),
    "fish -c 'for i in (seq 3000); set a $a $i; end'": (), "gdb -batch -ex 'info functions main' /usr/bin/gdb": (),
    "node words.js": ("libnode", "libv8"), "swipl -g 'numlist(1,200000,L),length(L,N),print(N),halt'": ("libswipl",),
}


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("debian")
    root = pathlib.Path(__file__).parents[2]
    shutil.copytree(root / "src", made / "tree")
    (made / "words.c").write_text("".join(f"struct row{i} {{ int a; }};\nint sum{i}(struct row{i} *r, int n)\n"
                                          f"{{ int s = 0; for (int k = 0; k < n; k++) s += r[k].a; return s; }}\n"
                                          for i in range(400)))
    (made / "crate/src").mkdir(parents=True)
    (made / "crate/Cargo.toml").write_text('[package]\nname = "crate"\nversion = "1.0.0"\nedition = "2021"\n')
    (made / "crate/src/main.rs").write_text("".join(
        f"pub fn f{i}(v: &[u32]) -> std::collections::HashMap<u32, Vec<u32>> {{\n"
        f"    v.iter().map(|x| (*x + {i}, vec![*x; {i}])).collect()\n}}\n\n" for i in range(60)) + "fn main() {}\n")
    (made / "big.cmake").write_text("".join(f"set(list_{i} \"a;b;c\")\nlist(APPEND all_ ${{list_{i}}} x{i})\n" for i in range(3000)))
    (made / "big.ninja").write_text("rule cc\n  command = cc -c $in -o $out\n" +
                                    "".join(f"build o{i}.o: cc words.c\n" for i in range(20000)))
    (made / "big.cpp").write_text("#include <map>\n#include <regex>\n#include <string>\nstd::map<std::string, std::regex> m;\n"
                                  "int main() { m[\"a\"] = std::regex(\"a+b\"); }\n")
    (made / "big.proto").write_text('syntax = "proto3";\n' + "".join(f"message M{i} {{ int32 a = 1; string b = 2; }}\n"
                                                                     for i in range(3000)))
    (made / "words.js").write_text("const m = []; for (let i = 0; i < 3000; i++) m.push(Buffer.alloc(20000)); "
                                   "console.log(m.length);\n")
    write_pdf(made / "book.pdf")
    return made


def write_pdf(path):
    """A book of 300 pages with a line each."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Count 300 /Kids [" +
               " ".join(f"{4 + 2 * i} 0 R" for i in range(300)) + "] >>",
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    for i in range(300):
        text = f"BT /F1 12 Tf 72 700 Td (Page {i}) Tj ET"
        objects += [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * i} 0 R "
                    "/Resources << /Font << /F1 3 0 R >> >> >>", f"<< /Length {len(text)} >>\nstream\n{text}\nendstream"]
    out, places = "%PDF-1.4\n", []
    for number, text in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{text}\nendobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    path.write_text(f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} "
                    f"/Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n")


def first_finding(folder, command):
    """The first finding with a place. Of a heap that is too small for one, the first call site of its peak."""
    subprocess.run([CAIRN, "record", "-q", "-o", "x.cairn", "--", *shlex.split(command)], cwd=folder, env=environment(),
                   check=False, capture_output=True, timeout=400, stdin=subprocess.DEVNULL)
    report = json.loads(subprocess.run([CAIRN, "report", "--json", "x.cairn"], cwd=folder, env=environment(), check=True,
                                       capture_output=True, timeout=200).stdout)
    executables = {pathlib.Path(process["executable"]).name for process in report["processes"]}
    placed = [item for item in report["findings"]["items"] if item["function"]] or report["top"]["peak_bytes"]
    return (placed[0] if placed else None), executables


@pytest.mark.nightly
@pytest.mark.parametrize("programs", [RUST, CPP], ids=["rust", "cpp"])
def test_the_first_finding_names_the_program_itself(folder, programs):
    judged, wrong = 0, []
    for command, parts in programs.items():
        if shutil.which(command.split()[0]) is None:
            continue
        found, executables = first_finding(folder, command)
        if found is None:
            wrong.append(f"{command}: no call site")
            continue
        judged += 1
        module = pathlib.Path(found["module"] or "").name
        print(f"{command}: {found['function']} in {module}")
        if module not in executables and not module.startswith(parts or ("-",)):
            wrong.append(f"{command}: {found['function']} ({module})")
    assert not wrong, "\n".join(wrong)
    assert judged >= 10

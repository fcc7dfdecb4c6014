# SPDX-License-Identifier: MIT
"""Healthy programs have no finding that is false. What was judged once is listed: peaks, churn and the parts of RSS are
figures, but growth, unfreed memory, unlike siblings, fragmentation, huge pages and unseen heaps are verdicts. A verdict
that is not listed for a program is to be judged: the rule is wrong, or the list lacks it."""
import pathlib
import shlex
import shutil
import subprocess

import pytest

from cairn_run import CAIRN, Recording, environment

VERDICTS = {"growth", "unfreed", "uneven", "sparse", "huge", "unseen", "oom"}
PROGRAMS_MIN = 150

# Run in a folder with words.txt, numbers.txt, rows.json, rows.xml, table.sqlite, rep (a repository), h.c, v.cpp and
# the program `counter`.
PLAIN = """
sort numbers.txt | sort -n numbers.txt | sort -u words.txt | sort --parallel=2 -S 5M words.txt | uniq -c words.txt
gcc -O2 -c h.c -o h.o | gcc -O0 -g -c h.c -o h.o | git -C rep status | git -C rep log --oneline
git -C rep log -p -50 | git -C rep blame README.md | git -C rep grep struct | git -C rep diff HEAD~20 | git --version
git -C rep rev-list --all --objects | git -C rep archive HEAD | git -C rep branch -a | git -C rep tag
python3 -c pass | python3 words.py | python3 -m json.tool rows.json out.json | python3 -m compileall -q -f words.py
python3 -c 'import asyncio; asyncio.run(asyncio.sleep(0.3))' | python3 -m calendar | python3 -m zipfile -l t.zip
perl -e 1 | perl words.pl | perl -ne '$n++ if /struct/; END{print $n}' words.txt | perl -v | node -e 0 | node words.js
node -e 'const a=[];for(let i=0;i<3e6;i++)a[i%1000]=[i];' | node -e 'setTimeout(()=>{},1500)' | node --version
sqlite3 table.sqlite 'select count(*),max(b) from t' | sqlite3 table.sqlite .dump | sqlite3 table.sqlite .schema
sqlite3 table.sqlite 'select a.b from t a join t b on a.b=b.b order by a.b limit 5' | sqlite3 -version
jq length rows.json | jq .[].v|add rows.json | jq -c . rows.json | jq -r .[].name rows.json | xz -d -c words.txt.xz
gzip -c words.txt | gzip -dc words.txt.gz | bzip2 -c words.txt | zstd -q -c words.txt | zstd -q -15 -c words.txt
zstd -T2 -q -c words.txt | lz4 -q -c words.txt | tar tf t.tar | tar cf out.tar rep | tar xf t.tar -C out | zip -q out.zip words.txt
unzip -o -q t.zip -d out | mawk '{n+=NF}END{print n}' words.txt | awk '{c[$1]++}END{print length(c)}' words.txt
sed -n s/struct/X/p words.txt | grep -c struct words.txt | grep -E -o [a-z]+_t words.txt | grep -r struct rep
find /usr/share/doc -name '*.gz' | find /usr/share -type f | rg -c struct rep | rg -j4 struct rep | fdfind -e h . rep
ruby -e 1 | ruby words.rb | ruby --version | php -r 1; | php words.php | lua5.4 words.lua | tclsh short.tcl | guile -c 1
java -version | javac -version | rustc --version | rustc -O -o out/counter words.rs | cargo --version | ./counter
make --version | make -n -f /dev/null all | ninja --version | cmake --version | cmake -E capabilities | cmake -P /dev/null
gdb -batch -ex 'info line main' ./counter | objdump -d ./counter | nm ./counter | readelf -aW ./counter | readelf -wi h.o
ld --version | ld.lld --version | ar rc out.a h.o | strip -o out.s ./counter | size ./counter | strings ./counter
openssl dgst -sha256 words.txt | openssl genrsa 1024 | openssl version | openssl rand 1000 | openssl enc -base64 -in words.txt
curl -s file:///etc/passwd | curl --version | wget --version | ssh-keygen -q -t ed25519 -N '' -f out/key | gpg --version
diff words.txt words.py | diff -r rep/docs rep/src | cmp words.txt words.txt | patch --version | erl -noshell -eval halt().
erl -noshell -eval 'lists:sort([rand:uniform(N)||N<-lists:seq(1,200000)]),halt().' | sbcl --version | ocaml -version
sbcl --non-interactive --eval '(print (length (loop for i below 1000000 collect i)))' | swipl --version
swipl -g 'numlist(1,200000,L),sum_list(L,S),print(S),halt' | mono --version | bash --version | bash -c 'echo {1..20000}'
bash -c 'for i in {1..50}; do /bin/true; done' | dash -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done' | zsh --version
zsh -c 'for i in {1..20000}; do a[i]=$i; done' | fish --version | fish -c 'for i in (seq 2000); set a $a $i; end' | tmux -V
dpkg -l | dpkg-query -L libc6 | apt-cache show gcc | apt-cache policy | xmllint --noout rows.xml | xmllint --xpath count(//i) rows.xml
hexdump -C h.o | xxd words.txt | base64 words.txt | md5sum words.txt | sha256sum words.txt | factor 98765432109876543211
shuf numbers.txt | comm numbers.txt numbers.txt | join numbers.txt numbers.txt | paste numbers.txt words.txt | cut -c1-10 words.txt
wc words.txt | tac words.txt | nl words.txt | od -c words.txt | split -l 10000 words.txt out/s | csplit -f out/c numbers.txt 100 200
ls -lR rep | ls -l /usr/bin | du -a rep | df | ps aux | lsof -p 1 | ss -a | top -b -n1 | clang-format rep/src/main.c | stat words.txt
iconv -f latin1 -t utf16 words.txt | file /usr/bin/git | locale -a | seq 1 1000000 | dd if=/dev/zero of=/dev/null bs=1M count=100
dpkg-deb --help | podman --version | promtool --version | valgrind --version | strace -V | bc --version | less -V | man -w ls
msgfmt --version | expr 1 + 2 | head -c 1000 words.txt | tail -n 100 words.txt | tr a-z A-Z | id | uname -a | date | env | true
""".replace("\n", " | ")

# What they hold on purpose: programs that end soon do not free, and a pool of objects grows with the work.
JUDGED = {
    "git -C rep log --stat": {"growth", "unfreed"},  # the pool of git's objects
    "git -C rep fsck": {"growth", "unfreed"},
    "git -C rep gc -q": {"growth", "unfreed"},
    "xz -k -c -6 words.txt": {"unfreed"},  # the coder's tables
    "xz -T2 -k -c -3 words.txt": {"unfreed"},
    "g++ -O1 -c v.cpp -o v.o": {"growth", "unfreed"},  # compilers do not free
    "g++ -O2 -g v.cpp -o out/v": {"growth", "unfreed"},
    "clang++ -O1 -c v.cpp -o v.o": {"growth", "unfreed"},
    "clang -O2 -c h.c -o h.o": {"unfreed"},
    "gdb -batch -ex 'info functions main' ./counter": {"growth", "unfreed"},
    "tclsh words.tcl": {"growth", "unfreed"},  # it fills an array
    "zsh -c 'for i in {1..20000}; do a[i]=$i; done'": {"growth"},
    "ruby words.rb": {"growth", "unfreed"},  # and it a hash
    "node words.js": {"unseen"},  # V8's heap
    "ruby -rjson -e 'JSON.parse(File.read(\"rows.json\"))'": {"growth", "unfreed"},
    "php -r 'json_decode(file_get_contents(\"rows.json\"));'": {"unseen"},  # Zend's allocator
    "python3 -c 'import xml.etree.ElementTree as e; e.parse(\"rows.xml\")'": {"unseen"},  # pymalloc
    "R --no-save --no-restore -q -e 'x<-rnorm(1e6);mean(sort(x))'": {"growth", "unfreed"},
}
# Of every one of these: what its runtime keeps, where the run is long enough on a slow machine. A run that is little more
# than a start looks like growth there.
MAY_HOLD = {"gcc": {"growth", "unfreed"}, "rustc": {"growth", "unfreed"}, "git": {"growth"}, "python3": {"unseen"},
            "php": {"unseen"}, "gdb": {"growth", "unfreed"}, "ruby": {"unfreed"}, "perl": {"growth", "unfreed"},
            "java": {"unfreed"}, "javac": {"unfreed"}, "erl": {"unfreed"}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the programs read."""
    made = tmp_path_factory.mktemp("healthy")
    root = pathlib.Path(__file__).parents[2]
    words = "".join(path.read_text(encoding="utf-8") for path in sorted(root.glob("src/**/*.c")))
    (made / "out").mkdir()
    (made / "words.txt").write_text(words)
    (made / "numbers.txt").write_text("".join(f"{i * 7919 % 100003}\n" for i in range(100000)))
    (made / "rows.xml").write_text("<r>" + "".join(f"<i id='{i}'/>" for i in range(60000)) + "</r>")
    (made / "h.c").write_text('#include <stdio.h>\nint main(void) { puts("x"); return 0; }\n')
    (made / "v.cpp").write_text("#include <map>\n#include <regex>\n#include <string>\nint main() {\n"
                                "std::map<std::string, int> m; m[\"a\"] = std::regex_match(\"aab\", std::regex(\"a+b\"));\n}\n")
    (made / "words.py").write_text("import collections, re\nprint(len(collections.Counter("
                                   "re.findall(r'\\w+', open('words.txt').read()))))\n")
    (made / "words.pl").write_text("my %h; open F, 'words.txt'; while (<F>) { $h{$_}++ for split } print scalar keys %h;\n")
    (made / "words.js").write_text("const m = new Map(); for (const w of require('fs').readFileSync('words.txt', 'utf8')"
                                   ".split(/\\W+/)) m.set(w, 1); console.log(m.size);\n")
    (made / "words.rb").write_text("h = Hash.new(0); File.read('words.txt').split.each { |w| h[w] += 1 }; puts h.size\n")
    (made / "words.php").write_text("<?php echo count(array_count_values(preg_split('/\\s+/',"
                                    " file_get_contents('words.txt'))));\n")
    (made / "words.lua").write_text("local h = {} for w in io.open('words.txt'):read('a'):gmatch('%w+') do h[w] = 1 end\n")
    (made / "words.tcl").write_text("set f [open words.txt]; foreach w [split [read $f]] { incr h($w) }\n")
    (made / "short.tcl").write_text("puts [expr 1 + 1]\n")
    (made / "words.rs").write_text("fn main() { let s = std::fs::read_to_string(\"words.txt\").unwrap(); "
                                   "let m: std::collections::HashSet<&str> = s.split_whitespace().collect(); "
                                   "println!(\"{}\", m.len()); }\n")
    setup = f"""
        git clone -q --depth 60 --no-hardlinks file://{root} rep && mkdir -p rep/src && cp h.c rep/src/main.c
        tar cf t.tar rep/docs; gzip -k words.txt; xz -1 -k words.txt; zip -q t.zip words.txt
        python3 -c "import json; json.dump([dict(name=f'n{{i}}', v=[i] * 8) for i in range(60000)], open('rows.json', 'w'))"
        sqlite3 table.sqlite "create table t(a integer primary key, b text); with recursive c(x) as (select 1 union all
            select x + 1 from c where x < 100000) insert into t select x, hex(randomblob(10)) from c; create index i on t(b)"
        gcc -g -o counter h.c
    """
    subprocess.run(["bash", "-c", setup], cwd=made, check=True, env=environment())
    return made


def verdicts_of(folder, command):
    """The verdicts on a run that succeeds without cairn, too; None where the machine cannot run it."""
    if shutil.which(command[0], path=f"/usr/bin:/bin:{folder}") is None:
        return None
    path = folder / "x.cairn"
    run = subprocess.run([CAIRN, "record", "-q", "-o", path, "--", *command], cwd=folder, env=environment(), check=False,
                         stdin=subprocess.DEVNULL, capture_output=True, timeout=400)
    recording = Recording(path, run)
    return {item["kind"]: item["sentence"] for item in recording.figures["findings"]["items"]
            if item["kind"] in VERDICTS}


def test_healthy_programs_have_no_false_verdict(folder):
    commands = {text.strip(): MAY_HOLD.get(shlex.split(text)[0], set()) for text in PLAIN.split(" | ") if text.strip()}
    commands.update(JUDGED)
    judged, wrong = 0, []
    for text, allowed in commands.items():
        found = verdicts_of(folder, shlex.split(text))
        judged += found is not None
        wrong += [f"{text}: {sentence}" for kind, sentence in (found or {}).items() if kind not in allowed]
    print(f"{judged} healthy programs")
    assert not wrong, "\n".join(wrong)
    assert judged >= PROGRAMS_MIN, judged

# SPDX-License-Identifier: MIT
# join_man: puts the parts that several manual pages share into a page.
#
# usage: awk -v parts=docs/man/parts -f tools/join_man.awk PAGE
#
# A line .\" include NAME of the page or of a part becomes the contents of the file NAME in `parts`.
function print_joined(line,    words, path, status) {
    if (split(line, words, " ") < 3 || words[1] != ".\\\"" || words[2] != "include") {
        print line
        return
    }
    path = parts "/" words[3]
    while ((status = (getline line < path)) > 0) {
        print_joined(line)
    }
    if (status < 0) {
        print "join_man: cannot read " path > "/dev/stderr"
        exit 1
    }
    close(path)
}
{ print_joined($0) }

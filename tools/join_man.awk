# SPDX-License-Identifier: MIT
# join_man: puts the parts that several manual pages share into a page.
#
# usage: awk -v parts=docs/man/parts -f tools/join_man.awk PAGE
#
# A line .\" include NAME of the page becomes the contents of the file NAME in `parts`.
$1 == ".\\\"" && $2 == "include" {
    path = parts "/" $3
    while ((status = (getline line < path)) > 0) {
        print line
    }
    if (status < 0) {
        print "join_man: cannot read " path > "/dev/stderr"
        exit 1
    }
    close(path)
    next
}
{ print }

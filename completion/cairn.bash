# SPDX-License-Identifier: MIT
# cairn.bash: completion for bash. cairn itself says what can follow, so this file needs no changes.
#
# A line of cairn's answer is a word, a tab and its description; or ":files", ":directories" or
# ":programs" for what the shell finds.
_cairn() {
    local IFS=$'\n' current=${COMP_WORDS[COMP_CWORD]} line i
    local -a words=()
    # bash makes three words of --option=value.
    for ((i = 1; i <= COMP_CWORD; i++)); do
        if ((${#words[@]} > 0)) && [[ ${COMP_WORDS[i]} == = || ${COMP_WORDS[i - 1]} == = ]]; then
            words[-1]+=${COMP_WORDS[i]}
        else
            words+=("${COMP_WORDS[i]}")
        fi
    done
    [[ $current == = ]] && current=
    local before=${words[-1]%"$current"}
    COMPREPLY=()
    while read -r line; do
        case $line in
        :files)
            compopt -o filenames
            COMPREPLY+=($(compgen -f -- "$current"))
            ;;
        :directories)
            compopt -o filenames
            COMPREPLY+=($(compgen -d -- "$current"))
            ;;
        :programs)
            compopt -o filenames
            COMPREPLY+=($(compgen -c -- "$current") $(compgen -f -- "$current"))
            ;;
        *)
            line=${line%%$'\t'*}
            COMPREPLY+=("${line#"$before"}")
            ;;
        esac
    done < <("${COMP_WORDS[0]}" --complete "${words[@]}" 2>/dev/null)
}
complete -F _cairn cairn

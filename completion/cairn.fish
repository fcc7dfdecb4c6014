# SPDX-License-Identifier: MIT
# cairn.fish: completion for fish. cairn itself says what can follow, so this file needs no changes.
# completion/cairn.bash describes the answer.
function __cairn_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    for line in ($words[1] --complete $words[2..] "$current" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$current"
            case :directories
                __fish_complete_directories "$current"
            case :programs
                complete -C "$current"
            case '*'
                echo $line
        end
    end
end
complete -c cairn -f -a '(__cairn_complete)'

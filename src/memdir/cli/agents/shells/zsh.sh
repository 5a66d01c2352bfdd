# grep "words" and grep "words" path, typed in a mounted memory, search by meaning; every other grep is the real one.
function __memdir_inside {
    # Whether the folder $1 (physical) is in a mounted memory. Builtins only: no process is started to find out.
    emulate -L zsh
    local skipped point rest kind='' best='' IFS=$' \t\n'
    while read -r skipped skipped skipped skipped point rest; do
        point=${point//\\040/ } point=${point//\\011/$'\t'} point=${point//\\012/$'\n'} point=${point//\\134/\\}
        if [[ ${1%/}/ == ${(b)point%/}/* ]] && (( ${#point} >= ${#best} )); then
            best=$point kind=${rest#* - } kind=${kind%% *}
        fi
    done </proc/self/mountinfo
    [[ $kind == fuse.memdir ]]
} 2>/dev/null

function grep {
    emulate -L zsh
    # An alias such as grep='grep --color=auto' puts this option before what was typed.
    local -a typed=("$@")
    [[ ${typed[1]-} == --color=auto ]] && shift typed
    [[ ${typed[1]-} == -- ]] && shift typed
    # A longer funcstack: a function or a sourced file calls, not a person.
    if [[ -o interactive && ${#funcstack} -eq 1 && -t 0 && ( ${#typed} -eq 1 || ${#typed} -eq 2 ) && ${typed[1]} == *[^[:space:]]* &&
        ${typed[1]} != -* && ${typed[1]} != *[\]\\\^\$\*\[\|]* && ${typed[2]-.} != -* && -e ${typed[2]-.} ]]; then
        local place=${typed[2]-.}
        [[ -d $place ]] || place=${place:h}
        if place=$(builtin cd -qP -- "$place" >/dev/null 2>&1 && builtin pwd -P) && __memdir_inside "$place" &&
            whence -p memdir >/dev/null; then
            command memdir grep -- "${typed[@]}"
            return
        fi
    fi
    command grep "$@"
}

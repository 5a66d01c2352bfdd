# grep "words" and grep "words" path, typed in a mounted memory, search by meaning; every other grep is the real one.
function __memdir_inside {
    # Whether the folder $1 (physical) is in a mounted memory. Builtins only: no process is started to find out.
    local point rest kind='' best='' IFS=$' \t\n'
    while read -r _ _ _ _ point rest; do
        point=${point//\\040/ } point=${point//\\011/$'\t'} point=${point//\\012/$'\n'} point=${point//\\134/\\}
        case ${1%/}/ in
        "${point%/}"/*) [[ ${#point} -ge ${#best} ]] && best=$point kind=${rest#* - } kind=${kind%% *} ;;
        esac
    done </proc/self/mountinfo
    [[ $kind == fuse.memdir ]]
} 2>/dev/null

function grep {
    # An alias such as grep='grep --color=auto' puts this option before what was typed.
    local -a typed=("$@")
    [[ ${typed[0]-} == --color=auto ]] && typed=("${typed[@]:1}")
    [[ ${typed[0]-} == -- ]] && typed=("${typed[@]:1}")
    # FUNCNAME[1] is set when a function or a sourced file calls, not a person.
    if [[ $- == *i* && -z ${FUNCNAME[1]-} && -t 0 && (${#typed[@]} -eq 1 || ${#typed[@]} -eq 2) && ${typed[0]} == *[![:space:]]* &&
        ${typed[0]} != -* && ${typed[0]} != *['\^$*[]|']* && ${typed[1]-.} != -* && -e ${typed[1]-.} ]]; then
        local place=${typed[1]-.}
        [[ -d $place ]] || { [[ $place == */* ]] && place=${place%/*}/ || place=.; }
        if place=$(builtin cd -P -- "$place" >/dev/null 2>&1 && builtin pwd -P) && __memdir_inside "$place" &&
            type -P memdir >/dev/null; then
            command memdir grep -- "${typed[@]}"
            return
        fi
    fi
    command grep "$@"
}

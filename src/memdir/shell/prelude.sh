# Functions that every shell begins with: what the interpreter has not, or ends a whole script over.
zcat() { gzip -dc "$@"; }
tee() {
  local arg args=() status=0
  for arg; do
    if [[ $arg == -?* || ( -n $arg && ! -d $arg && -d $(dirname -- "$arg") ) ]]; then
      args+=("$arg")
    else
      echo "tee: $arg: $([[ -d $arg ]] && echo Is a directory || echo No such file or directory)" >&2
      status=1
    fi
  done
  command tee "${args[@]}" || status=$?
  return $status
}

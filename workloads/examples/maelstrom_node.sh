# A node for Maelstrom in bash, after maelstrom_node.py: no other program. A type of request is a function:
#
#   source "${BASH_SOURCE%/*}/maelstrom_node.sh"
#   on_echo() { field echo; reply "\"type\":\"echo_ok\",\"echo\":$value"; }
#   serve
#
# `field` finds the first field of that name in a line of JSON without blanks, be it a number, a string without
# escapes, or a flat list; a larger node needs a parser. $ids is a list such as `n0 n1`, $now_ns a time.
#
# In a simulator, which sets NODE_SEED, $RANDOM and $now_ns come from the seed. The simulator gives one line, with the
# time, and waits until the node says that it is quiet.
id='' ids='' sent=0 periods=() dues=() acts=()
now_ns=${NODE_NOW_NS:-0}
[ -z "$NODE_SEED" ] || RANDOM=$NODE_SEED

# Set $value to a field of the line as it stands in JSON; empty, and false, if it has none.
field() {
  value=${line#*\"$1\":}
  case $value in
    "$line") value=''; return 1 ;;
    \"*) value=${value#\"} value=\"${value%%\"*}\" ;;
    \[*) value=${value%%]*}] ;;
    *) value=${value%%[,\}]*} ;;
  esac
}

# Send a message that nobody answers: send DEST BODY, the latter without braces.
send() { printf '{"src":"%s","dest":"%s","body":{%s}}\n' "$id" "$1" "$2"; }

# Answer the request: reply BODY.
reply() { send "$src" "$1,\"in_reply_to\":$msg_id"; }

# Send a request: call DEST BODY FUNCTION, which is called when the line is the reply.
call() {
  sent=$((sent + 1))
  waiting[sent]=$3
  send "$1" "$2,\"msg_id\":$sent"
}

# Call a function every so many milliseconds: every MS FUNCTION.
every() { periods+=($(($1 * 1000000))) dues+=($((now_ns + $1 * 1000000))) acts+=("$2"); }

on_init() {
  field node_id; id=${value//\"/}
  field node_ids; ids=${value//[\]\[\"]/} ids=${ids//,/ }
  reply '"type":"init_ok"'
}

# Serve until stdin ends.
serve() {
  pass_time
  quiet
  while hear; do
    case $line in *'"body":'*) receive ;; esac
    pass_time
    for each in "${!dues[@]}"; do
      if [ "${dues[each]}" -le "$now_ns" ]; then
        dues[each]=$((now_ns + periods[each]))
        ${acts[each]}
      fi
    done
    quiet
  done
}

receive() {
  local kind then
  field src; src=${value//\"/}
  field msg_id; msg_id=$value
  if field in_reply_to; then
    then=${waiting[value]} waiting[value]=''
    $then
    return
  fi
  field type; kind=${value//\"/}
  if [ -z "$id" ] && [ "$kind" != init ]; then
    return # for a former life of this node
  elif declare -F "on_$kind" > /dev/null; then
    "on_$kind"
  else
    reply "\"type\":\"error\",\"code\":10,\"text\":\"this node does not know messages of type $kind\""
  fi
}

# Set $line to the next line, or to nothing when a timer is due; false when stdin has ended.
hear() {
  local wait=() due
  if [ -z "$NODE_SEED" ] && next; then
    printf -v due '%d.%06d' $((left_ns / 1000000000)) $((left_ns % 1000000000 / 1000))
    wait=(-t "$due")
  fi
  IFS= read -r "${wait[@]}" line
  local status=$?
  line=$unread$line unread=''
  if [ $status -gt 128 ]; then
    unread=$line line=''
  elif [ $status -ne 0 ]; then
    return 1
  fi
  if [ -n "$NODE_SEED" ]; then
    now_ns=${line##*:} now_ns=${now_ns%\}} # it stands last
  fi
}

# Set $next_ns to when the next timer is due, and $left_ns to the time until then; false if there is none.
next() {
  local each
  next_ns=''
  for each in "${dues[@]}"; do
    [ -n "$next_ns" ] && [ "$next_ns" -le "$each" ] || next_ns=$each
  done
  left_ns=$((next_ns > now_ns ? next_ns - now_ns : 1000))
  [ -n "$next_ns" ]
}

pass_time() { [ -n "$NODE_SEED" ] || now_ns=${EPOCHREALTIME/[.,]/}000; }

quiet() {
  if [ -z "$NODE_SEED" ]; then
    return
  elif next; then
    printf '{"type":"quiet","timer_ns":%d}\n' "$next_ns"
  else
    printf '{"type":"quiet"}\n'
  fi
}

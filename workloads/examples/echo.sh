#!/bin/sh
# echo in shell: one line in, one line out. sed cuts the fields out of a line of JSON; a larger node needs a parser.
field() { printf '%s\n' "$line" | sed -n "s/.*\"$1\" *: *\(\"[^\"]*\"\|[0-9]*\).*/\1/p"; }
while read -r line; do
  case $(field type) in
    '"init"') id=$(field node_id); answer='"type":"init_ok"' ;;
    '"echo"') answer="\"type\":\"echo_ok\",\"echo\":$(field echo)" ;;
    *) answer='"type":"error","code":10,"text":"this node knows init and echo"' ;;
  esac
  echo "{\"src\":$id,\"dest\":$(field src),\"body\":{$answer,\"in_reply_to\":$(field msg_id)}}"
done

// echo in Go: one line in, one line out. Build it with: go build -o echo echo.go
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type message struct {
	Src  string         `json:"src"`
	Dest string         `json:"dest"`
	Body map[string]any `json:"body"`
}

func main() {
	var id string
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, end := in.ReadBytes('\n')
		if end != nil {
			return
		}
		var got message
		if wrong := json.Unmarshal(line, &got); wrong != nil {
			fmt.Fprintln(os.Stderr, wrong)
			os.Exit(1)
		}
		reply := map[string]any{"in_reply_to": got.Body["msg_id"]}
		switch got.Body["type"] {
		case "init":
			id = got.Body["node_id"].(string)
			reply["type"] = "init_ok"
		case "echo":
			reply["type"], reply["echo"] = "echo_ok", got.Body["echo"]
		default:
			reply["type"], reply["code"] = "error", 10
			reply["text"] = fmt.Sprint("this node does not know messages of type ", got.Body["type"])
		}
		if wrong := out.Encode(message{id, got.Src, reply}); wrong != nil {
			return // nobody reads any more
		}
	}
}

// echo in Go: the first challenge. Build it with: go build -o echo echo.go maelstrom_node.go
package main

func main() {
	node := NewNode()
	node.On("echo", func(request Message) {
		node.Reply(request, Body{"type": "echo_ok", "echo": request.Body["echo"]})
	})
	node.Run()
}

// A node for Maelstrom in a few lines, after maelstrom_node.py: nothing but Go's own packages.
//
//	func main() {
//		node := NewNode()
//		node.On("echo", func(request Message) {
//			node.Reply(request, Body{"type": "echo_ok", "echo": request.Body["echo"]})
//		})
//		node.Run()
//	}
//
// Build it with `go build -o echo echo.go maelstrom_node.go`. One message at a time, no goroutine but that of stdin.
//
// In a simulator, which sets NODE_SEED, `Now` and `Random` come from the seed. The simulator gives one line, with the
// time, and waits until the node says that it is quiet. Go goes through a map in another order each time: sort it.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
	"time"
)

type Body = map[string]any

type Message struct {
	Src   string `json:"src"`
	Dest  string `json:"dest"`
	Body  Body   `json:"body"`
	NowNs *int64 `json:"now_ns,omitempty"`
}

type timer struct {
	every, due time.Duration
	act        func()
}

// ID and IDs are known once init has come. Now is the time since some moment.
type Node struct {
	ID       string
	IDs      []string
	Now      time.Duration
	Random   *rand.Rand
	handlers map[string]func(Message)
	waiting  map[float64]func(Body)
	sent     float64
	timers   []*timer
	began    time.Time
	isPlayed bool // by a simulator
}

func NewNode() *Node {
	node := &Node{handlers: map[string]func(Message){}, waiting: map[float64]func(Body){}, began: time.Now()}
	seed, now := time.Now().UnixNano(), int64(0)
	if text, found := os.LookupEnv("NODE_SEED"); found {
		node.isPlayed = true
		seed, _ = strconv.ParseInt(text, 10, 64)
		now, _ = strconv.ParseInt(os.Getenv("NODE_NOW_NS"), 10, 64)
	}
	node.Now, node.Random = time.Duration(now), rand.New(rand.NewSource(seed))
	node.On("init", node.init)
	return node
}

// On takes a type of request.
func (node *Node) On(kind string, handler func(Message)) { node.handlers[kind] = handler }

// Every calls a function every so often.
func (node *Node) Every(every time.Duration, act func()) {
	node.timers = append(node.timers, &timer{every, node.Now + every, act})
}

// Send sends a message that nobody answers.
func (node *Node) Send(dest string, body Body) {
	write(Body{"src": node.ID, "dest": dest, "body": body})
}

// Reply answers a request.
func (node *Node) Reply(request Message, body Body) {
	node.Send(request.Src, with(body, "in_reply_to", request.Body["msg_id"]))
}

// Call sends a request; then gets the body of the reply, whenever it comes.
func (node *Node) Call(dest string, body Body, then func(Body)) {
	node.sent++
	node.waiting[node.sent] = then
	node.Send(dest, with(body, "msg_id", node.sent))
}

// Run serves until stdin ends.
func (node *Node) Run() {
	lines := make(chan []byte)
	go read(lines)
	node.quiet()
	for {
		var ring <-chan time.Time
		if due := node.next(); due != nil && !node.isPlayed {
			ring = time.After(due.due - node.Now)
		}
		select {
		case line, isThere := <-lines:
			if !isThere {
				return
			}
			node.receive(line)
		case <-ring:
		}
		if !node.isPlayed {
			node.Now = time.Since(node.began)
		}
		for due := node.next(); due != nil && due.due <= node.Now; due = node.next() {
			due.due = node.Now + due.every
			due.act()
		}
		node.quiet()
	}
}

func (node *Node) receive(line []byte) {
	var message Message
	if err := json.Unmarshal(line, &message); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", err, line)
		os.Exit(1)
	}
	if message.NowNs != nil && node.isPlayed {
		node.Now = time.Duration(*message.NowNs)
	}
	kind, _ := message.Body["type"].(string)
	if message.Body == nil || (node.ID == "" && kind != "init") {
		return // a timer is due, or this is for a former life of the node
	}
	if number, isReply := message.Body["in_reply_to"].(float64); isReply {
		if then := node.waiting[number]; then != nil {
			delete(node.waiting, number)
			then(message.Body)
		}
	} else if handler := node.handlers[kind]; handler != nil {
		handler(message)
	} else {
		text := "this node does not know messages of type " + kind
		node.Reply(message, Body{"type": "error", "code": 10, "text": text})
	}
}

func (node *Node) init(request Message) {
	node.ID, _ = request.Body["node_id"].(string)
	names, _ := request.Body["node_ids"].([]any)
	for _, name := range names {
		node.IDs = append(node.IDs, name.(string))
	}
	node.Reply(request, Body{"type": "init_ok"})
}

func (node *Node) next() *timer {
	var first *timer
	for _, each := range node.timers {
		if first == nil || each.due < first.due {
			first = each
		}
	}
	return first
}

func (node *Node) quiet() {
	if due := node.next(); !node.isPlayed {
		return
	} else if due == nil {
		write(Body{"type": "quiet"})
	} else {
		write(Body{"type": "quiet", "timer_ns": int64(due.due)})
	}
}

func read(lines chan<- []byte) {
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			close(lines)
			return
		}
		lines <- line
	}
}

func write(message Body) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(line, '\n'))
}

func with(body Body, field string, value any) Body {
	more := Body{field: value}
	for name := range body {
		more[name] = body[name]
	}
	return more
}

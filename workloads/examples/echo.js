#!/usr/bin/env node
// echo in JavaScript: the first challenge.
const { Node } = require("./maelstrom_node");
const node = new Node();

node.on("echo", (request) => node.reply(request, { type: "echo_ok", echo: request.body.echo }));

node.run();

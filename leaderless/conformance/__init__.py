"""A kit for other implementations of docs/SPEC.md: `leaderless conformance --program CMD`.

The program reads JSON lines on stdin and answers each with a line on stdout, in any order; its stderr is shown
when it fails. `leaderless/conformance/example.py` is one to copy. A line has `id`, `op`, and:

    op       with                      answer, beside `id`
    open     store, ..., patience_s    {}; a later one takes the place of this one
    append   key, values, name         {"offset": FIRST}; {} with a name
    append_if key, values              {"offset": FIRST}; with `expected`, `token`, or both (section 19)
    close    key                       {"end": END}
    read     key                       {"records": [[OFFSET, MESSAGE], ...]}: all
    compact                            {} when all that fills runs is in runs
    fence, unfence, vacuum             {}
    consume  group, key                {"record": [OFFSET, MESSAGE]}, or null
    commit   group, key, offset        {}

`store` is sqlite:///FILE, or s3://BUCKET/PREFIX with `endpoint`, `access_key`, `secret_key` and `region`; the
bucket stands in the path. `values` are one batch of messages (section 5.4), which may have a `name`, as
["daily", 7] for seq 7 of `named/daily`. What stands apart (`$data`) is read as a value that does not.

What was not done is `{"error": TEXT, "may_have_happened": true or false}`. A program without an operation says
`{"error": "not supported"}`: rows that need it are not tried. Sealing has no line: who appends seals.

The kit hosts the log. It makes `format` with a small shape, kills the program (SIGKILL) at each request of a
call in turn, loses, delays and refuses requests, lets this library work beside it, judges each write, old to
new, by `leaderless.upkeep.laws`. After each story both read all records.

    rows        the rows of section 17, the stories that try them, and fates of requests: data
    judge       what is wrong with a write, or with the answers and what was read: no I/O
    bucket      a log in memory that S3 over HTTP shows, and what becomes of its requests
    database    a log in a SQLite file, whose writes are found in its write-ahead log
    programs    the program as a process; plays stories with it
"""

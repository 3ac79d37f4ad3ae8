"""What is said of a run and of its nodes.

While it goes on, in the report that ends it:

    no_start        why a node cannot be started, or what its script does to a pipe
    no_message      why a line is no message
    silence         why a node did not answer, and what is wrong with what it sent
    last_error      the last error on a node's stderr

At its end, and when it is judged again:

    checkers        the checkers of every run, and all of them together
    judgement       what the workload's checker says, in findings
    circumstances   the faults when an anomaly began
    following       what nodes were asked, asked themselves, and did last
    reasons         why no operation of a kind succeeded
    trail           what messages show of a bad verdict; sentences: in which words
    wording         checks and values in words; glossary: names of anomalies
    printing        the verdict on a terminal; last_line: its end, and the exit status
    kept            the files of a run that hold all this
"""

"""What a run leaves on disk, ours and the real tool's, and the figures of one run in plain Python.

    files       the names of a run's files, which of two forms is read, when they change
    store       making the folder of a run, finding runs
    facts       options, results and verdicts
    sweeps      the index of a sweep, its cells and their medians
    history     operations of clients, EDN or JSON; edn: the notation; reading: within limits
    writing     whole lines and whole documents on a full disk; the journal of messages
    fressian    the real tool's journal
    faults      their names, when each was in force, what it did
    operations  pairing, latency, quantiles, windows, throughput; how long a fault is felt after its end
    traffic     links, services, messages per operation, what they were for
    figures     all figures of a run, by one definition for all readers

Nothing here imports any other room.
"""

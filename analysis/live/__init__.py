"""A Structured Streaming job that follows a log while it grows: `python -m analysis.live URL` (docs/live.md).

    windows   records -> windows: a function from frame to frame
    job       the stream, its checkpoint, and the file that pages show

This room stands above `analysis` and `leaderless`, neither of which knows the other.
"""

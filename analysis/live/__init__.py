"""A Structured Streaming job that follows a log while it grows: `python -m analysis.live URL`.

    job   records -> windows: a function from frame to frame; the stream, its checkpoint, and its file

This room stands above `analysis` and `leaderless`, neither of which knows the other.
"""

"""anyio: stdin and stdout, timers, settings, and the driver that executes effects."""

"""The library: a log on a store, inside the program that uses it (`leaderless.open_log`)."""

"""What programs and people call: a log on a store (`leaderless.open_log`), its consumers, and the commands."""

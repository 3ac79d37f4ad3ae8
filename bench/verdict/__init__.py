"""What is said of a run and of its nodes: while it goes on, at its end, and when it is judged again."""

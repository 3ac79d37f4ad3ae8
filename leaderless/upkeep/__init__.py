"""What looks after a log in a store: chores, the vacuum, the laws of its objects, the check of a whole log."""

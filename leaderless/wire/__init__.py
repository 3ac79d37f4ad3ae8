"""Message bodies, the codec and the error registry."""

"""Groups of consumers: which member owns which key, where a group is in each, and who consumes."""

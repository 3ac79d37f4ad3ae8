"""What learners get wrong in their nodes, and what the bench says of it."""

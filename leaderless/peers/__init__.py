"""Programs that talk: processes that append to one log take each other's batches along."""

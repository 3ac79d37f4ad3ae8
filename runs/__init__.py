"""What a run leaves on disk, ours and the real tool's: names of files, their forms, how to read them."""

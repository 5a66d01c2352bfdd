"""What the server keeps: containers, documents, blobs, chunks, memories, jobs, changes. `protocols` are the seams."""

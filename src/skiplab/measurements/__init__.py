"""One quantity a file: a pure function of a Subject and batches, and its frozen result."""
